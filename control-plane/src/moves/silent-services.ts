// Services of a tenant's own on hosts that do not respond, in a region on several.
import type { Region } from '../reconcile/index.ts'
import { ofModel, type OwnIsolation } from '../stacks/index.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'

/**
 * Rejects services on a host that does not respond and may return. Those on a lost host do not run any more.
 * @param silent the hosts that did not respond; absent: as they are known now
 * @throws MoveError, temporary
 */
export async function rejectSilent(
  tenantId: string,
  isolation: OwnIsolation,
  { config, engine, spansHosts }: Pick<Region, 'config' | 'engine' | 'spansHosts'>,
  { services: { placements } }: Pick<MoveDeps, 'services'>,
  silent: readonly string[] = (engine?.hostIds ?? []).filter((id) => engine?.isDown(id) === true),
): Promise<void> {
  if (!spansHosts || silent.length === 0) return
  const [{ placement }, states] = await Promise.all([placements.of(tenantId), placements.states(config.id)])
  const used = Object.values(ofModel(placement, isolation))
  const awaited = silent.find((host) => used.includes(host) && states.get(host) !== 'lost')
  if (awaited === undefined) return
  throw new MoveError(`The host "${awaited}" with services of the tenant does not respond.`, { isTemporary: true })
}
