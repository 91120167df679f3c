// Lets changes flow back into the old home of one move, until the move is reverted, or the time for that is over. Then it
// removes the old home.
import pg from 'pg'
import { asAdmin, BackupError, dropLogin } from '../backups/index.ts'
import { LeadershipLost } from '../platform/leadership-lost.ts'
import { attemptMove } from './attempt-move.ts'
import { destinationOf, originOf } from './choose-ends.ts'
import { followChanges, pendingBytes } from './follow-changes.ts'
import type { Locations } from './locations.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { unfollowedSql } from './move-sql.ts'
import { isAtDestination, isAtOrigin, namesOf, streamOf, type MoveJob, type ReverseJob } from './move.ts'
import { structureChanged } from './prepare-reverse.ts'
import { isSwitched, removeReverse } from './remove-remains.ts'
import { completeOrContinue, currentObjects, revertMove } from './revert-move.ts'
import { rejectStopped } from './reject-stopped.ts'
import { reasonToEnd, revertedReason } from './reverse.ts'
import { locationsOf } from './run-move.ts'
import { sharedServers } from './locations.ts'
import { withSessions } from './sessions.ts'
import { whileLinked } from './watch-link.ts'

const pollMilliseconds = 1_000
const structureMilliseconds = 15_000
const retryMilliseconds = 5_000
const moveMilliseconds = 6 * 3_600_000
/** Classes of SQLSTATEs that depend on the change, so that it would fail again. */
const lastingState = /^(0A|21|22|23|38|39|42|P0)/

/** Runs until the old home is removed, or the lead is lost. Never throws. */
export async function runReverse(job: ReverseJob, deps: MoveDeps, lost: AbortSignal): Promise<void> {
  const { reverses, epoch, clock, log } = deps
  const details = { operation: job.operationId, tenant: job.tenantId, from: job.from, to: job.to }
  const isOver = () => lost.aborted
  while (!isOver()) {
    let isEnding = false
    try {
      const facts = await reverses.facts(job)
      if (facts === undefined || facts.reverse.removed === true) return
      const reason = reasonToEnd(facts, job, clock.now())
      isEnding = facts.revert === undefined && reason !== undefined
      const { revert: wanted } = facts
      const servers = sharedServers(locationsOf(deps, job))
      if (wanted !== undefined) await whileLinked(servers, clock, lost, (linked) => revert(wanted, job, deps, linked))
      else if (reason === undefined) await whileLinked(servers, clock, lost, (linked) => follow(job, deps, linked))
      else if (await reverses.end(job, reason, epoch)) {
        await whileLinked(servers, clock, lost, (linked) => removeOldHome(job, reason, deps, linked))
        log.info({ ...details, reason }, 'The old home of a move was removed.')
      }
    } catch (error) {
      if (error instanceof LeadershipLost || isOver()) return
      const reason = isEnding ? undefined : await reasonFor(error, job, deps, lost).catch(() => undefined)
      // If the end cannot be recorded, the next round finds the same reason.
      if (reason !== undefined && (await reverses.end(job, reason, epoch).catch(() => false)))
        log.warn({ ...details, err: error }, 'A move cannot be reverted any more.')
      else {
        log.warn({ ...details, err: error }, 'The work on an old home was interrupted by an error. It is retried.')
        await clock.sleep(retryMilliseconds, lost).catch(() => undefined)
      }
    }
  }
}

/** Applies changes to the old home, until there is something else to do. */
async function follow(job: ReverseJob, deps: MoveDeps, lost: AbortSignal): Promise<void> {
  const { reverses, failpoint, clock } = deps
  const { tenantId } = job
  const locations = backwards(locationsOf(deps, job))
  const stream = streamOf(tenantId, 'reverse')
  await originOf(job, deps).ensureRunning(lost)
  // A tenant with services of its own that is paused or suspended changes nothing.
  if (!(await locations.source.isPresent(lost))) {
    await clock.sleep(retryMilliseconds, lost)
    return
  }
  const { tables } = await currentObjects(locations, deps, lost)
  const serviceTables = new Set(tables.flatMap(({ name, isService }) => (isService ? [name] : [])))
  await withSessions({ ...locations, stream }, lost, async (sessions) => {
    let checked = clock.now().getTime()
    for (;;) {
      const { rows } = await followChanges({ ...sessions, tenantId, stream, serviceTables, failpoint })
      await pendingBytes(sessions.slot, stream)
      const facts = await reverses.facts(job)
      if (facts === undefined || facts.revert !== undefined || reasonToEnd(facts, job, clock.now()) !== undefined)
        return
      const unfollowed = await sessions.slot.query(unfollowedSql, [`"${tenantId}"`, stream.publication])
      if (unfollowed.rows.length > 0) throw structureChanged()
      if (clock.now().getTime() - checked >= structureMilliseconds) {
        await currentObjects(locations, deps, lost)
        checked = clock.now().getTime()
      }
      if (rows === 0) await clock.sleep(pollMilliseconds, lost)
    }
  })
}

