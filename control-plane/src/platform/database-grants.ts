// After this control plane takes the lead, checks once that tenants can connect to no database of a shared Postgres
// except those of homes, and that they can execute no function that writes outside of a quota. It revokes what is open.
import type { Clock } from './clock.ts'
import type { OpenRights } from './closed-databases.ts'
import type { Leadership } from './leader.ts'
import type { Log } from './log.ts'

interface DatabaseGrantDeps {
  /** Shared servers, by region. */
  servers: ReadonlyMap<string, { closeDatabases(): Promise<OpenRights> }>
  clock: Clock
  log: Pick<Log, 'warn'>
}

/** Delay until the next attempt: the server may still be starting. */
const retryMilliseconds = 5_000

/** Maximum number of functions that the log names. A new server has more of them in each database. */
const maxListed = 20

/**
 * Creates the leader's job that closes the databases of the regions' servers to logins without a grant, until it has
 * succeeded at each server.
 */
export function checkDatabaseGrants({
  servers,
  clock,
  log,
}: DatabaseGrantDeps): (leadership: Leadership) => Promise<void> {
  const check = async (region: string, server: { closeDatabases(): Promise<OpenRights> }, signal: AbortSignal) => {
    const stopped = () => signal.aborted
    while (!stopped()) {
      try {
        const { databases, functions } = await server.closeDatabases()
        if (databases.length > 0)
          log.warn({ region, databases }, 'Databases were open to every login of their server and have been closed.')
        if (functions.length > 0)
          log.warn(
            { region, functions: functions.slice(0, maxListed), count: functions.length },
            'Functions were open to every login of their database and have been closed.',
          )
        return
      } catch (error) {
        log.warn({ region, err: error }, 'The grants of the databases could not be checked. The check is retried.')
        await clock.sleep(retryMilliseconds, signal).catch(() => undefined)
      }
    }
  }
  return async ({ lost }) => {
    await Promise.all([...servers].map(([region, server]) => check(region, server, lost)))
  }
}
