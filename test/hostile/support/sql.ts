// SQL sessions of an attacker.
import pg from 'pg'
import type { Scene } from '../attack.ts'
import type { Tenant } from './tenants.ts'

/** Opens a session with the tenant's `database_url`. It ends with the attack. */
export async function openSql({ onEnd }: Pick<Scene, 'onEnd'>, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 20_000 })
  // The watchdog may end the session.
  client.on('error', () => undefined)
  await client.connect()
  onEnd(() => Promise.race([client.end().catch(() => undefined), new Promise((resolve) => setTimeout(resolve, 1_000))]))
  return client
}

/** Opens as many sessions as the tenant gets, at most `count`. */
export async function openManySql(scene: Scene, { databaseUrl }: Tenant, count: number): Promise<pg.Client[]> {
  const opened = await Promise.allSettled(Array.from({ length: count }, () => openSql(scene, databaseUrl)))
  return opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
}

/** Describes the outcome of SQL: the SQLSTATE with the message, the end of the session, or `ok`. */
export async function outcomeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'ok'
  } catch (error) {
    return describeSqlError(error)
  }
}

/** Runs SQL and describes its outcome. */
export const trySql = (client: pg.Client, sql: string, values?: unknown[]): Promise<string> =>
  outcomeOf(client.query(sql, values))

/** Returns the SQLSTATE and the message of an error. */
export function describeSqlError(error: unknown): string {
  if (error instanceof pg.DatabaseError) return `${error.code ?? ''} ${error.message}`
  return error instanceof Error ? error.message : String(error)
}

/**
 * Repeats SQL in each session until the attack is over, or until the session is ended.
 * @returns the outcome that was neither `ok` nor the end of the session; otherwise the last one
 */
export async function repeatSql(
  scene: Scene,
  clients: readonly pg.Client[],
  sql: string | ((n: number) => string),
): Promise<string> {
  let n = 0
  const seen = await Promise.all(
    clients.map(async (client) => {
      let rejected: string | undefined
      let last = 'no session'
      while (!scene.isOver()) {
        last = await trySql(client, typeof sql === 'string' ? sql : sql(n++))
        if (last === 'ok') continue
        if (/^[0-9A-Z]{5} /.test(last)) rejected ??= last
        else break
      }
      return rejected ?? last
    }),
  )
  return seen.find((text) => text !== 'ok') ?? seen[0] ?? 'no session'
}
