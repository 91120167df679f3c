// Decides whether a tenant's schedule has a backup due. Pure.
import { Cron } from 'croner'
import type { Desired, Status } from '../tenants/index.ts'

export interface ScheduledTenant {
  id: string
  /** The cron expression of 5 fields, UTC. */
  schedule: string
  /** The schedule that was followed last, and until when. */
  seen: { schedule: string; at: Date } | undefined
  desired: Desired
  status: Status
  /** Whether a backup or a restore of the tenant is in progress. */
  busy: boolean
  /** The time at which the tenant was paused, if known. */
  pausedAt: Date | undefined
  /** The time at which the newest complete backup was begun. */
  lastBackupAt: Date | undefined
}

type ScheduleStep =
  | { do: 'nothing' }
  /** Follow a new schedule. Earlier planned times do not count. */
  | { do: 'follow'; at: Date }
  /** Skip a planned time, because nothing can have changed since the last backup. */
  | { do: 'skip'; plannedAt: Date }
  | { do: 'take'; plannedAt: Date }

/** Returns the step for the tenant's schedule. Of several missed times only the last one counts. */
export function planSchedule(tenant: ScheduledTenant, now: Date): ScheduleStep {
  const { schedule, seen, desired, status } = tenant
  if (seen?.schedule !== schedule) return { do: 'follow', at: now }
  const plannedAt = lastPlanned(schedule, now)
  if (plannedAt === undefined || plannedAt <= seen.at || tenant.busy) return { do: 'nothing' }
  if (desired === 'active' && status === 'ready') return { do: 'take', plannedAt }
  if (desired !== 'paused' || status !== 'paused') return { do: 'nothing' }
  const { pausedAt, lastBackupAt } = tenant
  const isUnchanged = pausedAt !== undefined && lastBackupAt !== undefined && lastBackupAt > pausedAt
  return { do: isUnchanged ? 'skip' : 'take', plannedAt }
}

function lastPlanned(schedule: string, now: Date): Date | undefined {
  try {
    // A second is added, because a time that is now counts too.
    const [last] = new Cron(schedule, { timezone: 'UTC' }).previousRuns(1, new Date(now.getTime() + 1000))
    return last !== undefined && last <= now ? last : undefined
  } catch {
    return undefined
  }
}
