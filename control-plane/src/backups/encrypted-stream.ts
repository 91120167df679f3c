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
const maxBuffers = 8

/** Receives a chunk that a stream has used, for example to free its memory. */
type AfterUse = (chunk: Uint8Array) => void

/**
 * Encrypts a part.
 * @param key 32 bytes
 * @param context identifies the part: `<backup id>/<name>`
 * @param afterUse called with chunks of the source that are encrypted
 */
export async function* encrypted(
  source: AsyncIterable<Uint8Array>,
  key: Uint8Array,
  context: string,
  afterUse: AfterUse = () => undefined,
): AsyncGenerator<Buffer, undefined> {
  const salt = randomBytes(saltBytes)
  const chunkKey = keyOf(key, salt, context)
  yield Buffer.concat([magic, salt])
  let number = 0
  // The last chunk is known only at the end, so one chunk is always held back.
  for await (const { buffers, isLast } of sized(source, chunkBytes, chunkBytes, afterUse)) {
    const cipher = createCipheriv(algorithm, chunkKey, nonceOf(number++, isLast))
    for (const buffer of buffers) yield cipher.update(buffer)
    cipher.final()
    yield cipher.getAuthTag()
  }
}

/**
 * Decrypts a part. The chunks before an error are authentic.
 * @param afterUse called with chunks of the source that are decrypted
 * @throws BackupError DAMAGED at the first chunk that does not decrypt
 */
export async function* decrypted(
  source: AsyncIterable<Uint8Array>,
  key: Uint8Array,
  context: string,
  afterUse: AfterUse = () => undefined,
): AsyncGenerator<Buffer, undefined> {
  let chunkKey: Buffer | undefined
  let number = 0
  for await (const { buffers, isLast } of sized(source, chunkBytes + tagBytes, headerBytes, afterUse)) {
    if (chunkKey === undefined) {
      const bytes = Buffer.concat(buffers)
      if (bytes.length < headerBytes || !bytes.subarray(0, magic.length).equals(magic)) throw damaged(context)
      chunkKey = keyOf(key, bytes.subarray(magic.length), context)
      if (isLast) throw damaged(context)
      continue
    }
    yield* opened(buffers, chunkKey, nonceOf(number++, isLast), context)
  }
}

/** Decrypts a chunk. Nothing is returned before all of it is authenticated. */
function opened(buffers: readonly Uint8Array[], key: Buffer, nonce: Buffer, context: string): Buffer[] {
  const { content, tag } = withoutTag(buffers, context)
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  decipher.setAuthTag(tag)
  const plain = content.map((buffer) => decipher.update(buffer))
  try {
    decipher.final()
  } catch (cause) {
    throw damaged(context, cause)
  }
  return plain
}

/** Divides a chunk into its content and the tag at its end, which may be in several buffers. */
function withoutTag(buffers: readonly Uint8Array[], context: string): { content: Uint8Array[]; tag: Buffer } {
  const content = [...buffers]
  const ends: Uint8Array[] = []
  for (let missing = tagBytes; missing > 0;) {
    const last = content.pop()
    if (last === undefined) throw damaged(context)
    const cut = Math.max(0, last.length - missing)
    ends.unshift(last.subarray(cut))
    missing -= last.length - cut
    if (cut > 0) content.push(last.subarray(0, cut))
  }
  return { content, tag: Buffer.concat(ends) }
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

interface Chunk {
  /** The bytes of the chunk, not copied from the source, unless there are many buffers. */
  buffers: readonly Uint8Array[]
  isLast: boolean
}

/**
 * Divides a stream into chunks of `size` bytes, the first of `firstSize`. The last chunk has the rest; there is always
 * one.
 * @param afterUse called with each chunk of the source when the chunk with its last byte was used
 */
async function* sized(
  source: AsyncIterable<Uint8Array>,
  size: number,
  firstSize: number,
  afterUse: AfterUse,
): AsyncGenerator<Chunk, undefined> {
  let wanted = firstSize
  let gathered: Uint8Array[] = []
  let length = 0
  let used: Uint8Array[] = []
  for await (const bytes of source) {
    let rest = bytes
    // A full chunk is yielded only once more bytes have arrived.
    while (length + rest.length > wanted) {
      const taken = wanted - length
      if (taken > 0) gathered.push(rest.subarray(0, taken))
      yield { buffers: few(gathered), isLast: false }
      used.forEach(afterUse)
      used = []
      rest = rest.subarray(taken)
      gathered = []
      length = 0
      wanted = size
    }
    used.push(bytes)
    if (rest.length === 0) continue
    gathered.push(rest)
    length += rest.length
  }
  yield { buffers: few(gathered), isLast: true }
}

/** Joins many small buffers, because each one costs a call of the cipher. */
function few(buffers: readonly Uint8Array[]): readonly Uint8Array[] {
  return buffers.length > maxBuffers ? [Buffer.concat(buffers)] : buffers
}
