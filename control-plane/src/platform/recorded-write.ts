// Every change of the control database by an operator: one transaction with its audit entry, its entry in the log of changes and,
// when the call has an Idempotency-Key, its answer.
import { createHash } from 'node:crypto'
import type { Seal } from './seal.ts'
import type { WriteContext } from './write-context.ts'
import { ControlError } from './errors.ts'
import { recordChange, reportCommit } from './change-log.ts'
import type { Database, Prisma, Transaction } from './database.ts'

/** Serialises writers, because each audit entry's hash covers the entry before it. */
const auditLock = 7_246_305_116

/** Until the end of the transaction nobody else changes what should be. */
export async function serialise(transaction: Transaction): Promise<void> {
  await transaction.$executeRaw`select pg_advisory_xact_lock(${auditLock}::bigint)`
}

/** A repeat that comes later than this is a new request. */
const answerKeptMilliseconds = 24 * 3_600_000

/** Answers from before this are forgotten. */
export function oldestAnswer(now: Date): Date {
  return new Date(now.getTime() - answerKeptMilliseconds)
}

export interface Recorded<T> {
  result: T
  audit: { action: string; target: string; detail: Prisma.InputJsonObject }
  /** Tenant whose wanted state changed. */
  changed?: string
  /** Body of the answer, kept under the Idempotency-Key. */
  answer?: unknown
}

/** `hash` of an audit entry; `previous` is empty for the first. */
export function auditHash(entry: {
  at: Date
  actor: string
  action: string
  target: string
  detail: unknown
  previous: string
}): string {
  const { at, actor, action, target, detail, previous } = entry
  return createHash('sha256')
    .update(JSON.stringify([previous, at.toISOString(), actor, action, target, sortedJson(detail)]))
    .digest('hex')
}

/** Postgres' jsonb doesn't keep the order of keys, so the hash must not depend on it. */
function sortedJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => [key, sortedJson(inner)])
}

export function idempotencyContext(context: WriteContext): string {
  return `idempotency:${context.actor.keyId}:${context.idempotency?.key ?? ''}`
}

export async function recordedWrite<T>(
  database: Database,
  seal: Seal,
  now: () => Date,
  context: WriteContext,
  work: (transaction: Transaction) => Promise<Recorded<T>>,
): Promise<T> {
  const recorded = await database.$transaction(
    async (transaction) => {
      await serialise(transaction)
      await refuseSecond(transaction, context, oldestAnswer(now()))
      const { result, audit, changed, answer } = await work(transaction)
      const last = await transaction.auditEntry.findFirst({ orderBy: { seq: 'desc' }, select: { hash: true } })
      const entry = { at: now(), actor: context.actor.keyId, ...audit, previous: last?.hash ?? '' }
      await transaction.auditEntry.create({ data: { ...entry, hash: auditHash(entry) } })
      if (context.idempotency !== undefined) {
        await transaction.idempotencyRecord.create({
          data: {
            platformKeyId: context.actor.keyId,
            key: context.idempotency.key,
            fingerprint: context.idempotency.fingerprint,
            answer: seal.seal(JSON.stringify(answer ?? null), idempotencyContext(context)),
          },
        })
      }
      if (changed !== undefined) await recordChange(transaction, 'wanted', changed)
      return result
    },
    { maxWait: 10_000, timeout: 20_000 },
  )
  reportCommit(database)
  return recorded
}

/** The same request may have come twice at once: the later one finds, with the lock, what the earlier one has kept. */
async function refuseSecond(
  transaction: Transaction,
  { actor, idempotency }: WriteContext,
  oldest: Date,
): Promise<void> {
  if (idempotency === undefined) return
  await transaction.idempotencyRecord.deleteMany({ where: { createdAt: { lt: oldest } } })
  const where = { platformKeyId_key: { platformKeyId: actor.keyId, key: idempotency.key } }
  if ((await transaction.idempotencyRecord.findUnique({ where, select: { key: true } })) === null) return
  throw new ControlError(
    'IDEMPOTENCY_IN_PROGRESS',
    'a request with this Idempotency-Key was under way at the same time; send it again',
  )
}
