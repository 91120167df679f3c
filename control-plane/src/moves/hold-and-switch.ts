// Holds a tenant's requests, and makes the copy its home. Until the one transaction that renames the schema of the source,
// everything can be reverted; from then on, the move is completed.
import type pg from 'pg'
import { asAdmin, asReader, type HomeObjects } from '../backups/index.ts'
import { identifier, literal } from '../platform/identifiers.ts'
import { isState } from '../platform/sql-state.ts'
import { rejectChangedObjects } from './compare-homes.ts'
import { followChanges, flushLog, type FollowSessions } from './follow-changes.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import {
  runningFunctionsSql,
  endSessionsSql,
  lockSql,
  openCopySql,
  releaseLeaseSql,
  renameSql,
  takeLeaseSql,
} from './move-sql.ts'
import { namesOf, regionAfter, type MoveJob, type Stream } from './move.ts'
import type { Locations } from './locations.ts'
import { releaseLease } from './release-lease.ts'
import { beginAtSql } from './reverse-state.ts'
import { serveNewHome } from './serve-new-home.ts'

const lockNotAvailable = '55P03'
const pollMilliseconds = 20
/** Time after a hold in which Postgres must have responded. */
const linkMilliseconds = 1_000
/** Time for which the move waits until gateways hold the requests. The locks do not depend on it. */
const gatewayMilliseconds = 500
const deliveryMilliseconds = 20_000
const leaseSeconds = 40
/** Time in which a run that was claimed before the move had the lease is recorded. */
const claimMilliseconds = 300

interface Switch extends Locations {
  job: MoveJob
  objects: HomeObjects
  sessions: FollowSessions
  stream: Stream
  serviceTables: ReadonlySet<string>
  /** Whether changes can flow back after the switch. */
  hasReverse: boolean
  /** Copies the files that the copy lacks. */
  copyFiles: (signal: AbortSignal) => Promise<void>
  /** Ends all sessions of the move, with this reason. */
  cut: (reason: MoveError) => void
}

/** The sessions at the source during a hold. At a tenant's own Postgres, each starts a program, so that they open before it. */
interface HoldSessions {
  /** The session that locks the home and switches. */
  locking: pg.Client
  /** One that reads the structure of the home, without the rights of a superuser. */
  reader: pg.Client
}

/**
 * Switches to the copy, and serves it. @throws MoveError, temporary if the hold took too long; then the source serves again
 */
export async function holdAndSwitch(work: Switch, deps: MoveDeps, signal: AbortSignal): Promise<void> {
  const { tenantId, source } = work
  await pauseDeliveries(work, deps, signal)
  try {
    const inSessions = (reader: pg.Client) =>
      asAdmin(source, signal, async (locking) => {
        await switchInHold(work, { locking, reader }, deps, signal)
        await deps.failpoint('move.renamed')
        // The sessions of the move end afterwards. A revert has more to do in the old home first.
        if (!work.stream.isReverse) await serveNewHome(work.job, deps, signal)
      })
    await asReader(source, tenantId, tenantId, signal, inSessions, namesOf(tenantId).source)
  } catch (cause) {
    await releaseLease(source, tenantId, deps.clock.timeout(5_000)).catch(() => undefined)
    throw cause
  }
}

/** Holds the requests, and renames the schema of the source once the copy has all of the home. */
async function switchInHold(
  work: Switch,
  { locking, reader }: HoldSessions,
  deps: MoveDeps,
  signal: AbortSignal,
): Promise<void> {
  const { job, source } = work
  const { ledger, epoch, failpoint, clock } = deps
  const rename = { mayBeCommitted: false }
  let mayHaveAgreed = false
  const stopLimit = clock.later(deps.holdMilliseconds + linkMilliseconds, () => work.cut(notResponding(deps)))
  try {
    const begun = clock.now().getTime()
    const remaining = () => deps.holdMilliseconds - (clock.now().getTime() - begun)
    await ledger.hold(job, epoch)
    await untilGatewaysHold(work, deps, signal)
    await failpoint('move.held')
    await lockHome(locking, work, remaining, deps)
    await failpoint('move.locked')
    // A run that was claimed just before the move had the lease may have been recorded since.
    if ((await runningFunctions(locking, job.tenantId)) > 0) throw functionRuns()
    mayHaveAgreed = true
    await agreeAtLast(work, reader)
    await work.copyFiles(signal)
    await failpoint('move.agreed')
    if (remaining() <= 0) throw heldTooLong(deps)
    await ledger.step(job, 'switch', {}, epoch)
    // Writers that wait for the locks end without a change. New sessions wait in their place.
    await locking.query(endSessionsSql(job.tenantId, source.database))
    await locking.query(renameSql(job))
    signal.throwIfAborted()
    rename.mayBeCommitted = true
    await locking.query('commit')
  } catch (cause) {
    // The rename may have been committed after all; the caller finds out. Otherwise, requests do not wait for Postgres.
    if (!rename.mayBeCommitted) {
      await ledger.release(job, 'catch up', epoch)
      if (mayHaveAgreed) await returnLease(work)
    }
    throw cause
  } finally {
    stopLimit()
  }
}

