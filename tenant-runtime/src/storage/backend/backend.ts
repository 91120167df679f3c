// Where blobs lie. A blob's name is a fresh UUID for each write: what a user calls a file never gets here.
import type { Readable } from 'node:stream'

export interface StoredBlob {
  size: number
  /** Lower-case hex. */
  sha256: string
}

export interface ListedBlob {
  blobId: string
  /** Milliseconds. */
  age: number
  /** Bytes; 0 for one that is half written, where nobody knows. */
  size: number
}

export interface OpenBlob {
  /** The bytes from `start` to `end`, both included. Ends the blob's use. */
  stream(start: number, end: number): Readable
  /** The same, as often as wanted, until `close`. */
  read(start: number, end: number): AsyncIterable<Buffer>
  /** All of the blob's `size` bytes at once; for small ones. Ends its use. @throws RuntimeError FILE_MISSING when there are fewer */
  whole(size: number): Promise<Buffer>
  close(): Promise<void>
}

export interface BlobBackend {
  readonly name: string
  /**
   * For so long after it was let go of a blob is to stay, in milliseconds, because an `OpenBlob` of this backend does not
   * outlive `remove`.
   */
  readonly lingerMilliseconds: number
  /** @throws Error when the store can't be relied on: not writable, or not one filesystem */
  start(): Promise<void>
  /** Why nothing is written now, in words for the tenant; undefined as long as all is well. */
  error(): Promise<string | undefined>
  /**
   * Writes a blob so that it survives a power cut from the moment this returns.
   * @throws RuntimeError FILE_TOO_LARGE past `limit` bytes, STORAGE_FULL, STORAGE_UNAVAILABLE
   */
  put(tenantId: string, blobId: string, source: Readable, limit: number): Promise<StoredBlob>
  /** Undefined when there is no such blob. */
  open(tenantId: string, blobId: string): Promise<OpenBlob | undefined>
  /** Whole or half written; one that is absent is no error. */
  remove(tenantId: string, blobId: string): Promise<void>
  /** All blobs, also those half written. */
  list(tenantId: string): AsyncIterable<ListedBlob>
  /** The mark of the store that holds the tenant's blobs; undefined when there is none. */
  storeId(tenantId: string): Promise<string | undefined>
  /**
   * Marks the tenant's store, durably, unless it has a mark; of several at once, in whatever process, one does.
   * @returns the mark that it has then
   */
  claimStore(tenantId: string, storeId: string): Promise<string>
  /** Whether the tenant's blobs lie partly here and partly in another store, so that neither may be missing. */
  isPaired(tenantId: string): Promise<boolean>
  setPaired(tenantId: string, paired: boolean): Promise<void>
  removeTenant(tenantId: string): Promise<void>
}

/** The only names that a blob has: elsewhere they stand in a table of the tenant's, who may have made anything of it. */
export const blobName = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