/** Carries out an attempt of a revert. One that fails leaves the reverse as it was, unless it would fail again. */
async function revert(operation: MoveJob, job: ReverseJob, deps: MoveDeps, lost: AbortSignal): Promise<void> {
  const { ledger, reverses, epoch, clock, failpoint, log } = deps
  const signal = AbortSignal.any([lost, clock.timeout(moveMilliseconds)])
  const work = {
    finish: (one: MoveJob) => completeOrContinue(one, job, deps, signal),
    run: (one: MoveJob) => revertMove(one, deps, signal),
  }
  await originOf(job, deps).ensureRunning(signal)
  const { outcome, reason, failure, isRetried } = await attemptMove(operation, work, deps, lost)
  if (isRetried) {
    await clock.sleep(retryMilliseconds, signal)
    return
  }
  await ledger.settle(operation, outcome === 'not moved' ? reason : undefined, epoch)
  await failpoint('revert.settled')
  if (outcome !== 'not moved') {
    await reverses.removed(job, revertedReason, epoch)
    log.info({ operation: operation.operationId, tenant: job.tenantId, to: job.from }, 'A move was reverted.')
  } else if (failure !== undefined) {
    const lasting = await lastingReason(failure, job, deps, lost)
    if (lasting !== undefined) await reverses.end(job, lasting, epoch)
  }
}

/** Removes everything that a move has left for a revert. */
async function removeOldHome(job: ReverseJob, reason: string, deps: MoveDeps, signal: AbortSignal): Promise<void> {
  const { ledger, reverses, epoch, failpoint } = deps
  const { tenantId } = job
  const locations = locationsOf(deps, job)
  await failpoint('reverse.ended')
  const { source, target } = locations
  if (await target.isPresent(signal)) await destinationOf(job, deps).removeSlot(streamOf(tenantId, 'reverse'), signal)
  else await rejectStopped(tenantId, (home) => isAtDestination(job, home), deps)
  await removeReverse(locations, job, tenantId, signal)
  const isPresent = await source.isPresent(signal)
  if (isPresent) for (const role of [namesOf(tenantId).source, namesOf(tenantId).target]) await dropLogin(source, role)
  await failpoint('reverse.stream-removed')
  // After a revert, the old home is in use.
  const home = await ledger.homeOf(tenantId)
  const isUsed = home !== undefined && isAtOrigin(job, home)
  if (!isUsed && (!isPresent || (await isSwitched(locations, job, signal))))
    await originOf(job, deps).removeRetained(signal)
  await failpoint('reverse.home-removed')
  await reverses.removed(job, reason, epoch)
}

/** Returns the reason for the end of a reverse after an error: what the control database has, or what the error shows. */
async function reasonFor(error: unknown, job: ReverseJob, deps: MoveDeps, lost: AbortSignal) {
  const facts = await deps.reverses.facts(job)
  const known = facts && reasonToEnd(facts, job, deps.clock.now())
  return known ?? lastingReason(error, job, deps, lost)
}

/** Returns the public reason for which changes can never flow back again; undefined if a later round may succeed. */
async function lastingReason(
  error: unknown,
  job: ReverseJob,
  deps: MoveDeps,
  signal: AbortSignal,
): Promise<string | undefined> {
  const locations = backwards(locationsOf(deps, job))
  const { slot } = streamOf(job.tenantId, 'reverse')
  const { rows } = await asAdmin(locations.source, signal, (client) =>
    client.query(`select 1 from pg_replication_slots where slot_name = $1 and wal_status <> 'lost'`, [slot]),
  )
  if (rows.length === 0 && job.toIsolation === 'cluster-per-tenant')
    return 'Another member of the cluster has become the primary, or changes were removed before they flowed back.'
  if (rows.length === 0)
    return 'The server has removed changes before they flowed back, because of max_slot_wal_keep_size.'
  try {
    await currentObjects(locations, deps, signal)
  } catch (cause) {
    if (cause instanceof MoveError) return cause.message
    if (cause instanceof BackupError) return structureChanged().message
    throw cause
  }
  const cause = error instanceof MoveError ? error.cause : error
  if (cause instanceof pg.DatabaseError && lastingState.test(cause.code ?? ''))
    return error instanceof MoveError ? error.message : 'A change could not be applied to the old home.'
  return error instanceof MoveError && error.isLasting ? error.message : undefined
}

function backwards({ tenantId, source, target }: Locations): Locations {
  return { tenantId, source: target, target: source }
}
