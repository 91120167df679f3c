// Encryption of a backup's parts at rest: AES-256-GCM in chunks, so that nothing unproven is ever passed on and memory
// does not depend on the length.
//
//   magic (8) | salt (16) | chunk | chunk | … | last chunk
//   chunk: 64 KiB encrypted | tag (16); the last one holds 0 bytes to 64 KiB
//
// Each part has a key of its own, derived from the backup's key, the salt and the part's name. A chunk's nonce is its
// number and whether it is the last: chunks that are swapped, left out, repeated or cut off do not open.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { BackupError } from './backup-error.ts'

const algorithm = 'aes-256-gcm'
const magic = Buffer.from('TNTYBAK1')
const saltBytes = 16
const tagBytes = 16
const headerBytes = magic.length + saltBytes
export const chunkBytes = 64 * 1024

export const keyBytes = 32

/** @param key 32 bytes @param context what the part is: `<backup id>/<name>` */
export async function* encrypted(
  source: AsyncIterable<Uint8Array>,
  key: Uint8Array,
  context: string,
): AsyncGenerator<Buffer, undefined> {
  const salt = randomBytes(saltBytes)
  const chunkKey = keyOf(key, salt, context)
  yield Buffer.concat([magic, salt])
  let number = 0
  // The last chunk is known only at the end, so one is always held back.
  for await (const { bytes, isLast } of sized(source, chunkBytes)) {
    const cipher = createCipheriv(algorithm, chunkKey, nonceOf(number++, isLast))
    yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
  }
}

/** @throws BackupError DAMAGED as soon as a chunk does not open; what came before it was whole */
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
  return new BackupError('DAMAGED', `the part "${context.split('/').at(-1) ?? ''}" of the backup is damaged`, { cause })
}

function keyOf(key: Uint8Array, salt: Uint8Array, context: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, salt, `tenantry backup ${context}`, keyBytes))
}

/** 12 bytes: a number of 11, then 1 for the last chunk. A key encrypts one stream only, so no nonce comes twice. */
function nonceOf(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeUIntBE(number, 5, 6)
  nonce[11] = isLast ? 1 : 0
  return nonce
}

/** The same bytes in pieces of `size`, the first of `firstSize`; the last is what is left, and there is always one. */
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
    // A full piece is given only when more has come.
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
