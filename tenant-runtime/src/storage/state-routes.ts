// Reports the state of the tenants' stores to the control plane. It is held in memory, so that a request queries no database.
import { internalPaths, type StorageState, type TenantStorageState } from '@tenantry/contract'
import type { FastifyInstance } from 'fastify'
import type { Collector } from './collector.ts'

/** @param phantoms number of objects found without their file since the start, by tenant */
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
  const reportedTenants = () => new Set([...phantoms.keys(), ...collector.remains().keys()])

  app.get(internalPaths.storageState, { config: { access: 'internal' } }, () => stateOfAll(reportedTenants()))
  app.get<{ Params: { id: string } }>(
    internalPaths.tenantStorageState(':id'),
    { config: { access: 'internal' } },
    ({ params }) => stateOfAll(reportedTenants().has(params.id) ? [params.id] : []),
  )
}
