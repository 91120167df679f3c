// Assembles the watchdog of SQL sessions and the correction of SQL logins for all regions.
import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import type { Seal } from '../platform/seal.ts'
import { superuserOf, type RegionConfig } from '../regions/index.ts'
import { watchSessions, type MeasureEnded } from './jobs.ts'
import { watchDocuments, type DocumentServer } from './jobs-documents.ts'
import { createLoginCorrection, watchLogins, type SqlLoginDeps, type SqlLoginServer } from './jobs-logins.ts'
import { restorePasswords, type PasswordServer } from './jobs-passwords.ts'
import type { RunStatement } from './operator-sessions.ts'
import type { SessionLimitsConfig } from './session-limits.ts'
import { createSessionServer } from './session-server.ts'
import { createSessionWatchStore } from './store.ts'
import { createDocumentStore } from './store-documents.ts'
import { createPasswordStore } from './store-passwords.ts'

/** Metrics of SQL sessions and logins. */
export interface SessionMeasures {
  /** Receives how many sessions of a region were ended. */
  ended: MeasureEnded
  /** Receives the number of closed SQL logins of a region. */
  closed: SqlLoginDeps['measure']
}

interface SessionsConfig {
  regions: readonly Pick<RegionConfig, 'id' | 'postgres_url' | 'superuser'>[]
  sessionLimits: SessionLimitsConfig
}

interface OpenSessionsDeps {
  database: Database
  seal: Seal
  measures: SessionMeasures
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

/** The SQL sessions of tenants on all shared servers. */
export interface Sessions {
  /** The leader's jobs. */
  jobs: ((leadership: Leadership) => Promise<void>)[]
  /** Returns the function that runs statements on a region's shared server. @throws Error for an unknown region */
  sharedServer(region: string): RunStatement
  /** Ends the connections to the servers. */
  close(): Promise<void>
}

/** Opens the watchdog, which connects to the servers when a job runs. @param shared servers, by region */
export function openSessions(
  { regions, sessionLimits: limits }: SessionsConfig,
  logins: ReadonlyMap<string, SqlLoginServer & DocumentServer & PasswordServer>,
  { database, seal, measures, clock, log }: OpenSessionsDeps,
): Sessions {
  const servers = new Map(regions.map((region) => [region.id, createSessionServer(superuserOf(region))]))
  const store = createSessionWatchStore(database, () => clock.now())
  const shared = { store, clock, log }
  const applyLogins = createLoginCorrection({ ...shared, servers: logins, measure: measures.closed })
  const writers = new Map<string, Set<string>>()
  const sawWriter = (region: string, tenantId: string) => {
    const seen = writers.get(region) ?? new Set()
    writers.set(region, seen.add(tenantId))
  }
  const takeWriters = (region: string) => {
    const taken = [...(writers.get(region) ?? [])]
    writers.delete(region)
    return taken
  }
  const documentStore = createDocumentStore(database, () => clock.now())
  // Operators have a connection of their own, so that the watchdog never waits for their statements.
  const forOperators = new Map(regions.map((region) => [region.id, createSessionServer(superuserOf(region))]))
  return {
    jobs: [
      watchSessions({ ...shared, servers, limits, applyLogins, sawWriter, measure: measures.ended }),
      watchLogins(applyLogins, { servers: logins, clock, log }),
      restorePasswords({ servers: logins, store: createPasswordStore(database, seal, () => clock.now()), clock, log }),
      watchDocuments({ servers: logins, store: documentStore, takeWriters, applyLogins, clock, log }),
    ],
    sharedServer(region) {
      const server = forOperators.get(region)
      if (server === undefined) throw new Error(`The region "${region}" has no shared server.`)
      return (sql) => server.run(sql)
    },
    async close() {
      await Promise.all([...servers.values(), ...forOperators.values()].map((server) => server.close()))
    },
  }
}
