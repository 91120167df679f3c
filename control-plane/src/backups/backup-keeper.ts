// Carries out backups, restores and verifications while this control plane leads, plans what the tenants' schedules say,
// and removes what an earlier leader has left.
import { repeat } from '../housekeeping/repeat.ts'
import type { Leadership } from '../persistence/leader.ts'
import { LeadershipLost } from '../reconcile/reconcile-store.ts'
import type { Job, JobKind } from './backup.ts'
import { isLasting, NotWanted, publicReason } from './backup-error.ts'
import { runBackup } from './backup-job.ts'
import type { JobDeps } from './job-deps.ts'
import { runRestore } from './restore-job.ts'
import { planSchedule } from './schedule-plan.ts'
import { isScratchId, scratchId } from './scratch-stack.ts'
import { runVerify } from './verify-job.ts'

export interface BackupKeeperDeps extends Omit<JobDeps, 'epoch'> {
  /** Told of every job that ended. */
  measure: (kind: JobKind, outcome: 'succeeded' | 'failed', seconds: number) => void
}

const lookMilliseconds = 1_000
const atOnce = 2
const jobMilliseconds = 6 * 3_600_000
/** Of restores and verifications; a backup is not begun a second time. */
const mostAttempts = 3
const againMilliseconds = 5_000
const observeMilliseconds = 30_000

const work: Record<JobKind, (job: Job, deps: JobDeps, signal: AbortSignal) => Promise<void>> = { backup: runBackup, restore: runRestore, verify: runVerify }

/** Runs while this control plane leads. */
export function keepBackups(keeperDeps: BackupKeeperDeps): (leadership: Leadership) => Promise<void> {
  const { clock, log } = keeperDeps
  return async ({ epoch, lost }) => {
    const deps = { ...keeperDeps, epoch }
    const running = new Map<string, Promise<void>>()
    let recovered = false

    const begin = (job: Job) => {
      const ended = carryOut(job, deps, lost).finally(() => running.delete(job.operationId))
      running.set(job.operationId, ended)
    }
    const look = async () => {
      const jobs = await deps.ledger.openJobs()
      if (!recovered) {
        await recover(jobs, deps, lost)
        recovered = true
        return
      }
      await planBackups(deps)
      const homes = new Set(jobs.filter(({ operationId, kind }) => running.has(operationId) && kind !== 'verify').map(({ tenantId }) => tenantId))
      for (const job of jobs) {
        if (running.size >= atOnce) return
        if (running.has(job.operationId) || (job.kind !== 'verify' && homes.has(job.tenantId))) continue
        homes.add(job.tenantId)
        begin(job)
      }
    }

    await repeat(
      {
        clock,
        work: async () => {
          await look()
          return lookMilliseconds
        },
        onProblem: (error) => log.warn({ err: error }, 'the backups could not be looked after; it is tried again'),
      },
      lost,
    )
    await Promise.all(running.values())
  }
}

type Deps = BackupKeeperDeps & JobDeps

/** Never throws. */
async function carryOut(job: Job, deps: Deps, lost: AbortSignal): Promise<void> {
  const { ledger, clock, log, epoch } = deps
  const begin = clock.now().getTime()
  const seconds = () => (clock.now().getTime() - begin) / 1000
  const details = { operation: job.operationId, kind: job.kind, tenant: job.tenantId, backup: job.backup.id }
  try {
    if (!(await ledger.begin(job, epoch))) return
    await work[job.kind](job, deps, AbortSignal.any([lost, clock.timeout(jobMilliseconds)]))
    deps.measure(job.kind, 'succeeded', seconds())
    log.info({ ...details, seconds: seconds() }, `a ${job.kind} is done`)
  } catch (error) {
    if (error instanceof LeadershipLost || lost.aborted) return
    log.warn({ ...details, err: error }, `a ${job.kind} failed`)
    const isOver = error instanceof NotWanted || job.kind === 'backup' || isLasting(error) || job.attempts + 1 >= mostAttempts
    if (isOver) {
      deps.measure(job.kind, 'failed', seconds())
      await ledger.fail(job, publicReason(error), epoch).catch((cause: unknown) => log.warn({ ...details, err: cause }, 'a failure could not be recorded'))
    } else await clock.sleep(againMilliseconds, lost).catch(() => undefined)
  }
}

/** What an earlier leader had begun: backups are not carried on, everything else is begun anew. Nothing without an owner stays. */
async function recover(jobs: readonly Job[], deps: Deps, signal: AbortSignal): Promise<void> {
  const { ledger, target, regions, epoch, clock, log } = deps
  for (const job of jobs) {
    if (job.kind !== 'backup' || job.state !== 'running') continue
    await ledger.fail(job, 'the control plane ended while it was taken', epoch)
    await target.remove(job.backup.id)
  }
  // Without a row there is no key: nobody can read it.
  const known = await ledger.backupIds()
  for (const id of await target.list()) {
    if (!known.has(id)) await target.remove(id)
  }
  const wanted = new Set(jobs.filter(({ kind }) => kind === 'verify').map(({ operationId }) => scratchId(operationId)))
  for (const [region, { engine }] of regions) {
    if (engine === undefined) continue
    try {
      const { containers, volumes } = await engine.observe(undefined, AbortSignal.any([signal, clock.timeout(observeMilliseconds)]))
      const stacks = new Set([...containers, ...volumes].map(({ labels }) => labels.stack))
      for (const stack of stacks) if (isScratchId(stack) && !wanted.has(stack)) await engine.remove(stack, signal)
    } catch (error) {
      // The sweep of orphans comes by later.
      log.warn({ region, err: error }, 'scratch homes could not be looked for')
    }
  }
}

async function planBackups({ ledger, clock, epoch }: Deps): Promise<void> {
  for (const tenant of await ledger.scheduled()) {
    const step = planSchedule(tenant, clock.now())
    if (step.do === 'follow') await ledger.recordSeen(tenant.id, tenant.schedule, step.at, epoch)
    if (step.do === 'skip') await ledger.recordSeen(tenant.id, tenant.schedule, step.plannedAt, epoch)
    if (step.do === 'take') await ledger.plan(tenant.id, tenant.schedule, step.plannedAt, epoch)
  }
}
