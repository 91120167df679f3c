// Replaces the passwords of the superusers of Postgres servers, while this control plane leads. Until a server has the wanted
// password, all control planes also try the former one, so a kill at any point leaves a server that they can connect to.
import type { Clock } from '../platform/clock.ts'
import { literal } from '../platform/identifiers.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { repeat } from '../platform/repeat.ts'
import { connected } from '../platform/single-connection.ts'
import { isInvalidPassword, type SuperuserUrl } from '../platform/superuser-url.ts'
import { verifierOf } from '../homes/index.ts'
import type { Failpoint } from '../reconcile/index.ts'

/** A server whose superuser's password can be replaced. */
export interface PasswordServer {
  /** The name in the log and in the audit log. */
  name: string
  url: SuperuserUrl
  /** Whether the wanted password is not recorded as that of the server. */
  isPending(wanted: string): Promise<boolean>
  /**
   * Sets the wanted password through `set`, unless another one is wanted now, and records it in the same transaction.
   * @returns whether it has replaced a former password
   * @throws LeadershipLost without any change
   */
  replace(wanted: string, epoch: bigint, set: () => Promise<void>): Promise<boolean>
}

interface ReplaceDeps {
  servers: readonly PasswordServer[]
  failpoint: Failpoint
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

const intervalMilliseconds = 2_000
/** Time between two checks of a server that needs none: an operator may have restored an older copy of its data. */
const checkMilliseconds = 60_000
const statementMilliseconds = 5_000

/** Creates the job. A server that does not respond delays no other. */
export function replaceSuperuserPasswords({ servers, failpoint, clock, log }: ReplaceDeps) {
  const follow = (server: PasswordServer, { epoch, lost }: Leadership): Promise<void> => {
    let checkAt = 0
    const work = async (): Promise<number> => {
      const [wanted] = await server.url.passwords()
      if (wanted === undefined) return intervalMilliseconds
      const isPending = await server.isPending(wanted)
      if (!isPending && clock.now().getTime() < checkAt) return intervalMilliseconds
      checkAt = clock.now().getTime() + checkMilliseconds
      try {
        const isSet = await accepts(server.url, wanted)
        if (isSet && !isPending) return intervalMilliseconds
        await failpoint('superuser-password.before')
        const isReplaced = await server.replace(wanted, epoch, async () => {
          if (!isSet) await setPassword(server.url, wanted)
          await failpoint('superuser-password.set')
        })
        if (isReplaced) log.info({ server: server.name }, "The superuser's password was replaced.")
        await failpoint('superuser-password.recorded')
      } catch (error) {
        // Other parts report a server that does not respond.
        if (isPending) throw error
      }
      return intervalMilliseconds
    }
    return repeat(
      {
        clock,
        work,
        onError: (error) =>
          log.warn(
            { err: error, server: server.name },
            "The superuser's password could not be replaced. It is tried again.",
          ),
      },
      lost,
    )
  }
  return async (leadership: Leadership): Promise<void> => {
    await Promise.all(servers.map((server) => follow(server, leadership)))
  }
}

async function accepts(url: SuperuserUrl, password: string): Promise<boolean> {
  try {
    await connected({ connectionString: url.withPassword(password) }, () => Promise.resolve())
    return true
  } catch (error) {
    if (isInvalidPassword(error)) return false
    throw error
  }
}

/** Sessions continue. Only the verifier is sent, so that no log of the server contains the password. */
async function setPassword(url: SuperuserUrl, password: string): Promise<void> {
  await connected({ connectionString: url, query_timeout: statementMilliseconds }, (client) =>
    client.query(`alter role current_user password ${literal(verifierOf(password))}`),
  )
  url.use(password)
}
