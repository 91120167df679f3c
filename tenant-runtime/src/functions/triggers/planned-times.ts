// Claims planned times when they are due. All runtimes that serve the tenant try to; the first one succeeds.
import { RuntimeError } from '../../errors.ts'
import { anonymous } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { ClaimTaken } from '../invocations/invocation-store.ts'
import { isFailedRun, isGone, type DispatchDeps } from './dispatch.ts'
import type { Jobs } from './jobs.ts'
import { dueTime, missedMilliseconds, nextRun, type Schedule } from './schedule.ts'
import { claimPlannedTime, deleteOldTimes, skipPlannedTime } from './schedule-runs.ts'
import type { TriggeredFunction } from './triggered-function.ts'

interface Planned {
  fn: TriggeredFunction
  schedule: Schedule
  /** Planned times up to this one are done. */
  since: Date
  next: Date | undefined
}

export class PlannedTimes {
  readonly #deps: DispatchDeps
  readonly #jobs: Jobs
  /** Called when another runtime has more recent data than this one. */
  readonly #onStale: () => void
  #planned: Planned[] = []

  constructor(deps: DispatchDeps, jobs: Jobs, onStale: () => void) {
    this.#deps = deps
    this.#jobs = jobs
    this.#onStale = onStale
  }

  watch(functions: readonly TriggeredFunction[]): void {
    this.#planned = functions.flatMap((fn) => {
      const { schedule, since } = fn
      return schedule === undefined ? [] : [{ fn, schedule, since, next: nextRun(schedule, since) }]
    })
  }

  /** Claims the planned times that are due. @returns milliseconds until the next one; undefined if there is none */
  poll(tenant: Tenant): number | undefined {
    const now = this.#deps.now()
    let first: number | undefined
    for (const planned of this.#planned) {
      if (planned.next !== undefined && planned.next <= now) {
        const due = dueTime(planned.schedule, planned.since, now)
        // Its job has failed, and pauses. The end of the pause starts the next poll.
        if (due !== undefined && this.#jobs.has(keyOf(planned.fn, due))) continue
        planned.next = nextRun(planned.schedule, now)
        if (due !== undefined) this.#claim(tenant, planned, due, now)
      }
      if (planned.next !== undefined) first = Math.min(first ?? Infinity, planned.next.getTime() - now.getTime())
    }
    return first
  }

  #claim(tenant: Tenant, planned: Planned, due: Date, now: Date): void {
    const { fn, schedule, since } = planned
    planned.since = due
    const isMissed = schedule.missed === 'skip' && now.getTime() - due.getTime() > missedMilliseconds
    this.#jobs.begin(keyOf(fn, due), async () => {
      try {
        if (isMissed) await skipPlannedTime(tenant, fn, due, 'missed')
        else await this.#run(tenant, fn, due)
      } catch (error) {
        // The claim failed, so the planned time is still to be done.
        planned.next = due
        planned.since = since
        throw error
      }
    })
  }

  async #run(tenant: Tenant, fn: TriggeredFunction, due: Date): Promise<void> {
    const plannedAt = due.toISOString()
    try {
      await this.#deps.invoke(tenant, {
        name: fn.name,
        trigger: 'schedule',
        context: anonymous,
        input: Buffer.from(JSON.stringify({ type: 'schedule', planned_at: plannedAt })),
        variables: { TENANTRY_PLANNED_AT: plannedAt, TENANTRY_CONTENT_TYPE: 'application/json' },
        claim: claimPlannedTime(due, fn.triggerType),
      })
    } catch (error) {
      if (error instanceof ClaimTaken) {
        // Another runtime has claimed it, or an earlier run continues, or the trigger has changed.
        const isDone = await skipPlannedTime(tenant, fn, due, 'overlap')
        this.#onStale()
        if (isDone) return
        throw new RuntimeError('FUNCTIONS_BUSY', 'The home moves, and lets no function begin. The run is retried.')
      }
      if (isGone(error)) {
        this.#onStale()
        return
      }
      if (!isFailedRun(error)) throw error
    }
    await deleteOldTimes(tenant, fn.id, due)
  }
}

const keyOf = ({ id }: TriggeredFunction, due: Date) => `${id} at ${due.toISOString()}`
