// Decides which sessions of tenants end, and which SQL logins close, from one sample of a server. Pure.
import type { ServerLimits, SessionLimits } from './session-limits.ts'

/** A session of a tenant's login, as one sample shows it. */
export interface Session {
  pid: number
  /** Start of the session as Postgres prints it. Together with the PID it identifies the session. */
  startedAt: string
  tenantId: string
  /** The tenant's login; see `homeRoles`. */
  login: 'runtime' | 'ddl' | 'admin'
  /** Whether it executes a statement. */
  isActive: boolean
  /** Whether its transaction has written. */
  hasWritten: boolean
  memoryBytes: number
  temporaryBytes: number
  /** Entries in the server's table of locks. */
  locks: number
  /** Bytes of write-ahead log since the session began. */
  walBytes: number
  /** Age of the transaction; 0 without one. */
  transactionMs: number
  /** Time since the last statement in an open transaction; 0 otherwise. */
  idleMs: number
  /** The oldest transaction that its snapshot sees as running, with the begin of its own; undefined without a snapshot. */
  snapshot: string | undefined
}

/** One sample of a server. */
export interface Sample {
  sessions: readonly Session[]
  /** Entries that the server's table of locks has room for. */
  lockCapacity: number
  /** Used share of the queue of NOTIFY, from 0 to 1. */
  notificationShare: number
}

export const measures = [
  'memory',
  'locks',
  'temporary_files',
  'wal',
  'notifications',
  'transaction',
  'idle_transaction',
  'snapshot',
] as const
/** The name of what a limit measures. */
export type Measure = (typeof measures)[number]

/** The number of a tenant's offences, which decides the next action. */
export interface Offences {
  strikes: number
  /** Time of the last action, in milliseconds. */
  struckAt: number
  /** Time until which the SQL login is closed, in milliseconds; 0 if it never was. */
  closedUntil: number
}

/** Everything that earlier samples have shown. */
export interface History {
  /** The offences of tenants, by their IDs. */
  offences: ReadonlyMap<string, Offences>
  /** The first sample with the snapshot of each session, and its write-ahead log at the begin of this minute. */
  sessions: ReadonlyMap<string, { snapshot: string | undefined; snapshotSince: number; walAt: number; wal: number }>
  /** Time of the last action about the queue of NOTIFY. */
  notificationsAt: number
}

export const noHistory: History = { offences: new Map(), sessions: new Map(), notificationsAt: 0 }

/** Everything that is done to one tenant because of one limit. */
export interface Verdict {
  tenantId: string
  measure: Measure
  /** The measured amount and its limit, in the unit of the limit. */
  amount: number
  limit: number
  /** `server` if the sessions of all tenants together are over a limit, of which this tenant holds the most. */
  scope: 'tenant' | 'server'
  /** Sessions whose statement is cancelled. */
  cancel: Session[]
  /** Sessions that are terminated. */
  terminate: Session[]
  /** Time until which the SQL login is closed, in milliseconds; undefined if it stays as it is. */
  closeUntil: number | undefined
}

export interface Judgement {
  verdicts: Verdict[]
  history: History
  /** Whether a tenant is over half of a limit, so that the next sample should follow soon. */
  isPressing: boolean
}

/** Memory that every backend needs, which does not count. */
export const baseMemoryBytes = 16 * 2 ** 20
/** Time that an action has to take effect before the next one. */
export const settleMs = 1_000
/** Periods for which the login is closed, one after the other. */
export const closedMs = [10_000, 60_000, 600_000, 3_600_000] as const
/** Time without an offence after which a tenant begins again with the mildest action. */
export const blamelessMs = 600_000
const walWindowMs = 60_000
/** A transaction that is younger does not hold the queue of NOTIFY. */
const notificationAgeMs = 5_000
/** The first action cancels, the second terminates. From this one on, the login is closed. */
const strikesToClose = 3

/** Identifies a session. */
export function sessionKey({ pid, startedAt }: Pick<Session, 'pid' | 'startedAt'>): string {
  return `${pid} ${startedAt}`
}

