// Samples the sessions on every shared Postgres each second, and ends those over a limit. What it did is reported in the
// tenant's conditions, in the log, and to operators' webhooks.
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import { LeadershipLost } from '../platform/leadership-lost.ts'
import type { Log } from '../platform/log.ts'
import { repeat } from '../platform/repeat.ts'
import type { Condition } from '../tenants/index.ts'
import { actionOf, describeVerdict, reasons, verdictCondition } from './describe-verdict.ts'
import { judgeSessions, noHistory, type History, type Offences, type Session, type Verdict } from './judge-sessions.ts'
import { limitsOfPlan, type SessionLimitsConfig } from './session-limits.ts'
import type { SessionServer } from './session-server.ts'

/** A verdict as it is stored and reported. */
export interface Report {
  tenantId: string
  offences: Offences
  condition: Condition
  action: ReturnType<typeof actionOf>
  /** Key of the event, which is sent once. */
  once: string
}

/** The watchdog's store. Its writes throw LeadershipLost once another control plane leads. */
export interface SessionWatchStore {
  /** Returns the plans of tenants. */
  plansOf(tenantIds: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** Returns what the tenants of a region did before this control plane began to lead. */
  offences(regionId: string): Promise<ReadonlyMap<string, Offences>>
  report(report: Report, epoch: bigint): Promise<void>
}

/** Receives how many sessions were ended, by measure and action. */
export type MeasureEnded = (region: string, reason: string, action: 'cancelled' | 'terminated', count: number) => void

/** The dependencies of the watchdog. */
export interface SessionWatchDeps {
  /** Shared servers, by region. */
  servers: ReadonlyMap<string, SessionServer>
  store: SessionWatchStore
  limits: SessionLimitsConfig
  /** Closes the SQL logins that are to be closed, without waiting for the next check of them. */
  applyLogins: (region: string, epoch: bigint) => Promise<void>
  /** Receives a tenant whose own login executes a statement or has written. */
  sawWriter: (region: string, tenantId: string) => void
  clock: Clock
  log: Pick<Log, 'warn'>
  measure: MeasureEnded
}

const intervalMs = 1_000
const pressingMs = 250
const plansMs = 10_000
/** Time in which equal actions on one tenant are reported once. */
const reportMs = 60_000
const hourMs = 3_600_000

/** Creates the leader's job that watches the sessions. */
export function watchSessions(deps: SessionWatchDeps): (leadership: Leadership) => Promise<void> {
  return async ({ epoch, lost }) => {
    await Promise.all(
      [...deps.servers].map(([region, server]) => {
        const watch = createSessionWatch(region, server, deps, epoch)
        return repeat({ clock: deps.clock, work: watch.poll, onError: watch.onError }, lost)
      }),
    )
  }
}

export function createSessionWatch(
  region: string,
  server: SessionServer,
  { store, limits, applyLogins, sawWriter, clock, log, measure }: Omit<SessionWatchDeps, 'servers'>,
  epoch: bigint,
) {
  let history: History | undefined
  let plans = new Map<string, string>()
  let plansAt = 0
  let failedAt = -Infinity
  const reported = new Map<string, { at: number; text: string }>()
  /** Reports that the control database has not stored yet, by tenant: the newest of each. */
  const unstored = new Map<string, Report>()

  const readPlans = async (tenantIds: readonly string[], now: number): Promise<void> => {
    if (now - plansAt >= plansMs) {
      plans = new Map()
      plansAt = now
    }
    const missing = tenantIds.filter((id) => !plans.has(id))
    // Without the control database, the limits of the lowest plan apply to tenants whose plan is not known.
    const read = missing.length === 0 ? undefined : await store.plansOf(missing).catch(() => undefined)
    for (const [id, plan] of read ?? []) plans.set(id, plan)
  }

  const end = async (sessions: readonly Session[], kind: 'cancel' | 'terminate', verdict: Verdict): Promise<void> => {
    for (const session of sessions) await server.end(session, kind)
    const action = kind === 'cancel' ? 'cancelled' : 'terminated'
    if (sessions.length > 0) measure(region, reasons[verdict.measure], action, sessions.length)
  }

  const report = (verdict: Verdict, offences: Offences, now: number): void => {
    const { tenantId, measure: over, cancel, terminate, closeUntil } = verdict
    const action = actionOf(verdict)
    const text = `${over} ${action}`
    const last = reported.get(tenantId)
    if (closeUntil === undefined && last?.text === text && now - last.at < reportMs) return
    reported.set(tenantId, { at: now, text })
    const roles = [...new Set([...cancel, ...terminate].map(roleOf))]
    log.warn(
      { region, tenant: tenantId, roles, reason: reasons[over], action, detail: describeVerdict(verdict) },
      'SQL sessions of a tenant were ended, because they were over a limit.',
    )
    const once = `sql:${tenantId}:${over}:${action}:${Math.floor(now / hourMs)}`
    unstored.set(tenantId, { tenantId, offences, condition: verdictCondition(verdict, new Date(now)), action, once })
  }

  /** Stores the reports. Those that the control database does not store now remain for the next poll. */
  const storeReports = async (): Promise<void> => {
    for (const [tenantId, one] of unstored) {
      await store.report(one, epoch)
      unstored.delete(tenantId)
    }
  }

  const poll = async (): Promise<number> => {
    history ??= { ...noHistory, offences: await store.offences(region) }
    const sample = await server.sample()
    const now = clock.now().getTime()
    for (const { tenantId, login, isActive, hasWritten } of sample.sessions)
      if (login === 'admin' && (isActive || hasWritten)) sawWriter(region, tenantId)
    const tenantIds = [...new Set(sample.sessions.map(({ tenantId }) => tenantId))]
    await readPlans(tenantIds, now)
    const judged = judgeSessions(
      sample,
      (tenantId) => limitsOfPlan(limits, plans.get(tenantId)),
      limits.server,
      history,
      now,
    )
    history = judged.history
    // Sessions end first, so that a slow control database delays nothing.
    for (const verdict of judged.verdicts) {
      await end(verdict.cancel, 'cancel', verdict)
      await end(verdict.terminate, 'terminate', verdict)
    }
    for (const verdict of judged.verdicts) {
      const offences = judged.history.offences.get(verdict.tenantId)
      if (offences !== undefined) report(verdict, offences, now)
    }
    await storeReports()
    if (judged.verdicts.some(({ closeUntil }) => closeUntil !== undefined)) await applyLogins(region, epoch)
    for (const [tenantId, { at }] of reported) if (now - at >= reportMs) reported.delete(tenantId)
    return judged.isPressing ? pressingMs : intervalMs
  }

  const onError = (error: unknown) => {
    const now = clock.now().getTime()
    if (now - failedAt < reportMs) return
    failedAt = now
    log.warn({ region, err: error }, 'The SQL sessions of tenants could not be watched. The watch is retried.')
  }

  return {
    /** Polls once. @returns the milliseconds until the next poll */
    poll: (): Promise<number> =>
      poll().catch((error: unknown) => {
        if (error instanceof LeadershipLost) throw error
        onError(error)
        return intervalMs
      }),
    onError,
  }
}

function roleOf({ tenantId, login }: Session): string {
  return login === 'runtime' ? tenantId : `${tenantId}_${login}`
}
