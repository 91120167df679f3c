// Small blobs that were read lately. A blob never changes, and its row is asked each time: what stands here can be kept for
// as long as there is room.

const maxBytes = 32 * 1024 * 1024
/** What an entry takes beside its bytes. */
const entryBytes = 256

export class BlobMemory {
  /** The one used longest ago first. */
  readonly #blobs = new Map<string, Buffer>()
  readonly #max: number
  #bytes = 0

  /** `most` bytes of all tenants together. */
  constructor(max = maxBytes) {
    this.#max = max
  }

  get(tenantId: string, blobId: string): Buffer | undefined {
    const key = `${tenantId}/${blobId}`
    const blob = this.#blobs.get(key)
    if (blob === undefined) return undefined
    this.#blobs.delete(key)
    this.#blobs.set(key, blob)
    return blob
  }

  /** What is purged is gone from here too. */
  evict(tenantId: string): void {
    for (const [key, blob] of this.#blobs) if (key.startsWith(`${tenantId}/`)) this.#drop(key, blob)
  }

  set(tenantId: string, blobId: string, blob: Buffer): void {
    const key = `${tenantId}/${blobId}`
    if (this.#blobs.has(key)) return
    this.#blobs.set(key, blob)
    this.#bytes += blob.length + entryBytes
    for (const [oldest, itsBlob] of this.#blobs) {
      if (this.#bytes <= this.#max) break
      this.#drop(oldest, itsBlob)
    }
  }

  #drop(key: string, blob: Buffer): void {
    this.#blobs.delete(key)
    this.#bytes -= blob.length + entryBytes
  }
}
