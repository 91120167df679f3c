// Intents made in advance (upload.ts, Tx A of a small body): where several upload at once a name is taken whose intent is on
// disk already, and many intents are one transaction. Otherwise they are made as they are needed.
import { sql } from '../../database/statement.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { bookkeeping } from '../bookkeeping.ts'
import { run } from '../buckets/bucket-store.ts'

const maxTogether = 64
/** From so many uploads at once on there is a stock, of some for each of them. */
const several = 4
const forEach = 4
/** A stock from which so long nobody had to add is given back. */
const stockMilliseconds = 1_000

export class SpareIntents {
  readonly #tenant: Tenant
  readonly #freshBlobId: () => string
  readonly #inProgress: () => number
  #spare: string[] = []
  #waiting: { resolve: (blobId: string) => void; reject: (error: unknown) => void }[] = []
  #making = false
  #expiry: NodeJS.Timeout | undefined

  /** `inProgress`: uploads at this moment. */
  constructor(tenant: Tenant, freshBlobId: () => string, inProgress: () => number) {
    this.#tenant = tenant
    this.#freshBlobId = freshBlobId
    this.#inProgress = inProgress
  }

  /** A name that no blob has had, with an intent that reserves nothing. @throws RuntimeError when the database doesn't answer */
  take(): Promise<string> {
    // The oldest first: none must wait here until the sweeper takes it for abandoned.
    const blobId = this.#spare.shift()
    return new Promise((resolve, reject) => {
      if (blobId === undefined) this.#waiting.push({ resolve, reject })
      else resolve(blobId)
      if (this.#waiting.length > 0 || this.#isShort()) void this.#make()
    })
  }

  #isShort(): boolean {
    const inProgress = this.#inProgress()
    return inProgress >= several && this.#spare.length < inProgress
  }

  async #make(): Promise<void> {
    if (this.#making) return
    this.#making = true
    const stock = this.#isShort() ? this.#inProgress() * forEach : 0
    const blobIds = Array.from({ length: Math.min(maxTogether, this.#waiting.length + stock) }, this.#freshBlobId)
    try {
      await run(this.#tenant, bookkeeping, [
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
    this.#making = false
    for (const waiting of this.#waiting.splice(0)) this.take().then(waiting.resolve, waiting.reject)
  }

  /** Failing at it is no harm: the sweeper does the same in time. */
  async release(): Promise<void> {
    const blobIds = this.#spare.splice(0)
    if (blobIds.length === 0) return
    const gone = sql(
      'delete from blob_intents where blob_id in (select value::uuid from jsonb_array_elements_text($1::jsonb))',
      JSON.stringify(blobIds),
    )
    await run(this.#tenant, bookkeeping, [gone]).catch(() => undefined)
  }
}
