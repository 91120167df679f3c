// Checks, once after this control plane takes the lead, that tenants can enter no database of a shared Postgres but those
// of homes, and repairs what a kill or somebody else has left open.
import type { Clock } from './clock.ts'
import type { Leadership } from './leader.ts'
import type { Log } from './log.ts'

interface DatabaseGrantDeps {
  /** Shared servers, by their region. */
  servers: ReadonlyMap<string, { closeDatabases(): Promise<string[]> }>
  clock: Clock
  log: Pick<Log, 'warn'>
}

/** The server may still be starting. */
const retryMilliseconds = 5_000

/**
 * Job of the leader that closes the databases of regions' servers to logins that no grant names, until it has succeeded
 * at each.
 */
export function checkDatabaseGrants({
  servers,
  clock,
  log,
}: DatabaseGrantDeps): (leadership: Leadership) => Promise<void> {
  const check = async (region: string, server: { closeDatabases(): Promise<string[]> }, signal: AbortSignal) => {
    const stopped = () => signal.aborted
    while (!stopped()) {
      try {
        const databases = await server.closeDatabases()
        if (databases.length > 0)
          log.warn({ region, databases }, 'databases were open to every login of their server; they are closed now')
        return
      } catch (error) {
        log.warn({ region, err: error }, 'the grants of the databases could not be checked; it is tried again')
        await clock.sleep(retryMilliseconds, signal).catch(() => undefined)
      }
    }
  }
  return async ({ lost }) => {
    await Promise.all([...servers].map(([region, server]) => check(region, server, lost)))
  }
}
