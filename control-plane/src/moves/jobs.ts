// The job that moves homes, while this control plane leads.
import type { Database } from '../platform/database.ts'
import { LeadershipLost } from '../platform/leadership-lost.ts'
import type { Leadership } from '../platform/leader.ts'
import { repeat } from '../platform/repeat.ts'
import { attemptMove } from './attempt-move.ts'
import type { MoveDeps, MoveJobDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { regionAfter, type MoveJob } from './move.ts'
import { completeOrRevert, locationsOf, moveHome } from './run-move.ts'
import { runReverse } from './run-reverse.ts'
import { createMoveLedger } from './store-ledger.ts'
import { createReverseLedger } from './store-reverses.ts'
import { sharedServers } from './locations.ts'
import { whileLinked } from './watch-link.ts'

const pollMilliseconds = 1_000
/** The maximum number of simultaneous moves in each region. */
const maxRunningMoves = 2
const moveMilliseconds = 6 * 3_600_000
const retryMilliseconds = 5_000
const removalPollMilliseconds = 200

/** The dependencies of the job. */
interface MoveHomesDeps extends Omit<
  MoveJobDeps,
  'ledger' | 'reverses' | 'holdMilliseconds' | 'reverseSeconds' | 'bytesPerSecond'
> {
  database: Database
  now: () => Date
  config: { moveHoldMilliseconds: number; moveReverseSeconds: number; moveBytesPerSecond: number }
}

/** Creates the job. */
export function moveHomes({
  database,
  now,
  config,
  ...rest
}: MoveHomesDeps): (leadership: Leadership) => Promise<void> {
  const ledger = createMoveLedger(database, now)
  const jobDeps = {
    ...rest,
    ledger,
    reverses: createReverseLedger(database),
    reverseSeconds: config.moveReverseSeconds,
    holdMilliseconds: config.moveHoldMilliseconds,
    bytesPerSecond: config.moveBytesPerSecond,
  }
  const { clock, log } = jobDeps
  return async ({ epoch, lost }) => {
    const deps = { ...jobDeps, epoch }
    const running = new Map<string, { regions: ReadonlySet<string>; ended: Promise<void> }>()
    const hasRoom = (region: string) =>
      [...running.values()].filter(({ regions }) => regions.has(region)).length < maxRunningMoves
    const reversing = new Map<string, Promise<void>>()
    let changed = new AbortController()
    const unsubscribe = jobDeps.changes.subscribe((change) => {
      if (change === 'resync' || change.kind === 'observed') changed.abort()
    })
    const work = async () => {
      changed = new AbortController()
      for (const job of await ledger.unsettled()) {
        const regions = new Set([job.region, regionAfter(job)])
        if (running.has(job.operationId) || ![...regions].every(hasRoom)) continue
        const ended = carryOut(job, deps, lost).finally(() => running.delete(job.operationId))
        running.set(job.operationId, { regions, ended })
      }
      for (const job of await jobDeps.reverses.open()) {
        if (reversing.has(job.operationId)) continue
        const ended = runReverse(job, deps, lost).finally(() => reversing.delete(job.operationId))
        reversing.set(job.operationId, ended)
      }
      await clock.sleep(pollMilliseconds, AbortSignal.any([lost, changed.signal])).catch(() => undefined)
      return 50
    }
    const onError = (error: unknown) => log.warn({ err: error }, 'The moves could not be polled. The poll is retried.')
    await repeat({ clock, work, onError }, lost)
    unsubscribe()
    await Promise.all([...[...running.values()].map(({ ended }) => ended), ...reversing.values()])
  }
}

/** Runs an attempt of a move. Never throws. */
async function carryOut(job: MoveJob, deps: MoveDeps, lost: AbortSignal): Promise<void> {
  const { ledger, epoch, clock, log, reverseSeconds } = deps
  const details = { operation: job.operationId, tenant: job.tenantId, from: job.from, to: job.to }
  const signal = AbortSignal.any([lost, clock.timeout(moveMilliseconds)])
  const attempt = (linked: AbortSignal) =>
    attemptMove(
      job,
      {
        finish: (one) => completeOrRevert(one, deps, linked),
        run: (one) => moveHome(one, deps, linked),
      },
      deps,
      lost,
    )
  try {
    // Nothing of this move exists yet, but the old home of the last one may.
    if (job.attempts === 0 && !(await endLastReverse(job, deps, signal))) return
    const { outcome, reason, isRetried } = await whileLinked(
      sharedServers(locationsOf(deps, job)),
      clock,
      signal,
      attempt,
    )
    if (isRetried) {
      await clock.sleep(retryMilliseconds, signal)
      return
    }
    const until = new Date(clock.now().getTime() + 1_000 * reverseSeconds)
    const end = outcome === 'not moved' ? reason : undefined
    await ledger.settle(job, end, epoch, outcome === 'moved, revertible' ? until : undefined)
    if (outcome !== 'not moved') log.info(details, 'A home was moved to another database.')
  } catch (error) {
    if (error instanceof LeadershipLost || lost.aborted) return
    log.warn({ ...details, err: error }, 'A move could not be completed or reverted. It is retried.')
    await clock.sleep(retryMilliseconds, lost).catch(() => undefined)
  }
}

/** Ends the reverse of the tenant's last move. @returns whether the move is still wanted; otherwise it is settled */
async function endLastReverse(job: MoveJob, deps: MoveDeps, signal: AbortSignal): Promise<boolean> {
  const { ledger, reverses, epoch, clock } = deps
  try {
    for (;;) {
      const last = await reverses.ofTenant(job.tenantId)
      if (last === undefined) return true
      await ledger.step(job, 'prepare', { waits_for: 'the removal of the old home of the last move' }, epoch)
      await reverses.end(last, 'Another move of the tenant has begun.', epoch)
      await clock.sleep(removalPollMilliseconds, signal)
    }
  } catch (cause) {
    if (!(cause instanceof MoveError)) throw cause
    await ledger.settle(job, cause.message, epoch)
    return false
  }
}
