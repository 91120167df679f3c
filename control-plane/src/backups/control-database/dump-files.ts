// Writes and reads the two encrypted parts of a dump in one target.
import { createHash } from 'node:crypto'
import type { BackupTarget } from '../backup-target.ts'
import { BackupError } from '../backup-error.ts'
import { decrypted, encrypted } from '../encrypted-stream.ts'
import { readDumpManifest, type DumpManifest } from './dump-manifest.ts'
import type { dumpParts } from './dump-folder.ts'

type Part = (typeof dumpParts)[number]

const maxManifestBytes = 4 * 1024 * 1024

/** The parts of one dump. */
export type DumpFiles = ReturnType<typeof openDump>

/**
 * Opens a dump.
 * @param key the key of the installation's dumps
 */
export function openDump(target: BackupTarget, dumpId: string, key: Uint8Array, signal: AbortSignal) {
  const context = (part: Part) => `${dumpId}/${part}`
  const reader = (read: BackupTarget['read']) => (part: Part) =>
    decrypted(read(dumpId, part, signal), key, context(part))
  const readManifest = async (read: BackupTarget['read']): Promise<DumpManifest> => {
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of reader(read)('manifest')) {
      size += chunk.length
      if (size > maxManifestBytes) throw new BackupError('DAMAGED', 'The manifest of the dump is too large.')
      chunks.push(chunk)
    }
    return readDumpManifest(Buffer.concat(chunks).toString())
  }
  const check = async (manifest: DumpManifest, read: BackupTarget['read']): Promise<void> => {
    const { size, sha256 } = await measured(reader(read)('rows'))
    if (size !== manifest.size || sha256 !== manifest.sha256)
      throw new BackupError('DAMAGED', 'The part "rows" of the dump is not the one that was written.')
  }
  return {
    /** Writes a part, and returns its size and hash before encryption. */
    async write(part: Part, content: AsyncIterable<Uint8Array>): Promise<{ size: number; sha256: string }> {
      const hash = createHash('sha256')
      let size = 0
      async function* hashed() {
        for await (const chunk of content) {
          hash.update(chunk)
          size += chunk.length
          yield chunk
        }
      }
      await target.write(dumpId, part, encrypted(hashed(), key, context(part)), signal)
      return { size, sha256: hash.digest('hex') }
    },

    /** Reads back what was written, and commits it. @throws BackupError DAMAGED */
    async commit(): Promise<void> {
      const uncommitted: BackupTarget['read'] = (id, part, stop) => target.readUncommitted(id, part, stop)
      await check(await readManifest(uncommitted), uncommitted)
      await target.commit(dumpId)
    },

    /** Reads the manifest and compares all rows with it. @throws BackupError DAMAGED, INCOMPLETE, TARGET_UNAVAILABLE */
    async checkedManifest(): Promise<DumpManifest> {
      const manifest = await readManifest((id, part, stop) => target.read(id, part, stop))
      await check(manifest, (id, part, stop) => target.read(id, part, stop))
      return manifest
    },

    rows: () => reader((id, part, stop) => target.read(id, part, stop))('rows'),
  }
}

async function measured(content: AsyncIterable<Uint8Array>): Promise<{ size: number; sha256: string }> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of content) {
    hash.update(chunk)
    size += chunk.length
  }
  return { size, sha256: hash.digest('hex') }
}