/** Decides what to do after a sample. @param limitsOf limits of a tenant's plan @param now milliseconds */
export function judgeSessions(
  sample: Sample,
  limitsOf: (tenantId: string) => SessionLimits,
  server: ServerLimits,
  history: History,
  now: number,
): Judgement {
  const sessions = seenSessions(sample.sessions, history, now)
  const offences = recentOffences(history.offences, now)
  const byTenant = Map.groupBy(sample.sessions, ({ tenantId }) => tenantId)
  let isPressing = false
  let notificationsAt = history.notificationsAt

  const excesses = new Map<string, Excess>()
  for (const [tenantId, own] of byTenant) {
    const { found, presses } = excessOf(own, limitsOf(tenantId), sessions, now)
    isPressing ||= presses
    if (found !== undefined) excesses.set(tenantId, found)
  }
  for (const found of serverExcesses(sample, byTenant, server, now - notificationsAt >= 2 * settleMs)) {
    isPressing = true
    if (!excesses.has(found.tenantId)) excesses.set(found.tenantId, found)
  }

  const verdicts: Verdict[] = []
  for (const [tenantId, excess] of excesses) {
    const before = offences.get(tenantId)
    if (before !== undefined && now - before.struckAt < settleMs) continue
    const strikes = (before?.strikes ?? 0) + 1
    // A session that executes nothing can only be terminated.
    const cancel = strikes === 1 ? excess.sessions.filter(({ isActive }) => isActive) : []
    const terminate = excess.sessions.filter((session) => !cancel.includes(session))
    const closes = strikes >= strikesToClose && excess.sessions.some(({ login }) => login === 'admin')
    const closeUntil = closes
      ? now + (closedMs[Math.min(strikes - strikesToClose, closedMs.length - 1)] ?? 0)
      : undefined
    offences.set(tenantId, {
      strikes,
      struckAt: now,
      closedUntil: Math.max(before?.closedUntil ?? 0, closeUntil ?? 0),
    })
    if (excess.measure === 'notifications') notificationsAt = now
    const { measure, amount, limit, scope } = excess
    verdicts.push({ tenantId, measure, amount, limit, scope, cancel, terminate, closeUntil })
  }
  return { verdicts, history: { offences, sessions, notificationsAt }, isPressing }
}

interface Excess {
  tenantId: string
  measure: Measure
  amount: number
  limit: number
  scope: 'tenant' | 'server'
  sessions: Session[]
}

type Seen = Map<string, { snapshot: string | undefined; snapshotSince: number; walAt: number; wal: number }>

/** Adds the sample to what is known of each session, and evicts sessions that have ended. */
function seenSessions(sessions: readonly Session[], history: History, now: number): Seen {
  return new Map(
    sessions.map((session) => {
      const key = sessionKey(session)
      const before = history.sessions.get(key)
      const isSame = before !== undefined && before.snapshot === session.snapshot
      const isSameMinute = before !== undefined && now - before.walAt < walWindowMs
      return [
        key,
        {
          snapshot: session.snapshot,
          snapshotSince: isSame ? before.snapshotSince : now,
          walAt: isSameMinute ? before.walAt : now,
          wal: isSameMinute ? before.wal : session.walBytes,
        },
      ]
    }),
  )
}

function recentOffences(offences: History['offences'], now: number): Map<string, Offences> {
  return new Map(
    [...offences].filter(([, { struckAt, closedUntil }]) => now - Math.max(struckAt, closedUntil) < blamelessMs),
  )
}

const amounts = {
  memory: ({ memoryBytes }: Session) => Math.max(0, memoryBytes - baseMemoryBytes),
  locks: ({ locks }: Session) => locks,
  temporary_files: ({ temporaryBytes }: Session) => temporaryBytes,
}

