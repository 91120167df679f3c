// The plan's limits of functions: their number, and the bytes of their modules (docs/quotas.md).
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'

/**
 * Checks that a module of `bytes` may be stored for the function of this name. The number is checked only for a new function.
 * @throws RuntimeError QUOTA_EXCEEDED with `limit` and `used`
 */
export async function requireRoom(
  { database, limits }: Tenant,
  context: RlsContext,
  { name, bytes, isNew }: { name: string; bytes: number; isNew: boolean },
): Promise<void> {
  const { functions: maxCount = null, function_bytes: maxBytes = null } = limits
  if (maxCount === null && maxBytes === null) return
  const { rows } = await database.query(
    context,
    'select count(*)::int as count, coalesce(sum(octet_length(wasm_data)), 0)::text as bytes from functions where name <> $1',
    name,
  )
  const others = { count: Number(rows[0]?.['count']), bytes: Number(rows[0]?.['bytes']) }
  if (isNew && maxCount !== null && others.count >= maxCount)
    throw new RuntimeError('QUOTA_EXCEEDED', `The tenant has ${others.count} functions. Its plan allows ${maxCount}.`, {
      extra: { limit: maxCount, used: others.count },
    })
  if (maxBytes !== null && others.bytes + bytes > maxBytes)
    throw new RuntimeError(
      'QUOTA_EXCEEDED',
      `The module has ${bytes} bytes, and the tenant's other functions have ${others.bytes}. Its plan allows ${maxBytes}.`,
      { extra: { limit: maxBytes, used: others.bytes } },
    )
}
