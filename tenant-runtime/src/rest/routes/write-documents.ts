// Writes documents and schemas within the quotas of the tenant's plan.
import type { FastifyRequest } from 'fastify'
import type { DocumentQuota } from '../document-quota.ts'
import type { RequestBody } from '../plan/request-body.ts'
import type { Relation } from '../registry/catalog.ts'
import { requireSchemaRoom } from '../registry/schema-quota.ts'
import type { RestResponse } from './response.ts'

/**
 * Inserts documents or schemas.
 * @throws RuntimeError QUOTA_EXCEEDED
 */
export async function insertDocuments<T>(
  quota: DocumentQuota,
  { tenant }: FastifyRequest,
  relation: Relation,
  body: RequestBody | undefined,
  records: number,
  work: () => Promise<T>,
): Promise<T> {
  if (relation.writable === 'schemas') await requireSchemaRoom(tenant, { count: records, bytes: bytesOf(body) })
  if (relation.writable !== 'yes') return work()
  return quota.write(tenant, { bytes: bytesOf(body), records }, work)
}

/**
 * Updates documents or schemas. The body counts for every record that it changes.
 * @throws RuntimeError QUOTA_EXCEEDED
 */
export async function updateDocuments<T extends { response: RestResponse }>(
  quota: DocumentQuota,
  { tenant }: FastifyRequest,
  relation: Relation,
  body: RequestBody | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (relation.writable === 'schemas') await requireSchemaRoom(tenant, { count: 0, bytes: bytesOf(body) })
  if (relation.writable !== 'yes') return work()
  return quota.write(tenant, { bytes: bytesOf(body), records: 0 }, work, ({ response }) => response.changed)
}

function bytesOf(body: RequestBody | undefined): number {
  return body === undefined ? 0 : Buffer.byteLength(body.text)
}