/** Returns the first limit that a tenant exceeds. */
function excessOf(
  own: readonly Session[],
  limits: SessionLimits,
  seen: Seen,
  now: number,
): { found: Excess | undefined; presses: boolean } {
  const seenOf = (session: Session) => seen.get(sessionKey(session))
  const wal = (session: Session) => session.walBytes - (seenOf(session)?.wal ?? session.walBytes)
  const snapshotSeconds = (session: Session) =>
    session.snapshot === undefined ? 0 : (now - (seenOf(session)?.snapshotSince ?? now)) / 1000
  const written = ({ hasWritten }: Session, milliseconds: number) => (hasWritten ? milliseconds / 1000 : 0)
  const found: (Excess | undefined)[] = [
    summed('memory', own, amounts.memory, limits.memory_bytes),
    summed('locks', own, amounts.locks, limits.locks),
    summed('temporary_files', own, amounts.temporary_files, limits.temporary_bytes),
    summed('wal', own, wal, limits.wal_bytes),
    aged('transaction', own, (one) => written(one, one.transactionMs), limits.transaction_seconds),
    aged('idle_transaction', own, (one) => written(one, one.idleMs), limits.idle_seconds),
    aged('snapshot', own, snapshotSeconds, limits.snapshot_seconds),
  ]
  const half =
    summed('memory', own, amounts.memory, limits.memory_bytes / 2) ??
    summed('locks', own, amounts.locks, limits.locks / 2)
  const first = found.find((one) => one !== undefined)
  return { found: first, presses: first !== undefined || half !== undefined }
}

/** Returns the excess of a sum, with the sessions of the greatest amounts, without which the rest is within the limit. */
function summed(
  measure: Measure,
  own: readonly Session[],
  amountOf: (session: Session) => number,
  limit: number,
  scope: Excess['scope'] = 'tenant',
): Excess | undefined {
  const amount = own.reduce((sum, session) => sum + amountOf(session), 0)
  const [first] = own
  if (first === undefined || amount <= limit) return undefined
  const sessions: Session[] = []
  let rest = amount
  for (const session of own.toSorted((a, b) => amountOf(b) - amountOf(a))) {
    if (rest <= limit) break
    sessions.push(session)
    rest -= amountOf(session)
  }
  return { tenantId: first.tenantId, measure, amount, limit, scope, sessions }
}

/** Returns the excess of an age, with all sessions over the limit. */
function aged(
  measure: Measure,
  own: readonly Session[],
  secondsOf: (session: Session) => number,
  limit: number,
): Excess | undefined {
  const sessions = own.filter((session) => secondsOf(session) > limit)
  const [first] = sessions
  if (first === undefined) return undefined
  const amount = Math.max(...sessions.map(secondsOf))
  return { tenantId: first.tenantId, measure, amount, limit, scope: 'tenant', sessions }
}

/** Returns the tenants that hold the most of what the server has too little of. */
function serverExcesses(
  { sessions, lockCapacity, notificationShare }: Sample,
  byTenant: ReadonlyMap<string, readonly Session[]>,
  server: ServerLimits,
  mayFreeQueue: boolean,
): Excess[] {
  const found: Excess[] = []
  for (const [measure, limit] of [
    ['memory', server.memory_bytes],
    ['locks', server.locks_share * lockCapacity],
  ] as const) {
    const amountOf = amounts[measure]
    const total = sessions.reduce((sum, session) => sum + amountOf(session), 0)
    if (total <= limit) continue
    const sums = [...byTenant.values()].map((own) => ({ own, sum: own.reduce((sum, one) => sum + amountOf(one), 0) }))
    const greatest = sums.reduce((a, b) => (b.sum > a.sum ? b : a))
    // What the other tenants hold stays, so that this tenant has the rest of the limit.
    const excess = summed(measure, greatest.own, amountOf, Math.max(0, limit - (total - greatest.sum)), 'server')
    if (excess !== undefined) found.push({ ...excess, amount: total, limit })
  }
  if (notificationShare > server.notifications_share && mayFreeQueue) {
    // Postgres does not report which session holds the queue back: one that listens, with an old transaction.
    const oldest = sessions.reduce<Session | undefined>(
      (old, one) => (one.transactionMs > (old?.transactionMs ?? notificationAgeMs) ? one : old),
      undefined,
    )
    if (oldest !== undefined)
      found.push({
        tenantId: oldest.tenantId,
        measure: 'notifications',
        amount: notificationShare,
        limit: server.notifications_share,
        scope: 'server',
        sessions: [oldest],
      })
  }
  return found
}
