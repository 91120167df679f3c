// The public texts of a verdict about a tenant's sessions. Pure.
import type { Condition } from '../tenants/index.ts'
import type { Measure, Verdict } from './judge-sessions.ts'

/** Reason codes of the condition `Sql`, by measure. */
export const reasons: Record<Measure, string> = {
  memory: 'TooMuchMemory',
  locks: 'TooManyLocks',
  temporary_files: 'TooManyTemporaryFiles',
  wal: 'TooMuchWriteAheadLog',
  notifications: 'NotificationQueueFull',
  transaction: 'TransactionTooLong',
  idle_transaction: 'TransactionIdle',
  snapshot: 'SnapshotTooOld',
}

const bytes = (value: number) => `${(value / 1e6).toFixed(0)} MB`
const seconds = (value: number) => `${value.toFixed(0)} s`
const percent = (value: number) => `${(value * 100).toFixed(0)} %`
const count = (value: number) => value.toFixed(0)

const subjects: Record<Measure, { text: string; format: (value: number) => string }> = {
  memory: { text: 'The memory of sessions', format: bytes },
  locks: { text: 'The number of locks', format: count },
  temporary_files: { text: 'The size of temporary files', format: bytes },
  wal: { text: 'The write-ahead log of a minute', format: bytes },
  notifications: { text: 'The used share of the queue of NOTIFY', format: percent },
  transaction: { text: 'The age of a transaction that has written', format: seconds },
  idle_transaction: { text: 'The time without a statement in a transaction that has written', format: seconds },
  snapshot: { text: 'The age of a snapshot', format: seconds },
}

/** The strongest action of a verdict. */
export function actionOf({ closeUntil, terminate }: Verdict): 'cancelled' | 'terminated' | 'closed' {
  return closeUntil !== undefined ? 'closed' : terminate.length > 0 ? 'terminated' : 'cancelled'
}

/** Describes in whole sentences what was over which limit, and what was done. */
export function describeVerdict(verdict: Verdict): string {
  const { measure, amount, limit, scope, cancel, terminate, closeUntil } = verdict
  const { text, format } = subjects[measure]
  const allowed = scope === 'tenant' ? 'the limit of the plan is' : 'the limit of all tenants of the server together is'
  const sentences = [`${text} was ${format(amount)}; ${allowed} ${format(limit)}.`]
  if (cancel.length > 0) sentences.push(`Statements that were cancelled: ${cancel.length}.`)
  if (terminate.length > 0) sentences.push(`Sessions that were terminated: ${terminate.length}.`)
  if (closeUntil !== undefined) sentences.push(`The SQL login is closed until ${new Date(closeUntil).toISOString()}.`)
  return sentences.join(' ')
}

/** Returns the condition that reports a verdict. It is `False` while the login is closed. */
export function verdictCondition(verdict: Verdict, at: Date): Condition {
  return {
    type: 'Sql',
    status: verdict.closeUntil === undefined ? 'True' : 'False',
    reason: reasons[verdict.measure],
    message: describeVerdict(verdict),
    observed_at: at.toISOString(),
  }
}
