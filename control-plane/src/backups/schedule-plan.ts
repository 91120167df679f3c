// Whether a tenant's schedule has a backup due. Pure.
import { Cron } from 'croner'
import type { Desired, Status } from '../tenants/index.ts'

export interface ScheduledTenant {
  id: string
  /** Cron expression of 5 fields, UTC. */
  schedule: string
  /** The schedule that was followed last, and up to when. */
  seen: { schedule: string; at: Date } | undefined
  desired: Desired
  status: Status
  /** A backup or a restore of it is under way. */
  busy: boolean
  /** Since when it is paused, as far as is known. */
  pausedAt: Date | undefined
  /** When the newest complete backup was begun. */
  lastBackupAt: Date | undefined
}

type ScheduleStep =
  | { do: 'nothing' }
  /** A schedule that is new: what was planned before does not count. */
  | { do: 'follow'; at: Date }
  /** Nothing can have changed since the last one. */
  | { do: 'skip'; plannedAt: Date }
  | { do: 'take'; plannedAt: Date }

/** Of several planned times that were missed the last one counts. */
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
    // A second later, because a time that is just now counts too.
    const [last] = new Cron(schedule, { timezone: 'UTC' }).previousRuns(1, new Date(now.getTime() + 1000))
    return last !== undefined && last <= now ? last : undefined
  } catch {
    return undefined
  }
}
