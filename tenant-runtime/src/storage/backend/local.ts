// Blobs in the local filesystem: written aside, fsynced, renamed into place, and the place fsynced too.
//
//   tmp/<tenant>.<blob>            being written
//   <tenant>/store                 mark of the store
//   <tenant>/<xx>/<blob>           one of 256 shards, by the blob's first byte
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, open, opendir, readdir, readFile, rename, rm, stat, unlink, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { RuntimeError } from '../../errors.ts'
import type { BlobBackend, OpenBlob, StoredBlob } from './backend.ts'
import { GroupSync } from './group-sync.ts'

const readChunkBytes = 512 * 1024
/** Written to disk at once; what a sender gives in small pieces is gathered. */
const writeChunkBytes = 1024 * 1024

const blobName = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export class LocalBackend implements BlobBackend {
  readonly name = 'local'
  readonly #root: string
  readonly #tmp: string
  readonly #sync = new GroupSync()
  /** Shards known to be there, and fsynced into their parents. */
  /** Tenants that are gone; their ids are never used again. */
  readonly #removed = new Set<string>()
  readonly #shards = new Map<string, Promise<string>>()

  constructor(root: string) {
    this.#root = root
    this.#tmp = join(root, 'tmp')
  }

  async start(): Promise<void> {
    await mkdir(this.#tmp, { recursive: true, mode: 0o700 })
    await this.#sync.sync(this.#root)
    if ((await stat(this.#tmp)).dev !== (await stat(this.#root)).dev) throw new Error(`${this.#tmp} lies on another filesystem than ${this.#root}`)
    // Nothing of an earlier run is still being written.
    for (const file of await readdir(this.#tmp)) await unlink(join(this.#tmp, file))
    await this.#probe()
  }

  /** Can the store be written, synced and read back? */
  async #probe(): Promise<void> {
    const file = join(this.#tmp, `probe-${randomUUID()}`)
    const text = randomUUID()
    const handle = await open(file, 'wx', 0o600)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    const read = await readFile(file, 'utf8')
    await unlink(file)
    if (read !== text) throw new Error(`${this.#root} gave back other bytes than were written`)
  }

  async put(tenantId: string, blobId: string, source: Readable, limit: number): Promise<StoredBlob> {
    const file = join(this.#tmp, `${tenantId}.${blobId}`)
    try {
      const handle = await open(file, 'wx', 0o600)
      let stored: StoredBlob
      try {
        stored = await writeAll(handle, source, limit)
        await handle.sync()
      } finally {
        await handle.close()
      }
      const shard = await this.#shard(tenantId, blobId)
      await rename(file, join(shard, blobId))
      await this.#sync.sync(shard)
      if (this.#removed.has(tenantId)) throw await this.#gone(tenantId)
      return stored
    } catch (cause) {
      await unlink(file).catch(() => undefined)
      throw storageError(cause)
    }
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
      stream: (start, end) => handle.createReadStream({ start, end, highWaterMark: readChunkBytes, autoClose: true }),
      async whole() {
        try {
          return await handle.readFile()
        } finally {
          await handle.close()
        }
      },
      close: () => handle.close(),
    }
  }

  async remove(tenantId: string, blobId: string): Promise<void> {
    await unlink(this.#path(tenantId, blobId)).catch((cause: unknown) => {
      if (!isMissing(cause)) throw storageError(cause)
    })
  }

  async *list(tenantId: string): AsyncGenerator<{ blobId: string; age: number }> {
    const shards = await readdir(join(this.#root, tenantId), { withFileTypes: true }).catch((cause: unknown) => {
      if (isMissing(cause)) return []
      throw cause
    })
    for (const shard of shards) {
      if (!shard.isDirectory()) continue
      for await (const entry of await opendir(join(this.#root, tenantId, shard.name))) {
        const seen = await stat(join(this.#root, tenantId, shard.name, entry.name)).catch(() => undefined)
        if (seen !== undefined) yield { blobId: entry.name, age: Date.now() - seen.mtimeMs }
      }
    }
  }

  async storeId(tenantId: string, wanted: string): Promise<string> {
    const file = join(this.#root, tenantId, 'store')
    const known = await readFile(file, 'utf8').catch((cause: unknown) => {
      if (isMissing(cause)) return undefined
      throw cause
    })
    if (known !== undefined) return known.trim()
    await mkdir(join(this.#root, tenantId), { recursive: true, mode: 0o700 })
    const handle = await open(file, 'w', 0o600)
    try {
      await handle.writeFile(wanted)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await this.#sync.sync(join(this.#root, tenantId))
    return wanted
  }

  async removeTenant(tenantId: string): Promise<void> {
    this.#removed.add(tenantId)
    await rm(join(this.#root, tenantId), { recursive: true, force: true })
    for (const file of await readdir(this.#tmp)) {
      if (file.startsWith(`${tenantId}.`)) await unlink(join(this.#tmp, file)).catch(() => undefined)
    }
    for (const shard of this.#shards.keys()) if (shard.startsWith(join(this.#root, tenantId))) this.#shards.delete(shard)
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

  /** Makes a shard on first use, durably: a blob in a directory that a power cut takes away is lost as well. */
  #shard(tenantId: string, blobId: string): Promise<string> {
    const tenant = join(this.#root, tenantId)
    const shard = join(tenant, blobId.slice(0, 2))
    let making = this.#shards.get(shard)
    if (making === undefined) {
      making = (async () => {
        await mkdir(shard, { recursive: true, mode: 0o700 })
        await this.#sync.sync(tenant)
        await this.#sync.sync(this.#root)
        return shard
      })()
      this.#shards.set(shard, making)
      making.catch(() => this.#shards.delete(shard))
    }
    return making
  }
}

async function writeAll(handle: FileHandle, source: Readable, limit: number): Promise<StoredBlob> {
  const hash = createHash('sha256')
  let size = 0
  let gathered: Buffer[] = []
  let gatheredBytes = 0
  const flush = async () => {
    const buffers = gathered
    gathered = []
    gatheredBytes = 0
    if (buffers.length > 0) await writeFully(handle, buffers)
  }
  for await (const chunk of source as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) throw new RuntimeError('FILE_TOO_LARGE', 'The object exceeded the maximum allowed size')
    hash.update(chunk)
    gathered.push(chunk)
    gatheredBytes += chunk.length
    if (gatheredBytes >= writeChunkBytes) await flush()
  }
  await flush()
  return { size, sha256: hash.digest('hex') }
}

/** The kernel may take less than it was given. */
async function writeFully(handle: FileHandle, buffers: Buffer[]): Promise<void> {
  const wanted = buffers.reduce((sum, buffer) => sum + buffer.length, 0)
  const { bytesWritten } = await handle.writev(buffers)
  if (bytesWritten === wanted) return
  const rest = Buffer.concat(buffers).subarray(bytesWritten)
  for (let at = 0; at < rest.length; ) at += (await handle.write(rest, at)).bytesWritten
}

function isMissing(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
}

function storageError(cause: unknown): unknown {
  if (!(cause instanceof Error) || !('code' in cause)) return cause
  if (cause.code === 'ENOSPC' || cause.code === 'EDQUOT') return new RuntimeError('STORAGE_FULL', 'the storage has no room left', { cause })
  if (cause.code === 'EIO' || cause.code === 'EROFS' || cause.code === 'EMFILE' || cause.code === 'ENFILE') {
    return new RuntimeError('STORAGE_UNAVAILABLE', 'the storage can not be written now', { cause })
  }
  return cause
}
