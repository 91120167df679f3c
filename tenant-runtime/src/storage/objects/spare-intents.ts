// Intents of small uploads (upload.ts, Tx A), which are created in advance while several uploads run at once, so that many
// intents share a transaction. Otherwise each is created when it is needed.
import { sql } from '../../database/statement.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { recordsContext } from '../records-context.ts'
import { run } from '../buckets/bucket-store.ts'

/** Most intents of one transaction. */
const maxBatch = 64
/** Number of concurrent uploads from which on intents are created in advance. */
const minUploadsForStock = 4
/** Number of intents in advance for each concurrent upload. */
const stockPerUpload = 4
/** Time after the last creation after which unused intents are released. */
const stockMilliseconds = 1_000

export class SpareIntents {
  readonly #tenant: Tenant
  readonly #freshBlobId: () => string
  readonly #inProgress: () => number
  #spare: string[] = []
  #waiting: { resolve: (blobId: string) => void; reject: (error: unknown) => void }[] = []
  #isCreating = false
  #expiry: NodeJS.Timeout | undefined

  /** @param inProgress returns the number of running uploads */
  constructor(tenant: Tenant, freshBlobId: () => string, inProgress: () => number) {
    this.#tenant = tenant
    this.#freshBlobId = freshBlobId
    this.#inProgress = inProgress
  }

  /** Returns a new blob name with an intent that reserves no bytes. @throws RuntimeError if the database doesn't respond */
  take(): Promise<string> {
    // The oldest first, so that no intent gets old enough to count as abandoned.
    const blobId = this.#spare.shift()
    return new Promise((resolve, reject) => {
      if (blobId === undefined) this.#waiting.push({ resolve, reject })
      else resolve(blobId)
      if (this.#waiting.length > 0 || this.#isShort()) void this.#create()
    })
  }

  #isShort(): boolean {
    const inProgress = this.#inProgress()
    return inProgress >= minUploadsForStock && this.#spare.length < inProgress
  }

  async #create(): Promise<void> {
    if (this.#isCreating) return
    this.#isCreating = true
    const stock = this.#isShort() ? this.#inProgress() * stockPerUpload : 0
    const blobIds = Array.from({ length: Math.min(maxBatch, this.#waiting.length + stock) }, this.#freshBlobId)
    try {
      await run(this.#tenant, recordsContext, [
        sql(
          'insert into blob_intents (blob_id, reserved) select value::uuid, 0 from jsonb_array_elements_text($1::jsonb)',
          JSON.stringify(blobIds),
        ),
      ])
      this.#spare.push(...blobIds)
      clearTimeout(this.#expiry)
      this.#expiry = setTimeout(() => void this.release(), stockMilliseconds).unref()
    } catch (error) {
      for (const { reject } of this.#waiting.splice(0)) reject(error)
    }
    this.#isCreating = false
    for (const waiter of this.#waiting.splice(0)) this.take().then(waiter.resolve, waiter.reject)
  }

  /** Deletes the unused intents. A failure is harmless: the collector deletes them in time. */
  async release(): Promise<void> {
    const blobIds = this.#spare.splice(0)
    if (blobIds.length === 0) return
    const gone = sql(
      'delete from blob_intents where blob_id in (select value::uuid from jsonb_array_elements_text($1::jsonb))',
      JSON.stringify(blobIds),
    )
    await run(this.#tenant, recordsContext, [gone]).catch(() => undefined)
  }
}
