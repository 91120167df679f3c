// The floor of backups: one stream that reads a file, hashes it, encrypts it with AES-256-GCM and writes it, and back.
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  randomBytes,
  type CipherGCM,
  type DecipherGCM,
} from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'

const chunk = Buffer.alloc(1_000_000, 'x')

/** Returns the megabytes per second of writing a backup, and of restoring it. */
export async function bareBackup(directory: string, megabytes: number): Promise<{ backup: number; restore: number }> {
  const at = (name: string) => join(directory, name)
  const original = await open(at('original'), 'w')
  for (let n = 0; n < megabytes; n++) await original.write(chunk)
  await original.sync()
  await original.close()
  const [key, nonce] = [randomBytes(32), randomBytes(12)]
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  const backup = await copied(at('original'), cipher, at('backup'))
  const decipher = createDecipheriv('aes-256-gcm', key, nonce).setAuthTag(cipher.getAuthTag())
  const restore = await copied(at('backup'), decipher, at('restored'))
  return { backup: megabytes / backup, restore: megabytes / restore }
}

/** Copies a file, so that it is on the disk. @returns the seconds */
async function copied(from: string, cipher: CipherGCM | DecipherGCM, to: string): Promise<number> {
  const begin = performance.now()
  const hash = createHash('sha256')
  const target = await open(to, 'w')
  for await (const bytes of createReadStream(from, { highWaterMark: 256 * 1024 })) {
    hash.update(bytes as Buffer)
    await target.write(cipher.update(bytes as Buffer))
  }
  await target.write(cipher.final())
  hash.digest()
  await target.sync()
  await target.close()
  return (performance.now() - begin) / 1_000
}
