// Writes and reads the parts of a backup: hashes them before encryption, and compares them after decryption.
import { createHash } from 'node:crypto'
import { BackupError } from './backup-error.ts'
import type { PartStore } from './backup-target.ts'
import { recordPart } from './backup-record.ts'
import { decrypted, encrypted } from './encrypted-stream.ts'
import { releaseMemory } from './release-memory.ts'
import { manifestHash, partNames, partOf, readManifest, type Manifest, type Part, type PartName } from './manifest.ts'

const maxManifestBytes = 64 * 1024 * 1024

/** Writes and reads the encrypted parts of one backup. */
export type BackupFiles = ReturnType<typeof openFiles>

/**
 * Opens the parts of a backup.
 * @param key the backup's own key
 */
export function openFiles(target: PartStore, backupId: string, key: Uint8Array, signal: AbortSignal) {
  let bytes = 0
  const context = (name: string) => `${backupId}/${name}`
  const read = (name: string) => decrypted(target.read(backupId, name, signal), key, context(name), releaseMemory)
  const write = async (name: string, content: AsyncIterable<Uint8Array>) => {
    bytes += await target.write(backupId, name, encrypted(content, key, context(name), releaseMemory), signal)
  }
  const manifestText = async () => {
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of read('manifest')) {
      size += chunk.length
      if (size > maxManifestBytes) throw new BackupError('DAMAGED', 'The manifest of the backup is too large.')
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString()
  }
  return {
    /** Returns the bytes in the target so far. */
    bytes: (): number => bytes,

    /** Writes a part. The memory of its chunks is freed. */
    async write(name: PartName, content: AsyncIterable<Uint8Array>): Promise<Part> {
      const hash = createHash('sha256')
      let size = 0
      async function* hashed() {
        for await (const chunk of content) {
          hash.update(chunk)
          size += chunk.length
          yield chunk
        }
      }
      await write(name, hashed())
      return { name, size, sha256: hash.digest('hex') }
    },

    writeManifest: (text: string): Promise<void> => write('manifest', once(text)),
    /** Writes the record in plain text. */
    async writeRecord(text: string): Promise<void> {
      await target.write(backupId, recordPart, once(text), signal)
    },
    commit: (): Promise<void> => target.commit(backupId),
    read,

    readManifest: async (hash: string): Promise<Manifest> => readManifest(await manifestText(), hash),
    /**
     * Returns the hash of the manifest that was written with this key. Without the key no other manifest can be made.
     * @throws BackupError DAMAGED, INCOMPLETE
     */
    manifestHash: async (): Promise<string> => manifestHash(await manifestText()),

    /**
     * Reads every part to its end and compares it.
     * @throws BackupError DAMAGED, INCOMPLETE
     */
    async check(manifest: Manifest): Promise<void> {
      for (const name of partNames) {
        const part = partOf(manifest, name)
        const hash = createHash('sha256')
        let size = 0
        for await (const chunk of read(name)) {
          hash.update(chunk)
          size += chunk.length
          releaseMemory(chunk)
        }
        if (size !== part.size || hash.digest('hex') !== part.sha256)
          throw new BackupError('DAMAGED', `The part "${name}" of the backup is not the one that was written.`)
      }
    },
  }
}

async function* once(text: string): AsyncGenerator<Uint8Array, undefined> {
  yield Buffer.from(text)
}
