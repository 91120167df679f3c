// What the control plane asks of the stores of this runtime's tenants: answered from memory, so that asking costs no database anything.
import { internalPaths, type StorageState, type TenantStorageState } from '@tenantry/contract'
import type { FastifyInstance } from 'fastify'
import type { Collector } from './collector.ts'

/** @param phantoms objects found without their file since the start, by tenant */
export function addStateRoutes(
  app: FastifyInstance,
  collector: Collector,
  phantoms: ReadonlyMap<string, number>,
): void {
  const stateOf = (tenantId: string): TenantStorageState => {
    const { orphans = 0, waiting = 0 } = collector.remains().get(tenantId) ?? {}
    return { phantoms: phantoms.get(tenantId) ?? 0, orphans, backlog: waiting }
  }
  const stateOfAll = (tenantIds: Iterable<string>): StorageState => ({
    tenants: Object.fromEntries([...tenantIds].map((id) => [id, stateOf(id)])),
  })
  const reported = () => new Set([...phantoms.keys(), ...collector.remains().keys()])

  app.get(internalPaths.storageState, { config: { access: 'internal' } }, () => stateOfAll(reported()))
  app.get<{ Params: { id: string } }>(
    internalPaths.tenantStorageState(':id'),
    { config: { access: 'internal' } },
    ({ params }) => stateOfAll(reported().has(params.id) ? [params.id] : []),
  )
}
