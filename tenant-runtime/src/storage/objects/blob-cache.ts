// A cache of small blobs, least recently used first out. Blobs never change and every request reads the object's row, so
// entries need no invalidation.

const maxBytes = 32 * 1024 * 1024
/** Estimated bytes of an entry in addition to its blob. */
const entryOverheadBytes = 256

export class BlobCache {
  /** Blobs by tenant and name, least recently used first. */
  readonly #blobs = new Map<string, Buffer>()
  readonly #maxBytes: number
  #bytes = 0

  /** @param max bytes of all tenants together */
  constructor(max = maxBytes) {
    this.#maxBytes = max
  }

  get(tenantId: string, blobId: string): Buffer | undefined {
    const key = `${tenantId}/${blobId}`
    const blob = this.#blobs.get(key)
    if (blob === undefined) return undefined
    this.#blobs.delete(key)
    this.#blobs.set(key, blob)
    return blob
  }

  /** Drops a tenant's blobs. */
  evict(tenantId: string): void {
    for (const [key, blob] of this.#blobs) if (key.startsWith(`${tenantId}/`)) this.#drop(key, blob)
  }

  set(tenantId: string, blobId: string, blob: Buffer): void {
    const key = `${tenantId}/${blobId}`
    if (this.#blobs.has(key)) return
    this.#blobs.set(key, blob)
    this.#bytes += blob.length + entryOverheadBytes
    for (const [oldest, itsBlob] of this.#blobs) {
      if (this.#bytes <= this.#maxBytes) break
      this.#drop(oldest, itsBlob)
    }
  }

  #drop(key: string, blob: Buffer): void {
    this.#blobs.delete(key)
    this.#bytes -= blob.length + entryOverheadBytes
  }
}
