// Copies files from the volume of a tenant's own runtime to the runtimes that tenants share. One program in its container packs the
// files of a round.
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { extract } from 'tar-stream'
import { inFiles, type FilesLocation, type RuntimeFiles, type StoredFile } from '../backups/index.ts'
import { paced } from '../platform/pace.ts'
import type { FileTransfer } from './copy-files.ts'
import { MoveError } from './move-error.ts'
import { claimSameStore, fileDiffers, writeCopy } from './write-copy.ts'

const readStoreId = 'if [ -e "$TENANTRY_DATA/blobs/$1/store" ]; then cat "$TENANTRY_DATA/blobs/$1/store"; fi'
/** Packs the files whose names are on standard input. `$1` is the tenant's ID. */
const packing = `
cd "$TENANTRY_DATA/blobs/$1"
tar --create --no-recursion --verbatim-files-from --files-from - --owner=0 --group=0 --numeric-owner
`

interface Ends {
  /** The tenant's own runtimes. */
  source: FilesLocation
  /** The runtimes that tenants share. */
  target: Pick<RuntimeFiles, 'claimStore' | 'hashOf' | 'write'>
  tenantId: string
}

/** Returns the way from a tenant's own runtime to the shared ones. */
export function filesIntoRuntimes({ source, target, tenantId }: Ends): FileTransfer {
  const script = (text: string) => ['bash', '-euo', 'pipefail', '-c', text, 'bash', tenantId]
  return {
    async storeId(signal) {
      const [service] = source.filesServices
      const { code, stdout } = await source.engine.exec(source.stack, service, script(readStoreId), { signal })
      if (code !== 0) throw new MoveError("The files of the tenant's own runtime could not be read.")
      return stdout.trim() === '' ? undefined : stdout.trim()
    },

    async add({ files, storeId, mayExist, pace }, signal) {
      await claimSameStore(target, storeId, signal)
      if (files.length === 0) return
      const archive = Readable.from(inFiles(source)(script(packing), { input: namesOf(files), signal }), {
        objectMode: false,
      })
      const reader = extract()
      archive.on('error', (cause) => reader.destroy(cause))
      const waiting = [...files]
      try {
        for await (const entry of archive.pipe(reader)) {
          const file = waiting.shift()
          if (file === undefined || entry.header.name !== nameOf(file))
            throw new MoveError('The archive of files has other ones than the home.')
          const content = paced(entry as unknown as AsyncIterable<Uint8Array>, pace)
          const present = mayExist ? await target.hashOf(file, signal) : undefined
          if (present === undefined) await writeCopy(file, content, target, signal)
          else if (present !== (await hashOf(content))) throw fileDiffers(file)
          entry.resume()
        }
      } finally {
        archive.destroy()
      }
      if (waiting.length > 0) throw new MoveError(`Of ${files.length} files, ${waiting.length} are missing.`)
    },
  }
}

/** Returns the name of a file in the store. */
function nameOf({ id }: StoredFile): string {
  return `${id.slice(0, 2)}/${id}`
}

async function* namesOf(files: readonly StoredFile[]): AsyncGenerator<Uint8Array, undefined> {
  for (const file of files) yield Buffer.from(`${nameOf(file)}\n`)
}

async function hashOf(content: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of content) hash.update(chunk)
  return hash.digest('hex')
}
