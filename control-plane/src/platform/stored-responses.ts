// Answers that were given under an Idempotency-Key: a repeat gets what was kept of the first.
import type { Database, Transaction } from './database.ts'
import { ControlError } from './errors.ts'
import type { Seal } from './seal.ts'

/** An `Idempotency-Key` of a platform key, with what it stands for. */
export interface ResponseKey {
  platformKeyId: string
  key: string
  /** SHA-256 of method, path and body. */
  fingerprint: string
}

/** Ends the transaction of a request that another one with the same key was faster than. */
export class StoredResponse extends Error {
  readonly response: unknown

  constructor(response: unknown) {
    super('the request was answered before')
    this.response = response
  }
}

/** Responses that were given under an `Idempotency-Key`, kept for 24 hours. */
export interface StoredResponses {
  /** The answer that was given under this key before; undefined when there is none. @throws ControlError IDEMPOTENCY_MISMATCH */
  find(key: ResponseKey): Promise<unknown>
  /**
   * Claims the key for a transaction, which must then keep an answer under it. Waits for the transaction that has claimed it.
   * @throws AlreadyAnswered; ControlError IDEMPOTENCY_MISMATCH
   */
  claim(transaction: Transaction, key: ResponseKey): Promise<void>
  /** Keeps the answer, in place of the one before. @param transaction the one that has claimed the key; absent: after its commit */
  keep(key: ResponseKey, response: unknown, transaction?: Transaction): Promise<void>
}

/** A repeat that comes later than this is a new request. */
const retentionMilliseconds = 24 * 3_600_000

/** Kept answers on the control database; `seal` closes them, because some contain secrets. */
export function createStoredResponses({
  database,
  seal,
  now,
}: {
  database: Database
  seal: Seal
  now: () => Date
}): StoredResponses {
  const oldest = () => new Date(now().getTime() - retentionMilliseconds)

  const find = async (reader: Database | Transaction, responseKey: ResponseKey, since: Date): Promise<unknown> => {
    const { platformKeyId, key, fingerprint } = responseKey
    const record = await reader.idempotencyRecord.findUnique({
      where: { platformKeyId_key: { platformKeyId, key } },
    })
    if (record === null || record.answer === null || record.createdAt < since) return undefined
    if (record.fingerprint !== fingerprint)
      throw new ControlError('IDEMPOTENCY_MISMATCH', 'this Idempotency-Key was used for another request')
    return JSON.parse(seal.open(record.answer, sealContext(responseKey))) as unknown
  }

  return {
    find: (key) => find(database, key, oldest()),

    async claim(transaction, responseKey) {
      const { platformKeyId, key, fingerprint } = responseKey
      const since = oldest()
      // The primary key makes a second transaction wait for the end of the first.
      const claimed = await transaction.$executeRaw`
        insert into idempotency_records as kept (platform_key_id, key, fingerprint, created_at)
        values (${platformKeyId}::uuid, ${key}, ${fingerprint}, ${now()})
        on conflict (platform_key_id, key) do update
          set fingerprint = excluded.fingerprint, answer = null, created_at = excluded.created_at
          where kept.created_at < ${since} or kept.answer is null`
      if (claimed === 0) throw new StoredResponse(await find(transaction, responseKey, since))
      // Those that another transaction has locked are removed by it, or by the next one.
      await transaction.$executeRaw`
        delete from idempotency_records where (platform_key_id, key) in (
          select platform_key_id, key from idempotency_records where created_at < ${since} for update skip locked)`
    },

    async keep(responseKey, response, transaction) {
      const { platformKeyId, key } = responseKey
      await (transaction ?? database).idempotencyRecord.updateMany({
        where: { platformKeyId, key },
        data: { answer: seal.seal(JSON.stringify(response), sealContext(responseKey)) },
      })
    },
  }
}

function sealContext({ platformKeyId, key }: ResponseKey): string {
  return `idempotency:${platformKeyId}:${key}`
}
