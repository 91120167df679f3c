// Writes and reads the parts of a backup: hashes them before encryption, and compares them after decryption.
import { createHash } from 'node:crypto'
import { BackupError } from './backup-error.ts'
import type { BackupTarget } from './backup-target.ts'
import { recordPart } from './backup-record.ts'
import { decrypted, encrypted } from './encrypted-stream.ts'
import { manifestHash, partNames, partOf, readManifest, type Manifest, type Part, type PartName } from './manifest.ts'

export interface BackupFiles {
  /** Returns the bytes in the target so far. */
  bytes(): number
  write(name: PartName, content: AsyncIterable<Uint8Array>): Promise<Part>
  writeManifest(text: string): Promise<void>
  /** Writes the record in plain text. */
  writeRecord(text: string): Promise<void>
  commit(): Promise<void>
  read(name: PartName): AsyncIterable<Buffer>
  readManifest(hash: string): Promise<Manifest>
  /**
   * Returns the hash of the manifest that was written with this key. Without the key no other manifest can be made.
   * @throws BackupError DAMAGED, INCOMPLETE
   */
  manifestHash(): Promise<string>
  /**
   * Reads every part to its end and compares it.
   * @throws BackupError DAMAGED, INCOMPLETE
   */
  check(manifest: Manifest): Promise<void>
}

const maxManifestBytes = 64 * 1024 * 1024

/**
 * Opens the parts of a backup.
 * @param key the backup's own key
 */
export function openFiles(target: BackupTarget, backupId: string, key: Uint8Array, signal: AbortSignal): BackupFiles {
  let bytes = 0
  const context = (name: string) => `${backupId}/${name}`
  const read = (name: string) => decrypted(target.read(backupId, name, signal), key, context(name))
  const write = async (name: string, content: AsyncIterable<Uint8Array>) => {
    bytes += await target.write(backupId, name, encrypted(content, key, context(name)), signal)
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
    bytes: () => bytes,

    async write(name, content) {
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

    writeManifest: (text) => write('manifest', once(text)),
    async writeRecord(text) {
      await target.write(backupId, recordPart, once(text), signal)
    },
    commit: () => target.commit(backupId),
    read,

    readManifest: async (hash) => readManifest(await manifestText(), hash),
    manifestHash: async () => manifestHash(await manifestText()),

    async check(manifest) {
      for (const name of partNames) {
        const part = partOf(manifest, name)
        const hash = createHash('sha256')
        let size = 0
        for await (const chunk of read(name)) {
          hash.update(chunk)
          size += chunk.length
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
