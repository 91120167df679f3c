// The interface of stores of blobs. A blob's name is a new UUID for each write, never a name that a user chose.
import type { Readable } from 'node:stream'

export interface StoredBlob {
  size: number
  /** The hash in lower-case hex. */
  sha256: string
}

export interface ListedBlob {
  blobId: string
  /** Milliseconds since the blob was written. */
  age: number
  /** Bytes; 0 for a partly written blob whose size the store does not report. */
  size: number
}

export interface OpenBlob {
  /** Streams the bytes from `start` to `end`, both included, and closes the blob at their end. */
  stream(start: number, end: number): Readable
  /** Reads the bytes from `start` to `end`, both included; any number of times until `close`. */
  read(start: number, end: number): AsyncIterable<Buffer>
  /** Reads all `size` bytes of a small blob at once and closes it. @throws RuntimeError FILE_MISSING if there are fewer */
  whole(size: number): Promise<Buffer>
  close(): Promise<void>
}

export interface BlobBackend {
  readonly name: string
  /**
   * The names of the stores. Two runtimes with a common name of an S3 server's bucket have the same blobs; `local` is a
   * directory of the runtime's own.
   */
  readonly stores: readonly string[]
  /**
   * Time for which a blob stays after its object was deleted, in milliseconds, because in this backend `remove` ends
   * downloads of the blob; 0 if it does not.
   */
  readonly lingerMilliseconds: number
  /** Prepares the store. @throws Error if it is unreliable: not writable, or not one filesystem */
  start(): Promise<void>
  /** Returns why nothing can be written now, as a sentence for the tenant; undefined if writes are possible. */
  error(): Promise<string | undefined>
  /**
   * Writes a blob. When this returns, the blob survives a power cut.
   * @throws RuntimeError FILE_TOO_LARGE past `limit` bytes, STORAGE_FULL, STORAGE_UNAVAILABLE
   */
  put(tenantId: string, blobId: string, source: Readable, limit: number): Promise<StoredBlob>
  /** Opens a blob. @returns undefined if it does not exist */
  open(tenantId: string, blobId: string): Promise<OpenBlob | undefined>
  /** Removes a blob, also a partly written one. A missing blob is not an error. */
  remove(tenantId: string, blobId: string): Promise<void>
  /** Lists all blobs, including partly written ones. */
  list(tenantId: string): AsyncIterable<ListedBlob>
  /** Returns the ID of the store that holds the tenant's blobs; undefined if it has none. */
  storeId(tenantId: string): Promise<string | undefined>
  /**
   * Sets the ID of the tenant's store durably, unless it has one. Of concurrent calls, in any process, one succeeds.
   * @returns the ID that the store has afterwards
   */
  claimStore(tenantId: string, storeId: string): Promise<string>
  /** Whether some of the tenant's blobs are in another store, so that both stores are required. */
  isPaired(tenantId: string): Promise<boolean>
  setPaired(tenantId: string, paired: boolean): Promise<void>
  /** Removes the tenant's blobs, also those of uploads in progress. */
  removeTenant(tenantId: string): Promise<void>
  /** Lets blobs of a tenant be written again that was removed: it has moved away from these runtimes, and returns. */
  readmitTenant(tenantId: string): void
}

/** The form of blobs' names. It must be checked, because names are read from a table that the tenant can change. */
export const blobName = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
