// Runs backups, restores and verifications while this control plane leads, plans scheduled backups, compares the target
// with the control database, and removes scratch homes that an earlier leader did not remove.
import type { Engine } from '../engines/index.ts'
import { repeat } from '../platform/repeat.ts'
import type { ChangeFeed } from '../platform/change-feed.ts'
import type { Leadership } from '../platform/leader.ts'
import { LeadershipLost } from '../platform/leadership-lost.ts'
import type { Job, JobKind } from './backup.ts'
import { isPermanent, isTargetFailure, OperationSuperseded, publicReason } from './backup-error.ts'
import { runBackup } from './backup-job.ts'
import type { JobDeps } from './job-deps.ts'
import { createCopier } from './copy-backups.ts'
import { encryptedParts } from './manifest.ts'
import { runRestore } from './restore-job.ts'
import { planSchedule } from './schedule-plan.ts'
import { isScratchId, scratchId } from '../stacks/index.ts'
import { surveyBackups, type FoundBackups, type MissingCopy } from './survey-backups.ts'
import { createTidy } from './tidy-regions.ts'
import { runVerify } from './verify-job.ts'

/** The dependencies of the job that makes, restores, verifies and removes backups. */
export interface BackupJobDeps extends Omit<JobDeps, 'epoch'> {
  /** Reports changes of tenants, among them new operations, which must not wait for the next poll. */
  changes: Pick<ChangeFeed, 'subscribe'>
  /** Receives every job that ended. */
  measure: (kind: JobKind, outcome: 'succeeded' | 'failed', seconds: number) => void
  /** Receives the counts of each comparison of the targets with the control database. */
  found: (counts: FoundBackups) => void
  /** Receives for each target whether it could be listed. */
  available: (target: string, isAvailable: boolean) => void
}

const pollMilliseconds = 1_000
/** The shortest time between two polls, when operations are requested. */
const minPollMilliseconds = 250
/** The maximum number of simultaneous jobs in each region. */
const maxRunningJobs = 2
const jobMilliseconds = 6 * 3_600_000
/**
 * The maximum number of attempts of restores and verifications. A backup is not attempted again, except to record a
 * committed one.
 */
const maxAttempts = 3
const retryMilliseconds = 5_000
const observeMilliseconds = 30_000
const surveyMilliseconds = 60_000

const work: Record<JobKind, (job: Job, deps: JobDeps, signal: AbortSignal) => Promise<void>> = {
  backup: runBackup,
  restore: runRestore,
  verify: runVerify,
}

/** Creates the job, which runs while this control plane leads. */
export function runBackups(controllerDeps: BackupJobDeps): (leadership: Leadership) => Promise<void> {
  const { clock, log } = controllerDeps
  return async ({ epoch, lost }) => {
    const deps = { ...controllerDeps, epoch }
    const running = new Map<string, { region: string; ended: Promise<void> }>()
    const jobsIn = (region: string) => [...running.values()].filter((job) => job.region === region).length
    const tidy = createTidy(deps)
    let recovered = false
    let surveyedAt = -Infinity
    const reported = new Set<string>()
    let missingCopies: readonly MissingCopy[] = []
    let copying: MissingCopy | undefined
    const copier = createCopier(deps)

    const begin = (job: Job) => {
      const { region } = job.backup
      const ended = carryOut(job, deps, lost)
        .then((hasFailed) => {
          if (hasFailed) tidy.jobFailed(region)
        })
        .finally(() => running.delete(job.operationId))
      running.set(job.operationId, { region, ended })
    }
    const survey = async () => {
      const at = clock.now().getTime()
      // Only a survey that succeeded may judge what an earlier leader left.
      if (recovered && at - surveyedAt < surveyMilliseconds) return
      surveyedAt = at
      const survey = { targets: deps.targets, states: () => deps.ledger.backupStates(), log }
      try {
        const { found, copies } = await surveyBackups(survey, reported)
        deps.found(found)
        for (const { name } of deps.targets.each) deps.available(name, !found.unavailable.includes(name))
        missingCopies = copies
      } catch (error) {
        if (isTargetFailure(error)) for (const { name } of deps.targets.each) deps.available(name, false)
        throw error
      }
    }
    const poll = async () => {
      await survey()
      const jobs = await deps.ledger.openJobs()
      if (!recovered) {
        await recover(jobs, deps, lost)
        recovered = true
        return
      }
      const tidied = tidy.run(new Set([...running.values()].map(({ region }) => region)), lost)
      await deps.ledger.failAbandoned(new Set(running.keys()), epoch)
      await planBackups(deps)
      const homes = new Set(
        jobs
          .filter(({ operationId, kind }) => running.has(operationId) && kind !== 'verify')
          .map(({ tenantId }) => tenantId),
      )
      for (const job of jobs) {
        const { region } = job.backup
        if (running.has(job.operationId) || tidied.has(region) || jobsIn(region) >= maxRunningJobs) continue
        if (job.kind !== 'verify' && homes.has(job.tenantId)) continue
        homes.add(job.tenantId)
        begin(job)
      }
    }

    const copyOne = async () => {
      ;[copying, ...missingCopies] = missingCopies
      if (copying !== undefined) await copier(copying, lost)
    }
    const reportCopy = (error: unknown) => {
      const details = { backup: copying?.backupId, target: copying?.to.name, err: error }
      log.warn(details, 'A backup could not be copied to a target. It is retried.')
    }
    let changed = new AbortController()
    const unsubscribe = deps.changes.subscribe((change) => {
      if (change === 'resync' || change.kind === 'observed') changed.abort()
    })
    const pollAndWait = async () => {
      changed = new AbortController()
      await poll()
      await clock.sleep(minPollMilliseconds, lost).catch(() => undefined)
      const waiting = AbortSignal.any([lost, changed.signal])
      await clock.sleep(pollMilliseconds - minPollMilliseconds, waiting).catch(() => undefined)
      return 0
    }
    const copyAndWait = async () => {
      await copyOne()
      return pollMilliseconds
    }
    const onError = (error: unknown) =>
      log.warn({ err: error }, 'The backups could not be polled. The poll is retried.')
    await Promise.all([
      repeat({ clock, work: pollAndWait, onError }, lost),
      // A copy may take hours, and must not delay jobs.
      repeat({ clock, work: copyAndWait, onError: reportCopy }, lost),
    ])
    unsubscribe()
    await Promise.all([tidy.idle(), ...[...running.values()].map(({ ended }) => ended)])
  }
}

