// Answers that were given under an Idempotency-Key: a repeat gets what was kept of the first.
import type { Database } from './database.ts'
import { ControlError } from './errors.ts'
import { idempotencyContext, oldestAnswer } from './recorded-write.ts'
import type { Seal } from './seal.ts'
import type { WriteContext } from './write-context.ts'

export interface KeptAnswers {
  /** The answer given under this key before, if any. @throws ControlError IDEMPOTENCY_MISMATCH */
  replay(context: WriteContext): Promise<unknown>
  /** Replaces the kept answer by the one that was sent. */
  keep(context: WriteContext, answer: unknown): Promise<void>
}

export function createKeptAnswers({
  database,
  seal,
  now,
}: {
  database: Database
  seal: Seal
  now: () => Date
}): KeptAnswers {
  return {
    async replay(context) {
      if (context.idempotency === undefined) return undefined
      const record = await database.idempotencyRecord.findUnique({
        where: { platformKeyId_key: { platformKeyId: context.actor.keyId, key: context.idempotency.key } },
      })
      if (record === null || record.answer === null || record.createdAt < oldestAnswer(now())) return undefined
      if (record.fingerprint !== context.idempotency.fingerprint) {
        throw new ControlError('IDEMPOTENCY_MISMATCH', 'this Idempotency-Key was used for another request')
      }
      return JSON.parse(seal.open(record.answer, idempotencyContext(context))) as unknown
    },

    async keep(context, answer) {
      if (context.idempotency === undefined) return
      await database.idempotencyRecord.updateMany({
        where: { platformKeyId: context.actor.keyId, key: context.idempotency.key },
        data: { answer: seal.seal(JSON.stringify(answer), idempotencyContext(context)) },
      })
    },
  }
}
