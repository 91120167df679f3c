// Responses to requests with an Idempotency-Key. A repeated request receives the first response again.
import type { Database, Transaction } from './database.ts'
import { ControlError } from './errors.ts'
import type { Seal } from './seal.ts'

/** An `Idempotency-Key` of a platform key, with a fingerprint of its request. */
export interface IdempotencyKey {
  platformKeyId: string
  key: string
  /** SHA-256 of method, path and body. */
  fingerprint: string
}

/** Ends the transaction of a request after a concurrent one with the same key, and carries that one's response. */
export class StoredResponse extends Error {
  readonly response: unknown

  constructor(response: unknown) {
    super('A request with this Idempotency-Key already has a response.')
    this.response = response
  }
}

/** Time after which a repeated request counts as a new one. */
const retentionMilliseconds = 24 * 3_600_000

/** Responses to requests with an `Idempotency-Key`, stored for 24 hours. */
export type StoredResponses = ReturnType<typeof createStoredResponses>

/** Creates the store of responses on the control database; `seal` encrypts them, because some contain secrets. */
export function createStoredResponses({ database, seal, now }: { database: Database; seal: Seal; now: () => Date }) {
  const oldest = () => new Date(now().getTime() - retentionMilliseconds)

  const find = async (
    reader: Database | Transaction,
    idempotencyKey: IdempotencyKey,
    since: Date,
  ): Promise<unknown> => {
    const { platformKeyId, key, fingerprint } = idempotencyKey
    const record = await reader.idempotencyRecord.findUnique({
      where: { platformKeyId_key: { platformKeyId, key } },
    })
    if (record === null || record.answer === null || record.createdAt < since) return undefined
    if (record.fingerprint !== fingerprint)
      throw new ControlError('IDEMPOTENCY_MISMATCH', 'This Idempotency-Key was used for another request.')
    return JSON.parse(seal.open(record.answer, sealContext(idempotencyKey))) as unknown
  }

  return {
    /** Returns the stored response; undefined if there is none. @throws ControlError IDEMPOTENCY_MISMATCH */
    find: (key: IdempotencyKey): Promise<unknown> => find(database, key, oldest()),

    /**
     * Claims the key for a transaction, which must then store a response. It waits for a transaction that has already
     * claimed the key.
     * @throws StoredResponse; ControlError IDEMPOTENCY_MISMATCH
     */
    async claim(transaction: Transaction, idempotencyKey: IdempotencyKey): Promise<void> {
      const { platformKeyId, key, fingerprint } = idempotencyKey
      const since = oldest()
      // The primary key makes a second transaction wait for the end of the first.
      const claimed = await transaction.$executeRaw`
        insert into idempotency_records as stored (platform_key_id, key, fingerprint, created_at)
        values (${platformKeyId}::uuid, ${key}, ${fingerprint}, ${now()})
        on conflict (platform_key_id, key) do update
          set fingerprint = excluded.fingerprint, answer = null, created_at = excluded.created_at
          where stored.created_at < ${since} or stored.answer is null`
      if (claimed === 0) throw new StoredResponse(await find(transaction, idempotencyKey, since))
      // Another transaction that has locked expired records removes them, or the next one does.
      await transaction.$executeRaw`
        delete from idempotency_records where (platform_key_id, key) in (
          select platform_key_id, key from idempotency_records where created_at < ${since} for update skip locked)`
    },

    /**
     * Stores the response and replaces an earlier one. @param transaction the claiming transaction; absent after its
     * commit
     */
    async store(idempotencyKey: IdempotencyKey, response: unknown, transaction?: Transaction): Promise<void> {
      const { platformKeyId, key } = idempotencyKey
      await (transaction ?? database).idempotencyRecord.updateMany({
        where: { platformKeyId, key },
        data: { answer: seal.seal(JSON.stringify(response), sealContext(idempotencyKey)) },
      })
    },
  }
}

function sealContext({ platformKeyId, key }: IdempotencyKey): string {
  return `idempotency:${platformKeyId}:${key}`
}
