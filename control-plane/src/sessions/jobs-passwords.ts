// Restores the passwords of the services' logins on shared servers. A tenant's code that runs in such a login may change its
// password, and would lock out the tenant's own runtime or reloads.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { repeatInRegions } from '../platform/repeat-in-regions.ts'
import { isVerifierOf, type ChangedLogins, type ServiceLogin } from '../homes/index.ts'

/** The services' logins of tenants on one server. */
export interface PasswordServer {
  /** Returns the logins that may have changed after the call that returned `mark`; without a mark, all of them. */
  changedLogins(mark: string | undefined): Promise<ChangedLogins>
  /** Sets the password of a login. An absent role is not an error. */
  setPassword(tenantId: string, login: ServiceLogin['login'], password: string): Promise<void>
}

export interface PasswordStore {
  /** Returns the valid passwords of those of the tenants that have a home in the region, the newest first. */
  passwords(
    regionId: string,
    tenantIds: readonly string[],
  ): Promise<ReadonlyMap<string, Readonly<Record<ServiceLogin['login'], readonly string[]>>>>
}

/** The dependencies of the job that restores passwords. */
export interface PasswordDeps {
  servers: ReadonlyMap<string, PasswordServer>
  store: PasswordStore
  clock: Clock
  log: Pick<Log, 'warn'>
}

const intervalMs = 2_000
/** After a start, all logins are compared, some at a time. */
const batchSize = 200

/** Creates the leader's job that restores the passwords in all regions. */
export function restorePasswords({ servers, store, clock, log }: PasswordDeps) {
  const restore = async (region: string, server: PasswordServer, logins: readonly ServiceLogin[]): Promise<void> => {
    const known = await store.passwords(region, [...new Set(logins.map(({ tenantId }) => tenantId))])
    for (const { tenantId, login, verifier } of logins) {
      const passwords = known.get(tenantId)?.[login] ?? []
      const [newest] = passwords
      // A login without a password in the control database belongs to a tenant that is being removed.
      if (newest === undefined || passwords.some((password) => isVerifierOf(verifier, password))) continue
      await server.setPassword(tenantId, login, newest)
      log.warn({ region, tenant: tenantId, login }, "The password of a service's login was changed, and is restored.")
    }
  }
  return async ({ lost }: Leadership): Promise<void> => {
    const createWork = (region: string, server: PasswordServer) => {
      let mark: string | undefined
      return async () => {
        const changed = await server.changedLogins(mark)
        for (let at = 0; at < changed.logins.length && !lost.aborted; at += batchSize)
          await restore(region, server, changed.logins.slice(at, at + batchSize))
        // After an error, the next call returns the same logins again.
        mark = changed.mark
        return intervalMs
      }
    }
    const failure = "The passwords of the services' logins could not be compared. The comparison is retried."
    await repeatInRegions(servers, { clock, log, createWork, failure }, lost)
  }
}
