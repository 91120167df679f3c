// Writes of documents, as far as the tenant's plan has room for them.
import type { FastifyRequest } from 'fastify'
import type { DocumentQuota } from '../document-quota.ts'
import type { JsonBody } from '../plan/plan-write.ts'
import type { Relation } from '../registry/catalog.ts'
import type { RestResponse } from './response.ts'

/** @throws RuntimeError QUOTA_EXCEEDED */
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

/** The body is written to every record that it changes. @throws RuntimeError QUOTA_EXCEEDED */
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
