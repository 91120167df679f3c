// Two stores as one, while blobs move from one to the other: what is new goes to the primary, what isn't there is looked for
// in the other.
//
// A tenant's marks tell where its blobs lie. One store has its mark: they lie in that one, wherever it stands. Both have it:
// they lie in both, and new ones go to the primary; a note in each says so, so that the loss of one is seen as what it is.
import type { Readable } from 'node:stream'
import { RuntimeError } from '../../errors.ts'
import type { BlobBackend, ListedBlob, OpenBlob, StoredBlob } from './backend.ts'

export class PairedBackend implements BlobBackend {
  readonly name: string
  readonly lingerMilliseconds: number
  readonly primary: BlobBackend
  readonly fallback: BlobBackend

  constructor(primary: BlobBackend, fallback: BlobBackend) {
    this.primary = primary
    this.fallback = fallback
    this.name = `${primary.name}, with what is left in ${fallback.name}`
    this.lingerMilliseconds = Math.max(primary.lingerMilliseconds, fallback.lingerMilliseconds)
  }

  async start(): Promise<void> {
    await Promise.all([this.primary.start(), this.fallback.start()])
  }

  async error(): Promise<string | undefined> {
    return (await this.primary.error()) ?? this.fallback.error()
  }

  async put(tenantId: string, blobId: string, source: Readable, limit: number): Promise<StoredBlob> {
    const [primary, fallback] = await this.#storeIds(tenantId)
    const isOnlyInFallback = primary === undefined && fallback !== undefined
    return (isOnlyInFallback ? this.fallback : this.primary).put(tenantId, blobId, source, limit)
  }

  async open(tenantId: string, blobId: string): Promise<OpenBlob | undefined> {
    return (
      (await this.primary.open(tenantId, blobId)) ??
      (await this.fallback.open(tenantId, blobId)) ??
      // It may have been moved between the two.
      this.primary.open(tenantId, blobId)
    )
  }

  async remove(tenantId: string, blobId: string): Promise<void> {
    await Promise.all([this.primary.remove(tenantId, blobId), this.fallback.remove(tenantId, blobId)])
  }

  async *list(tenantId: string): AsyncGenerator<ListedBlob> {
    const seen = new Set<string>()
    for await (const blob of this.primary.list(tenantId)) {
      seen.add(blob.blobId)
      yield blob
    }
    for await (const blob of this.fallback.list(tenantId)) if (!seen.has(blob.blobId)) yield blob
  }

  async storeId(tenantId: string): Promise<string | undefined> {
    // Between two looks the stores may have been paired: nothing is called lost that was not missing twice.
    return (await this.#storeNow(tenantId)) ?? this.#storeNow(tenantId)
  }

  async #storeNow(tenantId: string): Promise<string | undefined> {
    const [primary, fallback] = await this.#storeIds(tenantId)
    // Nobody's mark, so that neither is taken for the database's own.
    if (primary !== undefined && fallback !== undefined)
      return primary === fallback ? primary : `${primary} and ${fallback}`
    if (primary !== undefined) return (await this.primary.isPaired(tenantId)) ? undefined : primary
    if (fallback !== undefined) return (await this.fallback.isPaired(tenantId)) ? undefined : fallback
    return undefined
  }

  async claimStore(tenantId: string, storeId: string): Promise<string> {
    const [primary, fallback] = await this.#storeIds(tenantId)
    const store = primary === undefined && fallback !== undefined ? this.fallback : this.primary
    // It begins anew, with what is left of the two.
    if (primary !== undefined || fallback !== undefined) await store.setPaired(tenantId, false)
    return store.claimStore(tenantId, storeId)
  }

  /**
   * From when this returns, what is new of the tenant's goes to the primary.
   * @throws RuntimeError STORAGE_UNAVAILABLE when a store is lost, or another database's
   */
  async pair(tenantId: string, storeId: string): Promise<void> {
    if ((await this.storeId(tenantId)) !== storeId)
      throw new RuntimeError('STORAGE_UNAVAILABLE', 'the store is not the one that the database speaks of')
    for (const store of [this.primary, this.fallback]) {
      if ((await store.claimStore(tenantId, storeId)) !== storeId)
        throw new RuntimeError('STORAGE_UNAVAILABLE', `${store.name} holds files of another database`)
    }
    await Promise.all([this.primary.setPaired(tenantId, true), this.fallback.setPaired(tenantId, true)])
  }

  /** The primary alone from now on; what the other has of the tenant is removed. */
  async dropFallback(tenantId: string): Promise<void> {
    await this.primary.setPaired(tenantId, false)
    await this.fallback.removeTenant(tenantId)
  }

  async isPaired(tenantId: string): Promise<boolean> {
    const [primary, fallback] = await this.#storeIds(tenantId)
    return primary !== undefined && fallback !== undefined
  }

  async setPaired(tenantId: string, paired: boolean): Promise<void> {
    await Promise.all([this.primary.setPaired(tenantId, paired), this.fallback.setPaired(tenantId, paired)])
  }

  async removeTenant(tenantId: string): Promise<void> {
    await Promise.all([this.primary.removeTenant(tenantId), this.fallback.removeTenant(tenantId)])
  }

  #storeIds(tenantId: string): Promise<[primary: string | undefined, fallback: string | undefined]> {
    return Promise.all([this.primary.storeId(tenantId), this.fallback.storeId(tenantId)])
  }
}
