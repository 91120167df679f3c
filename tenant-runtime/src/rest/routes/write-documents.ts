// Writes documents within the quota of the tenant's plan.
import type { FastifyRequest } from 'fastify'
import type { DocumentQuota } from '../document-quota.ts'
import type { JsonBody } from '../plan/plan-write.ts'
import type { Relation } from '../registry/catalog.ts'
import type { RestResponse } from './response.ts'

/**
 * Inserts documents.
 * @throws RuntimeError QUOTA_EXCEEDED
 */
export function insertDocuments<T>(
  quota: DocumentQuota,
  { tenant }: FastifyRequest,
  relation: Relation,
  body: JsonBody | undefined,
  records: number,
  work: () => Promise<T>,
): Promise<T> {
  if (relation.writable !== 'yes') return work()
  return quota.write(tenant, { bytes: bytesOf(body), records }, work)
}

/**
 * Updates documents. The body counts for every record that it changes.
 * @throws RuntimeError QUOTA_EXCEEDED
 */
export function updateDocuments<T extends { response: RestResponse }>(
  quota: DocumentQuota,
  { tenant }: FastifyRequest,
  relation: Relation,
  body: JsonBody | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (relation.writable !== 'yes') return work()
  return quota.write(tenant, { bytes: bytesOf(body), records: 0 }, work, ({ response }) => response.changed)
}

function bytesOf(body: JsonBody | undefined): number {
  return body === undefined ? 0 : Buffer.byteLength(body.text)
}