/** Lets no function begin by itself, and waits until those in progress have ended. */
async function pauseDeliveries({ source, job }: Switch, deps: MoveDeps, signal: AbortSignal): Promise<void> {
  const { tenantId } = job
  const { clock } = deps
  await asAdmin(source, signal, async (client) => {
    await client.query('set session_replication_role = replica')
    await client.query(takeLeaseSql(tenantId, leaseSeconds))
    await clock.sleep(claimMilliseconds, signal)
    for (let waited = 0; ; waited += pollMilliseconds) {
      if ((await runningFunctions(client, tenantId)) === 0) break
      if (waited >= deliveryMilliseconds) {
        await client.query(releaseLeaseSql(tenantId))
        throw functionRuns()
      }
      if (waited === 0)
        await deps.ledger.step(job, 'catch up', { waits_for: 'a function that was triggered' }, deps.epoch)
      await clock.sleep(pollMilliseconds, signal)
    }
  })
}

/** Returns the number of functions that run because of a change or a planned time. */
async function runningFunctions(client: pg.Client, tenantId: string): Promise<number> {
  const { rows } = await client.query<{ running: number }>(runningFunctionsSql(tenantId))
  return rows[0]?.running ?? 0
}

async function untilGatewaysHold({ tenantId, job }: Switch, deps: MoveDeps, signal: AbortSignal): Promise<void> {
  const regions = [job.region, regionAfter(job)].flatMap((id) => deps.regions.get(id) ?? [])
  const gateways = new Set(regions.flatMap(({ config }) => config.gateway_internal_urls))
  const bounded = AbortSignal.any([signal, deps.clock.timeout(gatewayMilliseconds)])
  const holds = async (url: string) => {
    while (!bounded.aborted) {
      const route = await deps.probe.route(url, tenantId, bounded).catch(() => undefined)
      if (route?.phase === 'paused') return
      await deps.clock.sleep(pollMilliseconds, bounded).catch(() => undefined)
    }
  }
  await Promise.all([...gateways].map(holds))
  signal.throwIfAborted()
}

/** Locks the home: waits until no transaction that has changed it is in progress, and lets none begin. */
async function lockHome(
  client: pg.Client,
  { tenantId, objects }: Switch,
  remaining: () => number,
  deps: MoveDeps,
): Promise<void> {
  const names = {
    tables: objects.tables.map(({ name }) => name),
    sequences: objects.sequences.map(({ name }) => name),
  }
  for (;;) {
    try {
      await client.query(lockSql(tenantId, names, deps.holdMilliseconds + 2_000))
      return
    } catch (cause) {
      await client.query('rollback')
      if (!isState(cause, lockNotAvailable)) throw cause
      if (remaining() <= 0) throw heldTooLong(deps)
    }
  }
}

/**
 * Applies the last changes, and sets what the log does not contain. In the old home, to which a move reverts, the lease stays
 * until the switch: if the switch fails, the end of the lease is one of the changes that flow back.
 */
async function agreeAtLast(work: Switch, reader: pg.Client): Promise<void> {
  const { tenantId, objects, sessions, stream } = work
  const upTo = await flushLog(sessions.slot)
  const [{ rows: positions }] = await Promise.all([
    sessions.slot.query<{ name: string; value: string; isCalled: boolean }>(positionsSql(tenantId, objects)),
    rejectChangedObjects(reader, tenantId, objects),
  ])
  // Nothing is added to the log for this home any more.
  await followChanges({ ...work, ...sessions }, { upTo })
  const { admin } = sessions
  for (const { name, value, isCalled } of positions)
    await admin.query(
      `select pg_catalog.setval(${literal(`${identifier(tenantId)}.${identifier(name)}`)}, ` +
        `${literal(value)}::pg_catalog.int8, ${String(isCalled)})`,
    )
  if (!stream.isReverse) await admin.query(releaseLeaseSql(tenantId))
  if (work.hasReverse) {
    // What the server of the copy commits from now on is of the tenant.
    const { rows } = await admin.query<{ lsn: string }>('select pg_current_wal_insert_lsn()::text as lsn')
    await sessions.slot.query(beginAtSql(tenantId, rows[0]?.lsn ?? ''))
  }
  await admin.query(openCopySql(tenantId))
}

/** Gives the copy the lease again that it had before both agreed, because the end of the lease in the home is a change of that row. */
async function returnLease({ tenantId, sessions, stream }: Switch): Promise<void> {
  // If the link is broken, so is the next attempt.
  if (!stream.isReverse) await sessions.admin.query(takeLeaseSql(tenantId, leaseSeconds)).catch(() => undefined)
}

function positionsSql(tenantId: string, { sequences }: HomeObjects): string {
  const positions = sequences.map(({ name }) => {
    const sequence = `${identifier(tenantId)}.${identifier(name)}`
    return `select ${literal(name)} as name, last_value::text as value, is_called as "isCalled" from ${sequence}`
  })
  return positions.length === 0 ? "select '' as name limit 0" : positions.join(' union all ')
}

function functionRuns(): MoveError {
  return new MoveError('A function that was triggered has not ended in time.', { isTemporary: true })
}

function notResponding({ holdMilliseconds }: MoveDeps): MoveError {
  return new MoveError(`Postgres did not respond in the ${holdMilliseconds} ms for which a move may hold requests.`, {
    isTemporary: true,
  })
}

function heldTooLong({ holdMilliseconds }: MoveDeps): MoveError {
  return new MoveError(
    `The home could not be locked in the ${holdMilliseconds} ms for which a move may hold requests: a transaction has not ended.`,
    { isTemporary: true },
  )
}
