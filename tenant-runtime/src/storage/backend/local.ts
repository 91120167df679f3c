// Blobs in the local filesystem: written aside, renamed into place whole, then file and place fsynced at the same time, so
// that a journal takes both at once. Until then no row speaks of them.
//
//   tmp/<tenant>.<blob>            being written
//   <tenant>/store                 mark of the store: there from its first moment on as a whole
//   <tenant>/paired                there when the tenant's other blobs lie in another store
//   <tenant>/<xx>/<blob>           one of 256 shards, by the blob's first byte
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
  poll,
  probeDirectory,
  readStoreId,
  removeFile,
  storageError,
  writeDurably,
} from './local-files.ts'
import { SharedRun } from '../../shared-run.ts'

const readChunkBytes = 512 * 1024
/** So many bytes of all uploads together may wait for the disk. */
const allWriteAheadBytes = 64 * 1024 * 1024
/** So many bytes of all downloads together may be in memory, in large pieces. */
const allSendingBytes = 64 * 1024 * 1024
/** Longer than a disk that works takes to make room. */
const roomMilliseconds = 10_000

/** Longer than any upload may take. */
const abandonedMilliseconds = 3_600_000

interface LocalBackendOptions {
  failpoint?: StorageFailpoint | undefined
  inFlight?: BytesInFlight
}

export class LocalBackend implements BlobBackend {
  readonly name = 'local'
  /** An open file outlives its unlinking. */
  readonly lingerMilliseconds = 0
  readonly #root: string
  readonly #tmp: string
  readonly #failpoint: StorageFailpoint
  readonly #inFlight: BytesInFlight
  readonly #sending = new BufferRoom(allSendingBytes)
  /** fsync of directories. */
  readonly #sync = new SharedRun(syncDirectory)
  readonly #storeIds = new SharedRun(readStoreId)
  readonly #trust = new DiskTrust(() => probeDirectory(this.#tmp, this.#root))
  /** Tenants that are gone; their ids are never used again. */
  readonly #removed = new Set<string>()
  /** Shards that were there, fsynced into their parents. */
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
      throw new Error(`${this.#tmp} lies on another filesystem than ${this.#root}`)
    // What is younger may be another runtime's that shares the directory; the sweeper takes it in time.
    for (const name of await readdir(this.#tmp)) {
      const file = join(this.#tmp, name)
      const age = (await poll(file))?.age
      if (age !== undefined && age >= abandonedMilliseconds) await removeFile(file)
    }
    await probeDirectory(this.#tmp, this.#root)
  }

  async error(): Promise<string | undefined> {
    try {
      await this.#trust.assure()
      return undefined
    } catch {
      return 'the disk does not keep what is written'
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
        const shard = await this.#location(file, tenantId, blobId)
        await this.#failpoint('write.after-rename')
        await this.#trust.watch(async () => {
          await Promise.all([handle.sync(), this.#sync.run(shard)])
        })
      } finally {
        await handle.close()
      }
      if (this.#removed.has(tenantId)) throw await this.#gone(tenantId)
      return stored
    } catch (cause) {
      await this.remove(tenantId, blobId).catch(() => undefined)
      throw storageError(cause)
    }
  }

  /** In `tmp`, which may have gone with the volume, and not have come back with it. */
  async #openNew(file: string): Promise<FileHandle> {
    try {
      return await open(file, 'wx', 0o600)
    } catch (cause) {
      if (!isMissing(cause)) throw cause
      await mkdir(this.#tmp, { recursive: true, mode: 0o700 })
      return open(file, 'wx', 0o600)
    }
  }

  async #location(file: string, tenantId: string, blobId: string): Promise<string> {
    let shard = await this.#shard(tenantId, blobId)
    try {
      await rename(file, join(shard, blobId))
    } catch (cause) {
      if (!isMissing(cause)) throw cause
      // Another volume has come into the place of the one that the shard was made on.
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
        const seen = await poll(join(this.#root, tenantId, shard.name, entry.name))
        if (seen !== undefined) yield { blobId: entry.name, ...seen }
      }
    }
    for (const blobId of await this.#drafts(tenantId)) {
      const seen = await poll(this.#draft(tenantId, blobId))
      if (seen !== undefined) yield { blobId, ...seen }
    }
  }

  #draft(tenantId: string, blobId: string): string {
    return join(this.#tmp, `${tenantId}.${blobId}`)
  }

  /** Blobs of the tenant that are being written, or that a crash has left so. */
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
    return this.#storeIds.run(this.#storeId(tenantId))
  }

  async claimStore(tenantId: string, storeId: string): Promise<string> {
    if (this.#removed.has(tenantId)) throw await this.#gone(tenantId)
    const directory = join(this.#root, tenantId)
    const draft = join(directory, `store-${randomUUID()}`)
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await writeDurably(draft, storeId)
      // A link is made whole or not at all, and never over a mark that is there.
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
    if (this.#removed.has(tenantId)) throw await this.#gone(tenantId)
    const found = await this.storeId(tenantId)
    if (found === undefined) throw new RuntimeError('STORAGE_UNAVAILABLE', 'the storage can not be written now')
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

  /** Takes away what an upload has written of a tenant that was removed meanwhile. */
  async #gone(tenantId: string): Promise<RuntimeError> {
    await this.removeTenant(tenantId)
    return new RuntimeError('STORAGE_UNAVAILABLE', 'the tenant is gone')
  }

  /** @throws RuntimeError FILE_MISSING for what is no blob's name */
  #path(tenantId: string, blobId: string): string {
    // The name stands in a table of the tenant's, who may have made anything of it.
    if (!blobName.test(blobId)) throw new RuntimeError('FILE_MISSING', 'Object not found: its file is missing')
    return join(this.#root, tenantId, blobId.slice(0, 2), blobId)
  }

  /**
   * Makes a shard on first use, durably: a blob in a directory that a power cut takes away is lost as well. Never the
   * tenant's own directory: one without a mark is nobody's store.
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
