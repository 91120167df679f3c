// Measures the documents of tenants that write with SQL, which no quota of the runtime limits, and closes the SQL login of
// those that have far more than their plan allows.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { repeatInRegions } from '../platform/repeat-in-regions.ts'
import type { Condition } from '../tenants/index.ts'
import { documentsCondition, isOverDocuments, type MeasuredTenant } from './judge-documents.ts'

/** Measures documents on one server. */
export interface DocumentServer {
  /** Returns the bytes of the documents of tenants in one database. */
  documentBytes(
    database: string,
    tenantIds: readonly string[],
    limitBytes: number,
  ): Promise<ReadonlyMap<string, number>>
}

export interface DocumentStore {
  /** Returns these tenants, and those of the region whose login is closed because of their documents. */
  measured(regionId: string, tenantIds: readonly string[]): Promise<MeasuredTenant[]>
  /** Records that a login is closed because of the documents, or with no condition that it no longer is. */
  reportDocuments(tenantId: string, condition: Condition | undefined, once: string, epoch: bigint): Promise<void>
}

/** The dependencies of the job that measures documents. */
export interface DocumentDeps {
  servers: ReadonlyMap<string, DocumentServer>
  store: DocumentStore
  /** Returns the tenants of a region that have written since the last call. */
  takeWriters: (region: string) => readonly string[]
  applyLogins: (region: string, epoch: bigint) => Promise<void>
  clock: Clock
  log: Pick<Log, 'warn'>
}

const intervalMs = 1_000
const hourMs = 3_600_000

/** Creates the leader's job that measures documents. */
export function watchDocuments(deps: DocumentDeps): (leadership: Leadership) => Promise<void> {
  const { servers, clock, log } = deps
  return async ({ epoch, lost }) => {
    const createWork = (region: string, server: DocumentServer) => async () => {
      await measureDocuments(region, server, deps, epoch)
      return intervalMs
    }
    const failure = 'The documents of tenants could not be measured. The measurement is retried.'
    await repeatInRegions(servers, { clock, log, createWork, failure }, lost)
  }
}

async function measureDocuments(
  region: string,
  server: DocumentServer,
  { store, takeWriters, applyLogins, clock, log }: Omit<DocumentDeps, 'servers'>,
  epoch: bigint,
): Promise<void> {
  const tenants = await store.measured(region, takeWriters(region))
  let isChanged = false
  for (const [database, own] of Map.groupBy(tenants, (tenant) => tenant.database)) {
    const limit = Math.max(0, ...own.map(({ limitBytes }) => limitBytes ?? 0))
    const ids = own.map(({ id }) => id)
    const sizes = await server.documentBytes(database, ids, limit)
    for (const tenant of own) {
      const { id, limitBytes = Infinity, isFull } = tenant
      const bytes = sizes.get(id) ?? 0
      const isOver = isOverDocuments(tenant, bytes)
      if (isOver === isFull) continue
      isChanged = true
      const at = clock.now()
      const once = `sql:${id}:documents:${Math.floor(at.getTime() / hourMs)}`
      await store.reportDocuments(id, isOver ? documentsCondition(bytes, limitBytes, at) : undefined, once, epoch)
      if (isOver)
        log.warn(
          { region, tenant: id, bytes },
          'The SQL login of a tenant is closed, because its documents exceed its quota.',
        )
    }
  }
  if (isChanged) await applyLogins(region, epoch)
}
