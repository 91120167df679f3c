// Encrypts a backup's parts at rest with AES-256-GCM, in chunks: only authenticated data is passed on, and memory does
// not depend on the length.
//
//   magic (8 bytes) | salt (16) | chunk | chunk | … | last chunk
//   chunk: 64 KiB encrypted | tag (16); the last one holds 0 bytes to 64 KiB
//
// Each part has its own key, derived from the backup's key, the salt and the part's name. A chunk's nonce is its number
// and whether it is the last one, so chunks that are swapped, left out, repeated or cut off do not decrypt.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { BackupError } from './backup-error.ts'

const algorithm = 'aes-256-gcm'
const magic = Buffer.from('TNTYBAK1')
const saltBytes = 16
const tagBytes = 16
const headerBytes = magic.length + saltBytes
export const chunkBytes = 64 * 1024

export const keyBytes = 32

/**
 * Encrypts a part.
 * @param key 32 bytes
 * @param context identifies the part: `<backup id>/<name>`
 */
export async function* encrypted(
  source: AsyncIterable<Uint8Array>,
  key: Uint8Array,
  context: string,
): AsyncGenerator<Buffer, undefined> {
  const salt = randomBytes(saltBytes)
  const chunkKey = keyOf(key, salt, context)
  yield Buffer.concat([magic, salt])
  let number = 0
  // The last chunk is known only at the end, so one chunk is always held back.
  for await (const { bytes, isLast } of sized(source, chunkBytes)) {
    const cipher = createCipheriv(algorithm, chunkKey, nonceOf(number++, isLast))
    yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
  }
}

/**
 * Decrypts a part. The chunks before an error are authentic.
 * @throws BackupError DAMAGED at the first chunk that does not decrypt
 */
export async function* decrypted(
  source: AsyncIterable<Uint8Array>,
  key: Uint8Array,
  context: string,
): AsyncGenerator<Buffer, undefined> {
  let chunkKey: Buffer | undefined
  let number = 0
  for await (const { bytes, isLast } of sized(source, chunkBytes + tagBytes, headerBytes)) {
    if (chunkKey === undefined) {
      if (bytes.length < headerBytes || !bytes.subarray(0, magic.length).equals(magic)) throw damaged(context)
      chunkKey = keyOf(key, bytes.subarray(magic.length), context)
      if (isLast) throw damaged(context)
      continue
    }
    yield opened(bytes, chunkKey, nonceOf(number++, isLast), context)
  }
}

function opened(bytes: Buffer, key: Buffer, nonce: Buffer, context: string): Buffer {
  if (bytes.length < tagBytes) throw damaged(context)
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  const plain = decipher.update(bytes.subarray(0, -tagBytes))
  try {
    decipher.final()
  } catch (cause) {
    throw damaged(context, cause)
  }
  return plain
}

function damaged(context: string, cause?: unknown): BackupError {
  return new BackupError('DAMAGED', `The part "${context.split('/').at(-1) ?? ''}" of the backup is damaged.`, {
    cause,
  })
}

function keyOf(key: Uint8Array, salt: Uint8Array, context: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, salt, `tenantry backup ${context}`, keyBytes))
}

/**
 * Returns a nonce of 12 bytes: the number in 11 bytes, then 1 for the last chunk. A key encrypts only one stream, so no
 * nonce repeats.
 */
function nonceOf(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeUIntBE(number, 5, 6)
  nonce[11] = isLast ? 1 : 0
  return nonce
}

/**
 * Divides a stream into chunks of `size` bytes, the first of `firstSize`. The last chunk has the rest; there is always
 * one.
 */
async function* sized(
  source: AsyncIterable<Uint8Array>,
  size: number,
  firstSize = size,
): AsyncGenerator<{ bytes: Buffer; isLast: boolean }, undefined> {
  let wanted = firstSize
  let gathered: Uint8Array[] = []
  let length = 0
  for await (const chunk of source) {
    let rest = chunk
    // A full chunk is yielded only once more bytes have arrived.
    while (length + rest.length > wanted) {
      const taken = wanted - length
      yield { bytes: Buffer.concat([...gathered, rest.subarray(0, taken)]), isLast: false }
      rest = rest.subarray(taken)
      gathered = []
      length = 0
      wanted = size
    }
    if (rest.length === 0) continue
    gathered.push(rest)
    length += rest.length
  }
  yield { bytes: Buffer.concat(gathered), isLast: true }
}
