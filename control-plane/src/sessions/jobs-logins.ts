// Keeps the SQL logins of tenants on shared servers as they should be: closed for suspended and deleted tenants, during the
// watchdog's periods, and above the quota of documents; open otherwise. It compares and corrects, so that it repairs what a
// crash of any part has left.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { repeatInRegions } from '../platform/repeat-in-regions.ts'

/** The SQL logins of tenants on one server. */
export interface SqlLoginServer {
  /** Returns which of the tenants have an SQL login, and those whose login is closed. */
  sqlLogins(tenantIds: readonly string[]): Promise<{ tenantId: string; isOpen: boolean }[]>
  /** Opens or closes a tenant's SQL login. To close it ends its sessions, too. */
  setSqlLogin(tenantId: string, isOpen: boolean): Promise<void>
  /** Ends the sessions of closed logins. */
  endClosedSessions(): Promise<void>
}

export interface SqlLoginStore {
  /** Returns the tenants of a region whose SQL login must be closed. */
  closedLogins(regionId: string): Promise<ReadonlySet<string>>
  /** Returns those of the tenants whose SQL login must be open in a region. */
  openLogins(regionId: string, tenantIds: readonly string[]): Promise<readonly string[]>
  /** Records that a login is open again. Tenants without an offence for a while lose the condition. */
  reportOpen(regionId: string, epoch: bigint): Promise<void>
}

/** The dependencies of the job that opens and closes SQL logins. */
export interface SqlLoginDeps {
  servers: ReadonlyMap<string, SqlLoginServer>
  store: SqlLoginStore
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
  /** Receives the number of closed logins. */
  measure: (region: string, closed: number) => void
}

const intervalMs = 2_000

/** Creates the correction of one region's logins, which can be called at any time. */
export function createLoginCorrection({ servers, store, log, measure }: SqlLoginDeps) {
  return async (region: string, epoch: bigint): Promise<void> => {
    const server = servers.get(region)
    if (server === undefined) return
    const closed = await store.closedLogins(region)
    const logins = await server.sqlLogins([...closed])
    measure(region, closed.size)
    for (const { tenantId, isOpen } of logins.filter((login) => login.isOpen && closed.has(login.tenantId))) {
      await server.setSqlLogin(tenantId, !isOpen)
      log.info({ region, tenant: tenantId }, 'The SQL login of a tenant was closed.')
    }
    const others = logins.filter(({ tenantId, isOpen }) => !isOpen && !closed.has(tenantId))
    // A role that is not open may belong to a tenant that is being removed.
    const closedIds = others.map(({ tenantId }) => tenantId)
    for (const tenantId of closedIds.length === 0 ? [] : await store.openLogins(region, closedIds)) {
      await server.setSqlLogin(tenantId, true)
      log.info({ region, tenant: tenantId }, 'The SQL login of a tenant was opened.')
    }
    if (closed.size > 0) await server.endClosedSessions()
    await store.reportOpen(region, epoch)
  }
}

/** Creates the leader's job that corrects the logins of all regions. */
export function watchLogins(
  correct: ReturnType<typeof createLoginCorrection>,
  { servers, clock, log }: Pick<SqlLoginDeps, 'servers' | 'clock' | 'log'>,
): (leadership: Leadership) => Promise<void> {
  return async ({ epoch, lost }) => {
    const createWork = (region: string) => async () => {
      await correct(region, epoch)
      return intervalMs
    }
    const failure = 'The SQL logins of tenants could not be checked. The check is retried.'
    await repeatInRegions(servers, { clock, log, createWork, failure }, lost)
  }
}
