// Requests that a tenant gets another isolation or region, and reads its home wherever that is.
import type { Isolation } from '#control-plane/stacks/index.ts'
import type { ReadHome } from './busy-scene.ts'
import { beginRevert, ended, sql, type Owner, type ServedPlatform } from './platform.ts'

/** The start of the services alone takes minutes on a machine on which other tests run. */
const moveMilliseconds = 600_000

/** Requests another isolation, and waits until the move has ended. */
export async function isolate(
  platform: ServedPlatform,
  { id }: Owner,
  isolation: Isolation = 'database-per-tenant',
): Promise<Record<string, unknown>> {
  return ended(platform, await beginIsolation(platform, id, isolation), moveMilliseconds)
}

/** Requests the revert of the last change of the isolation, and waits until it has ended. */
export async function revertIsolation(platform: ServedPlatform, owner: Owner): Promise<Record<string, unknown>> {
  return ended(platform, await beginRevert(platform, owner), moveMilliseconds)
}

/** Requests another isolation. @returns the ID of the operation */
export async function beginIsolation(
  platform: ServedPlatform,
  id: string,
  isolation: Isolation = 'database-per-tenant',
): Promise<string> {
  return beginRelocation(platform, id, { isolation })
}

/** The region and the isolation to which a tenant moves. */
interface Relocation {
  region?: string
  isolation?: Isolation
}

/** Requests another region or isolation, and waits until the move has ended. */
export async function relocate(
  platform: ServedPlatform,
  { id }: Owner,
  to: Relocation,
): Promise<Record<string, unknown>> {
  return ended(platform, await beginRelocation(platform, id, to), moveMilliseconds)
}

async function beginRelocation(platform: ServedPlatform, id: string, to: Relocation): Promise<string> {
  const { status, body } = await platform.call('PATCH', `/v1/tenants/${id}`, to)
  if (status !== 200) throw new Error(JSON.stringify(body))
  return String((body['operation'] as Record<string, unknown>)['id'])
}

/** Reads from a home as the tenant's own login, wherever the home is. */
export const homeOf =
  ({ id, url }: Owner): ReadHome =>
  (text) =>
    sql(url, text.replaceAll('{home}', `"${id}"`))
