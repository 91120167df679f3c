// The plan's limits of schemas: their number, and the bytes of their texts (docs/quotas.md).
import type { Limits } from '@tenantry/contract'
import { RuntimeError } from '../../errors.ts'
import type { Tenant } from '../../tenancy/tenant.ts'

/** The size of all schemas of a home, or of some of them. */
export interface SchemaSize {
  count: number
  /** The bytes of names, fields and policies as JSON texts. */
  bytes: number
}

/** The columns `count` and `bytes` of all schemas of the search path's home. */
export const schemaSizeSql = `select count(*) as count,
    coalesce(sum(octet_length(name) + octet_length(fields::text) + octet_length(rls_policy::text)), 0) as bytes
  from schemas`

/**
 * Checks that schemas may be added to those that are stored.
 * @throws RuntimeError QUOTA_EXCEEDED with `limit` and `used`
 */
export async function requireSchemaRoom({ database, limits }: Tenant, added: SchemaSize): Promise<void> {
  const { schemas: maxCount = null, schema_bytes: maxBytes = null } = limits
  if (maxCount === null && maxBytes === null) return
  const { rows } = await database.query({ role: 'service', reason: 'quota' }, schemaSizeSql)
  const stored = { count: Number(rows[0]?.['count']), bytes: Number(rows[0]?.['bytes']) }
  requireWithin(limits, stored, added)
}

/**
 * Checks stored schemas, which may have been written with SQL.
 * @throws RuntimeError QUOTA_EXCEEDED with `limit` and `used`
 */
export function requireSchemasWithin(limits: Limits, stored: SchemaSize): void {
  requireWithin(limits, stored, { count: 0, bytes: 0 })
}

function requireWithin(limits: Limits, stored: SchemaSize, added: SchemaSize): void {
  const { schemas: maxCount = null, schema_bytes: maxBytes = null } = limits
  if (maxCount !== null && stored.count + added.count > maxCount)
    throw new RuntimeError('QUOTA_EXCEEDED', `The tenant has ${stored.count} schemas. Its plan allows ${maxCount}.`, {
      extra: { limit: maxCount, used: stored.count },
    })
  if (maxBytes !== null && stored.bytes + added.bytes > maxBytes)
    throw new RuntimeError(
      'QUOTA_EXCEEDED',
      `The tenant's schemas have ${stored.bytes} bytes. Its plan allows ${maxBytes}.`,
      { extra: { limit: maxBytes, used: stored.bytes } },
    )
}
