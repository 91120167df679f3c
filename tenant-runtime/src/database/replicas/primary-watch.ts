// Finds out whether the primary of a cluster is lost. What one tenant's request finds applies to all tenants of the server.
import type pg from 'pg'
import { createClient } from '../create-client.ts'
import type { Login } from '../connections.ts'
import { connectTo, mayPass } from '../reach-primary.ts'
import { withSignal } from '../with-signal.ts'
import { withValidPassword } from '../valid-password.ts'

/** The maximum time of a login that tests the primary. */
const probeMilliseconds = 1_000
/** The pause between two tests of a lost primary. */
const pauseMilliseconds = 250
/** The time for which a primary counts as lost without another test. */
const lostMilliseconds = 2_000

interface Server {
  /** The time of the last test that found no primary; undefined if it found one. */
  lostAt: number | undefined
  probing: Promise<boolean> | undefined
}

/** The primaries of this runtime's databases. */
export class PrimaryWatch {
  readonly #servers = new Map<string, Server>()
  readonly #now: () => number

  /** Creates the watch. @param now returns monotonic milliseconds */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Whether no primary was found a moment ago. If so, it is tested again meanwhile. */
  isLost(login: Login): boolean {
    const server = this.#servers.get(addressOf(login))
    if (server?.lostAt === undefined) return false
    const milliseconds = this.#now() - server.lostAt
    if (milliseconds >= lostMilliseconds) return false
    if (milliseconds >= pauseMilliseconds) void this.probe(login)
    return true
  }

  /** Tests whether a primary accepts logins. Callers at the same time share a test. @returns whether it does not */
  probe(login: Login): Promise<boolean> {
    const address = addressOf(login)
    const server = this.#servers.get(address) ?? { lostAt: undefined, probing: undefined }
    this.#servers.set(address, server)
    server.probing ??= isMissing(login).then((isLost) => {
      server.probing = undefined
      server.lostAt = isLost ? this.#now() : undefined
      if (!isLost) this.#servers.delete(address)
      return isLost
    })
    return server.probing
  }
}

function addressOf({ url }: Login): string {
  return url === '' ? '' : new URL(url).host
}

/** Whether no primary responds. A rejected login is a response. */
function isMissing(login: Login): Promise<boolean> {
  return withPrimary(login, () => Promise.resolve(false)).catch(mayPass)
}

/**
 * Whether a session of the same login runs a query, or could not be seen. If not, the query or its result is lost, as when the host of
 * a router is gone.
 */
export async function isRunning(login: Login, pid: number): Promise<boolean> {
  const text = "select from pg_stat_activity where pid = $1 and state <> 'idle'"
  try {
    const requesting = withPrimary(login, (client) => client.query(text, [pid]))
    const { rowCount } = await withSignal(requesting, AbortSignal.timeout(2 * probeMilliseconds), () => undefined)
    return rowCount === 1
  } catch {
    return true
  }
}

/** Runs work on a connection of its own. @throws the errors of the connection and of `work` */
function withPrimary<T>({ tenantId, url, otherUrls = [] }: Login, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const limits = { connectMilliseconds: probeMilliseconds, statementMilliseconds: probeMilliseconds }
  return withValidPassword([url, ...otherUrls], async (each) => {
    const client = createClient(tenantId, each, limits)
    // The end of the connection is not an error.
    client.on('error', () => undefined)
    try {
      await connectTo(client, 'primary')
      return await work(client)
    } finally {
      client.end().catch(() => undefined)
    }
  })
}