type Deps = BackupJobDeps & JobDeps

/** Runs an attempt of a job. Never throws. @returns whether it has failed */
async function carryOut(job: Job, deps: Deps, lost: AbortSignal): Promise<boolean> {
  const { ledger, clock, log, epoch } = deps
  const begin = clock.now().getTime()
  const seconds = () => (clock.now().getTime() - begin) / 1000
  const details = { operation: job.operationId, kind: job.kind, tenant: job.tenantId, backup: job.backup.id }
  try {
    if (!(await ledger.begin(job, epoch))) return false
    await work[job.kind](job, deps, AbortSignal.any([lost, clock.timeout(jobMilliseconds)]))
    deps.measure(job.kind, 'succeeded', seconds())
    log.info({ ...details, seconds: seconds() }, `The job "${job.kind}" succeeded.`)
    return false
  } catch (error) {
    if (error instanceof LeadershipLost || lost.aborted) return true
    log.warn({ ...details, err: error }, `The job "${job.kind}" failed.`)
    const isLast = isPermanent(error) || job.attempts + 1 >= maxAttempts
    const isOver =
      error instanceof OperationSuperseded || isLast || (job.kind === 'backup' && !(await isCommitted(job, deps)))
    if (isOver) {
      deps.measure(job.kind, 'failed', seconds())
      await endFailed(job, error, deps).catch((cause: unknown) =>
        log.warn({ ...details, err: cause }, 'The failure of a job could not be recorded.'),
      )
    } else await clock.sleep(retryMilliseconds, lost).catch(() => undefined)
    return true
  }
}

/** Whether the backup is committed. A committed backup outweighs a failure to record it. Never throws. */
async function isCommitted({ backup }: Job, { targets, log }: Deps): Promise<boolean> {
  return targets.committed(backup.id, encryptedParts).then(
    (copy) => copy !== undefined,
    (error: unknown) => {
      log.warn({ backup: backup.id, err: error }, 'The backup targets could not be read.')
      return true
    },
  )
}

/**
 * Records a failure. A backup whose verification failed for any reason shows the error, unless the verification was
 * superseded.
 */
async function endFailed(job: Job, error: unknown, { ledger, epoch }: Deps): Promise<void> {
  if (job.kind === 'verify' && !(error instanceof OperationSuperseded))
    await ledger.recordVerified(job, publicReason(error), epoch)
  await ledger.fail(job, publicReason(error), epoch)
}

/**
 * Takes over the jobs of an earlier leader: interrupted backups fail, committed ones are recorded, and other jobs begin
 * again.
 */
async function recover(jobs: readonly Job[], deps: Deps, signal: AbortSignal): Promise<void> {
  const { ledger, targets, regions, epoch, clock, log } = deps
  for (const job of jobs) {
    if (job.kind !== 'backup' || job.state !== 'running' || (await isCommitted(job, deps))) continue
    await ledger.fail(job, 'The control plane stopped during the backup.', epoch)
    // A target that does not respond now is cleaned by a later survey.
    await targets
      .discard(job.backup.id)
      .catch((error: unknown) =>
        log.warn({ backup: job.backup.id, err: error }, 'An incomplete backup could not be removed.'),
      )
  }
  const wanted = new Set(jobs.filter(({ kind }) => kind !== 'backup').map(({ operationId }) => scratchId(operationId)))
  const removeScratchHomes = async (engine: Engine) => {
    const { containers, volumes } = await engine.observe(
      undefined,
      AbortSignal.any([signal, clock.timeout(observeMilliseconds)]),
    )
    const stacks = new Set([...containers, ...volumes].map(({ labels }) => labels.stack))
    for (const stack of stacks) if (isScratchId(stack) && !wanted.has(stack)) await engine.remove(stack, signal)
  }
  await Promise.all(
    [...regions].map(async ([region, { engine }]) => {
      if (engine === undefined) return
      await removeScratchHomes(engine).catch((error: unknown) => {
        // The sweep of orphaned stacks removes them later.
        log.warn({ region, err: error }, 'The search for scratch homes failed.')
      })
    }),
  )
}

async function planBackups({ ledger, clock, epoch }: Deps): Promise<void> {
  for (const tenant of await ledger.scheduled()) {
    const step = planSchedule(tenant, clock.now())
    if (step.do === 'follow') await ledger.recordSeen(tenant.id, tenant.schedule, step.at, epoch)
    if (step.do === 'skip') await ledger.recordSeen(tenant.id, tenant.schedule, step.plannedAt, epoch)
    if (step.do === 'take') await ledger.plan(tenant.id, tenant.schedule, step.plannedAt, epoch)
  }
}
