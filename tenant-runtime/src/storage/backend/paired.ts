// Two stores as one, while blobs move from the fallback to the primary.
//
// Store IDs show where a tenant's blobs are. If one store has an ID, all blobs are in that store. If both have it, blobs are
// in both, new ones go to the primary, and each store is marked as paired, so that the loss of one is detected.
import type { Readable } from 'node:stream'
import { RuntimeError } from '../../errors.ts'
import type { BlobBackend, ListedBlob, OpenBlob, StoredBlob } from './backend.ts'

export class PairedBackend implements BlobBackend {
  readonly name: string
  readonly stores: readonly string[]
  readonly lingerMilliseconds: number
  readonly primary: BlobBackend
  readonly fallback: BlobBackend

  constructor(primary: BlobBackend, fallback: BlobBackend) {
    this.primary = primary
    this.fallback = fallback
    this.name = `${primary.name}, with fallback ${fallback.name}`
    this.stores = [...primary.stores, ...fallback.stores]
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
      // It may have been moved between the two attempts.
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
    // The stores may be paired between the two reads, so a store counts as lost only if it is missing twice.
    return (await this.#readStoreId(tenantId)) ?? this.#readStoreId(tenantId)
  }

  async #readStoreId(tenantId: string): Promise<string | undefined> {
    const [primary, fallback] = await this.#storeIds(tenantId)
    // With two different IDs, returns one that no database has, so that neither store is used.
    if (primary !== undefined && fallback !== undefined)
      return primary === fallback ? primary : `${primary} and ${fallback}`
    if (primary !== undefined) return (await this.primary.isPaired(tenantId)) ? undefined : primary
    if (fallback !== undefined) return (await this.fallback.isPaired(tenantId)) ? undefined : fallback
    return undefined
  }

  async claimStore(tenantId: string, storeId: string): Promise<string> {
    const [primary, fallback] = await this.#storeIds(tenantId)
    const store = primary === undefined && fallback !== undefined ? this.fallback : this.primary
    // One store was lost: the tenant begins again with the other one.
    if (primary !== undefined || fallback !== undefined) await store.setPaired(tenantId, false)
    return store.claimStore(tenantId, storeId)
  }

  /**
   * Pairs the two stores of a tenant. When this returns, its new blobs go to the primary.
   * @throws RuntimeError STORAGE_UNAVAILABLE if a store is lost or belongs to another database
   */
  async pair(tenantId: string, storeId: string): Promise<void> {
    if ((await this.storeId(tenantId)) !== storeId)
      throw new RuntimeError('STORAGE_UNAVAILABLE', 'The store is not the one that the database refers to.')
    for (const store of [this.primary, this.fallback]) {
      if ((await store.claimStore(tenantId, storeId)) !== storeId)
        throw new RuntimeError('STORAGE_UNAVAILABLE', `The store "${store.name}" has files of another database.`)
    }
    await Promise.all([this.primary.setPaired(tenantId, true), this.fallback.setPaired(tenantId, true)])
  }

  /** Removes the tenant's blobs from the fallback, so that it uses the primary alone. */
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

  readmitTenant(tenantId: string): void {
    this.primary.readmitTenant(tenantId)
    this.fallback.readmitTenant(tenantId)
  }

  #storeIds(tenantId: string): Promise<[primary: string | undefined, fallback: string | undefined]> {
    return Promise.all([this.primary.storeId(tenantId), this.fallback.storeId(tenantId)])
  }
}
