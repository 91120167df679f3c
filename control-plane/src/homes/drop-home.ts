// Drops a home in transactions of a bounded number of locks, and ends the tenants' sessions that block them. It can be
// interrupted at any point; the next call continues.
import type pg from 'pg'
import {
  dropOwnedSql,
  dropRolesSql,
  dropSchemaSql,
  endBlockersSql,
  partSteps,
  policyCommandsSql,
  referringDatabasesSql,
  schemasOf,
} from './drop-home-sql.ts'
import { identifier } from '../platform/identifiers.ts'
import { isState } from '../platform/sql-state.ts'

/** Options of a drop. */
export interface DropProgress {
  /** Ends the drop between two parts. */
  signal: AbortSignal
  /** Called after each part. */
  onPart: () => void | Promise<void>
}

/** Number of commands in one transaction. Each locks about five relations. */
const partSize = 100
const maxTries = 20

/** SQLSTATEs after which a part is tried again. */
const lockNotAvailable = '55P03'
const deadlock = '40P01'
const stillReferenced = '2BP01'
const concurrentUpdate = 'XX000'
const outOfLocks = '53200'
/** SQLSTATEs after which the next part is read again: another session has dropped or renamed an object. */
const gone = ['42P01', '42704']

/**
 * Drops a home's schemas and roles.
 * @param poolOf returns the superuser's pool of a database of the server
 */
export async function dropHome(
  poolOf: (database: string) => pg.Pool,
  database: string,
  tenantId: string,
  progress: DropProgress,
): Promise<void> {
  const pool = poolOf(database)
  for (const schema of schemasOf(tenantId)) await dropSchema(pool, schema, progress)
  // Another tenant may name a role again between two of these steps.
  for (let tries = 1; ; tries++) {
    const { rows: databases } = await pool.query<{ name: string }>(referringDatabasesSql(tenantId))
    for (const { name } of databases) {
      const referring = poolOf(name)
      await dropParts(referring, progress, async (size) => {
        const { rows } = await referring.query<{ command: string }>(policyCommandsSql(tenantId), [size])
        return rows
      })
      await inTransaction(referring, dropOwnedSql(tenantId))
      await progress.onPart()
    }
    try {
      await inTransaction(pool, dropRolesSql(tenantId))
      return
    } catch (error) {
      if (!isState(error, stillReferenced) || tries === maxTries) throw error
    }
  }
}

/** Drops a schema with its content. An absent one is not an error. */
export async function dropSchema(pool: pg.Pool, schema: string, progress: DropProgress): Promise<void> {
  for (const step of partSteps)
    await dropParts(pool, progress, async (size) => {
      const { rows } = await pool.query<{ command: string }>(step, [identifier(schema), size])
      return rows
    })
  await inTransaction(pool, dropSchemaSql(schema))
  await progress.onPart()
}

/** Runs the commands that `next` returns, part by part, until it returns none. */
async function dropParts(
  pool: pg.Pool,
  { signal, onPart }: DropProgress,
  next: (size: number) => Promise<{ command: string }[]>,
): Promise<void> {
  let size = partSize
  for (let failures = 0; ;) {
    signal.throwIfAborted()
    const commands = await next(size)
    if (commands.length === 0) return
    try {
      await inTransaction(pool, commands.map(({ command }) => command).join(';\n'))
    } catch (error) {
      if (!isState(error, outOfLocks, ...gone) || ++failures === maxTries) throw error
      // What others hold leaves less room, or an object has many others that depend on it.
      if (isState(error, outOfLocks)) size = Math.ceil(size / 4)
    }
    await onPart()
  }
}

/**
 * Runs SQL in one transaction. It waits only briefly for locks, because others' statements queue behind it. From the
 * second try on, it ends the tenants' sessions that block it.
 */
async function inTransaction(pool: pg.Pool, sql: string): Promise<void> {
  const client = await pool.connect()
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const pid = rows[0]?.pid ?? 0
    for (let tries = 1; ; tries++) {
      const timeout = tries === 1 ? '200ms' : '2s'
      const running = client.query(`set local search_path = ''; set local lock_timeout = '${timeout}';\n${sql}`)
      const unblocking = tries === 1 ? undefined : pool.query(endBlockersSql(pid))
      const [ran] = await Promise.allSettled([running, unblocking])
      if (ran.status === 'fulfilled') return
      const error: unknown = ran.reason
      if (!isState(error, lockNotAvailable, deadlock, concurrentUpdate) || tries === maxTries) throw error
    }
  } finally {
    client.release()
  }
}
