// Blobs in the local filesystem. A blob is written to a temporary file and renamed; then the file and its directory are
// synced at the same time, so that the filesystem's journal writes both at once. No row refers to the blob before that.
//
//   tmp/<tenant>.<blob>            a blob that is being written
//   <tenant>/store                 the store's ID; a link, so that the file is complete from its first moment on
//   <tenant>/paired                exists while some of the tenant's blobs are in another store
//   <tenant>/<xx>/<blob>           a blob in one of 256 shards, by its first byte
import { randomUUID } from 'node:crypto'
import { link, mkdir, open, opendir, readdir, rename, rm, stat, unlink, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { syncDirectory } from '@tenantry/contract'
import { RuntimeError } from '../../errors.ts'
import type { StorageFailpoint } from '../failpoints.ts'
import { blobName, type BlobBackend, type ListedBlob, type OpenBlob, type StoredBlob } from './backend.ts'
import { BytesInFlight } from './bytes-in-flight.ts'
import { DiskTrust } from './disk-trust.ts'
import { BufferRoom, FileStream } from './file-stream.ts'
import { readFully, writeAll } from './local-bytes.ts'
import {
  hasCode,
  isMissing,
  probeDirectory,
  readFileState,
  readStoreId,
  removeFile,
  storageError,
  writeDurably,
} from './local-files.ts'
import { SharedRun } from '../../shared-run.ts'

const readChunkBytes = 512 * 1024
/** Bytes of all uploads together that may wait for the disk. */
const allWriteAheadBytes = 64 * 1024 * 1024
/** Bytes of all downloads' large buffers together. */
const allSendingBytes = 64 * 1024 * 1024
/** Longest wait of an upload for others to be written; longer than a working disk needs. */
const roomMilliseconds = 10_000

/** Age at which a temporary file is abandoned; longer than any upload may take. */
const abandonedMilliseconds = 3_600_000

interface LocalBackendOptions {
  failpoint?: StorageFailpoint | undefined
  inFlight?: BytesInFlight
}

export class LocalBackend implements BlobBackend {
  readonly name = 'local'
  readonly stores = ['local']
  /** No time is needed, because an open file stays readable after it is unlinked. */
  readonly lingerMilliseconds = 0
  readonly #root: string
  readonly #tmp: string
  readonly #failpoint: StorageFailpoint
  readonly #inFlight: BytesInFlight
  readonly #sending = new BufferRoom(allSendingBytes)
  /** Syncs directories; concurrent calls share a sync. */
  readonly #sync = new SharedRun(syncDirectory)
  readonly #storeIdReads = new SharedRun(readStoreId)
  readonly #trust = new DiskTrust(() => probeDirectory(this.#tmp, this.#root))
  /** Tenants that were deleted, or have moved away. */
  readonly #removed = new Set<string>()
  /** Shards that exist and were synced into their parents. */
  readonly #shards = new Map<string, Promise<string>>()

  constructor(
    root: string,
    {
      failpoint = () => undefined,
      inFlight = new BytesInFlight(allWriteAheadBytes, roomMilliseconds),
    }: LocalBackendOptions = {},
  ) {
    this.#root = root
    this.#failpoint = failpoint
    this.#inFlight = inFlight
    this.#tmp = join(root, 'tmp')
  }

  async start(): Promise<void> {
    await mkdir(this.#tmp, { recursive: true, mode: 0o700 })
    await this.#sync.run(this.#root)
    if ((await stat(this.#tmp)).dev !== (await stat(this.#root)).dev)
      throw new Error(`${this.#tmp} is on another filesystem than ${this.#root}.`)
    // A younger file may belong to another runtime that shares the directory; the collector removes it in time.
    for (const name of await readdir(this.#tmp)) {
      const file = join(this.#tmp, name)
      const age = (await readFileState(file))?.age
      if (age !== undefined && age >= abandonedMilliseconds) await removeFile(file)
    }
    await probeDirectory(this.#tmp, this.#root)
  }

  async error(): Promise<string | undefined> {
    try {
      await this.#trust.assure()
      return undefined
    } catch {
      return 'The disk does not store what is written.'
    }
  }

  async put(tenantId: string, blobId: string, source: Readable, limit: number): Promise<StoredBlob> {
    const file = this.#draft(tenantId, blobId)
    try {
      await this.#trust.assure()
      const handle = await this.#openNew(file)
      let stored: StoredBlob
      try {
        stored = await writeAll(handle, source, limit, this.#inFlight)
        await this.#failpoint('write.before-rename')
        const shard = await this.#moveToShard(file, tenantId, blobId)
        await this.#failpoint('write.after-rename')
        await this.#trust.watch(async () => {
          await Promise.all([handle.sync(), this.#sync.run(shard)])
        })
      } finally {
        await handle.close()
      }
      if (this.#removed.has(tenantId)) throw await this.#removeAfterDeletion(tenantId)
      return stored
    } catch (cause) {
      await this.remove(tenantId, blobId).catch(() => undefined)
      throw storageError(cause)
    }
  }

  /** Opens a new file in `tmp`, and creates `tmp` again if the volume was replaced. */
  async #openNew(file: string): Promise<FileHandle> {
    try {
      return await open(file, 'wx', 0o600)
    } catch (cause) {
      if (!isMissing(cause)) throw cause
      await mkdir(this.#tmp, { recursive: true, mode: 0o700 })
      return open(file, 'wx', 0o600)
    }
  }

  /** Renames a temporary file into its shard. @returns the shard */
  async #moveToShard(file: string, tenantId: string, blobId: string): Promise<string> {
    let shard = await this.#shard(tenantId, blobId)
    try {
      await rename(file, join(shard, blobId))
    } catch (cause) {
      if (!isMissing(cause)) throw cause
      // The volume on which the shard was created has been replaced by another one.
      this.#shards.delete(shard)
      shard = await this.#shard(tenantId, blobId)
      await rename(file, join(shard, blobId))
    }
    return shard
  }

  async open(tenantId: string, blobId: string): Promise<OpenBlob | undefined> {
    let handle: FileHandle
    try {
      handle = await open(this.#path(tenantId, blobId), 'r')
    } catch (cause) {
      if (isMissing(cause)) return undefined
      throw storageError(cause)
    }
    return {
      stream: (start, end) => new FileStream(handle, start, end, this.#sending),
      read: (start, end) => handle.createReadStream({ start, end, highWaterMark: readChunkBytes, autoClose: false }),
      async whole(size) {
        try {
          return await readFully(handle, size)
        } finally {
          await handle.close()
        }
      },
      close: () => handle.close(),
    }
  }

  async remove(tenantId: string, blobId: string): Promise<void> {
    await removeFile(this.#path(tenantId, blobId))
    await removeFile(this.#draft(tenantId, blobId))
  }

  async *list(tenantId: string): AsyncGenerator<ListedBlob> {
    const shards = await readdir(join(this.#root, tenantId), { withFileTypes: true }).catch((cause: unknown) => {
      if (isMissing(cause)) return []
      throw cause
    })
    for (const shard of shards) {
      if (!shard.isDirectory()) continue
      for await (const entry of await opendir(join(this.#root, tenantId, shard.name))) {
        const state = await readFileState(join(this.#root, tenantId, shard.name, entry.name))
        if (state !== undefined) yield { blobId: entry.name, ...state }
      }
    }
    for (const blobId of await this.#drafts(tenantId)) {
      const state = await readFileState(this.#draft(tenantId, blobId))
      if (state !== undefined) yield { blobId, ...state }
    }
  }

  #draft(tenantId: string, blobId: string): string {
    return join(this.#tmp, `${tenantId}.${blobId}`)
  }

  /** Lists the tenant's blobs that are being written or that a crash left partly written. */
  async #drafts(tenantId: string): Promise<string[]> {
    const names = await readdir(this.#tmp).catch((cause: unknown) => {
      if (isMissing(cause)) return []
      throw storageError(cause)
    })
    const prefix = `${tenantId}.`
    return names
      .filter((name) => name.startsWith(prefix))
      .map((name) => name.slice(prefix.length))
      .filter((name) => blobName.test(name))
  }

  async storeId(tenantId: string): Promise<string | undefined> {
    return this.#storeIdReads.run(this.#storeId(tenantId))
  }

  async claimStore(tenantId: string, storeId: string): Promise<string> {
    if (this.#removed.has(tenantId)) throw await this.#removeAfterDeletion(tenantId)
    const directory = join(this.#root, tenantId)
    const draft = join(directory, `store-${randomUUID()}`)
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await writeDurably(draft, storeId)
      // A link is created whole or not at all, and never replaces an existing file.
      await link(draft, this.#storeId(tenantId)).catch((cause: unknown) => {
        if (!hasCode(cause, 'EEXIST')) throw cause
      })
    } catch (cause) {
      throw storageError(cause)
    } finally {
      await unlink(draft).catch(() => undefined)
    }
    await this.#sync.run(directory)
    await this.#sync.run(this.#root)
    if (this.#removed.has(tenantId)) throw await this.#removeAfterDeletion(tenantId)
    const found = await this.storeId(tenantId)
    if (found === undefined) throw new RuntimeError('STORAGE_UNAVAILABLE', 'The storage can not be written now.')
    return found
  }

  async isPaired(tenantId: string): Promise<boolean> {
    try {
      await stat(join(this.#root, tenantId, 'paired'))
      return true
    } catch (cause) {
      if (isMissing(cause)) return false
      throw storageError(cause)
    }
  }

  async setPaired(tenantId: string, paired: boolean): Promise<void> {
    const directory = join(this.#root, tenantId)
    try {
      if (paired) await (await open(join(directory, 'paired'), 'w', 0o600)).close()
      else await removeFile(join(directory, 'paired'))
      await this.#sync.run(directory)
    } catch (cause) {
      throw storageError(cause)
    }
  }

  #storeId(tenantId: string): string {
    return join(this.#root, tenantId, 'store')
  }

  async removeTenant(tenantId: string): Promise<void> {
    this.#removed.add(tenantId)
    await rm(join(this.#root, tenantId), { recursive: true, force: true })
    for (const blobId of await this.#drafts(tenantId)) await removeFile(this.#draft(tenantId, blobId))
    for (const shard of this.#shards.keys())
      if (shard.startsWith(join(this.#root, tenantId))) this.#shards.delete(shard)
  }

  readmitTenant(tenantId: string): void {
    this.#removed.delete(tenantId)
  }

  /** Removes what an upload has written after its tenant was deleted. */
  async #removeAfterDeletion(tenantId: string): Promise<RuntimeError> {
    await this.removeTenant(tenantId)
    return new RuntimeError('STORAGE_UNAVAILABLE', 'The tenant was deleted.')
  }

  /** Returns a blob's path. @throws RuntimeError FILE_MISSING if `blobId` is not a valid name */
  #path(tenantId: string, blobId: string): string {
    // The name comes from a table that the tenant can change.
    if (!blobName.test(blobId)) throw new RuntimeError('FILE_MISSING', 'Object not found: its file is missing')
    return join(this.#root, tenantId, blobId.slice(0, 2), blobId)
  }

  /**
   * Creates a shard durably on first use, because a power cut that removes the directory removes its blobs. It does not
   * create the tenant's directory: one without a store ID belongs to no database.
   */
  #shard(tenantId: string, blobId: string): Promise<string> {
    const tenant = join(this.#root, tenantId)
    const shard = join(tenant, blobId.slice(0, 2))
    let making = this.#shards.get(shard)
    if (making === undefined) {
      making = (async () => {
        await mkdir(shard, { mode: 0o700 }).catch((cause: unknown) => {
          if (!hasCode(cause, 'EEXIST')) throw cause
        })
        await this.#sync.run(tenant)
        await this.#sync.run(this.#root)
        return shard
      })()
      this.#shards.set(shard, making)
      making.catch(() => this.#shards.delete(shard))
    }
    return making
  }
}
