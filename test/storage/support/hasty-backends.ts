// Backends with a planted defect that the power cuts must detect: they acknowledge a blob before it is durable.
// Everything else is the product's code.
import { mkdir, open, rename } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { StoredBlob } from '#tenant-runtime/storage/backend/backend.ts'
import { LocalBackend } from '#tenant-runtime/storage/backend/local.ts'

abstract class HastyBackend extends LocalBackend {
  readonly #root: string

  constructor(root: string) {
    super(root)
    this.#root = root
  }

  abstract readonly syncs: { file: boolean; directory: boolean }

  override async put(tenantId: string, blobId: string, source: Readable): Promise<StoredBlob> {
    const shard = join(this.#root, tenantId, blobId.slice(0, 2))
    await mkdir(shard, { recursive: true })
    const bytes = Buffer.concat((await source.toArray()) as Buffer[])
    const draft = join(this.#root, 'tmp', `${tenantId}.${blobId}`)
    const file = await open(draft, 'wx')
    await file.writeFile(bytes)
    if (this.syncs.file) await file.sync()
    await file.close()
    await rename(draft, join(shard, blobId))
    for (const directory of this.syncs.directory ? [shard, join(shard, '..')] : []) {
      const handle = await open(directory)
      await handle.sync()
      await handle.close()
    }
    return { size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
  }
}

/** Does not sync the file, so its bytes may not reach the disk. */
export class WithoutFileSync extends HastyBackend {
  readonly syncs = { file: false, directory: true }
}

/** Does not sync the directory, so the file's name may not reach the disk. */
export class WithoutDirectorySync extends HastyBackend {
  readonly syncs = { file: true, directory: false }
}
