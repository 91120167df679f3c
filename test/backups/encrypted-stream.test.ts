// Decryption of a backup returns the plain bytes, and detects every change of the encrypted bytes.
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { seed } from '#test/support/effort.ts'
import { chunkBytes, decrypted, encrypted } from '#control-plane/backups/encrypted-stream.ts'
import { releaseMemory } from '#control-plane/backups/release-memory.ts'

const key = randomBytes(32)
const context = 'b1/database'
const headBytes = 24
const sealedChunk = chunkBytes + 16

async function* partsOf(...parts: Uint8Array[]) {
  yield* parts
}

async function whole(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const seal = (plain: Uint8Array, name = context, withKey: Uint8Array = key) =>
  whole(encrypted(partsOf(plain), withKey, name))
const open = (sealed: Uint8Array, name = context, withKey: Uint8Array = key) =>
  whole(decrypted(partsOf(sealed), withKey, name))

t.test('decryption returns the plain bytes, for any chunks', async (t) => {
  for (const length of [0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 3 * chunkBytes, 3 * chunkBytes + 7]) {
    const plain = randomBytes(length)
    t.ok((await open(await seal(plain))).equals(plain), `${length} bytes`)
  }
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ maxLength: 200_000 }), { maxLength: 6 }),
      fc.integer({ min: 1, max: 100_000 }),
      async (parts, cut) => {
        const sealed = await whole(encrypted(partsOf(...parts), key, context))
        const cuts = Array.from({ length: Math.ceil(sealed.length / cut) }, (_, at) =>
          sealed.subarray(at * cut, (at + 1) * cut),
        )
        return (await whole(decrypted(partsOf(...cuts), key, context))).equals(Buffer.concat(parts))
      },
    ),
    { numRuns: 40, seed },
  )
})

t.test('each chunk of a source is passed on after its use, and may be freed then', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 200_000 }), { maxLength: 6 }), async (parts) => {
      const plain = Buffer.concat(parts)
      const sources = parts.map((part) => new Uint8Array(part))
      const sealed = new Uint8Array(await whole(encrypted(partsOf(...sources), key, context, releaseMemory)))
      const opened = await whole(decrypted(partsOf(sealed.slice(0, 30), sealed.slice(30)), key, context, releaseMemory))
      return opened.equals(plain)
    }),
    { numRuns: 40, seed },
  )
  const used: Uint8Array[] = []
  const sources = [randomBytes(chunkBytes), randomBytes(chunkBytes), randomBytes(10)]
  const chunks = encrypted(partsOf(...sources), key, context, (chunk) => used.push(chunk))
  const usedBefore: number[] = []
  for await (const chunk of chunks) {
    t.ok(chunk)
    usedBefore.push(used.length)
  }
  t.same(usedBefore, [0, 0, 0, 1, 1, 2, 2])
  t.same(used, sources.slice(0, 2), 'the last chunk ends with the stream')
})

t.test('the same plain bytes are never encrypted to the same bytes', async (t) => {
  const [first, second] = [await seal(Buffer.alloc(100)), await seal(Buffer.alloc(100))]
  t.notOk(first.subarray(headBytes).equals(second.subarray(headBytes)))
})

t.test('decryption detects a flipped bit at any position', async (t) => {
  const sealed = await seal(randomBytes(2 * chunkBytes + 100))
  for (const at of [
    0,
    8,
    headBytes,
    headBytes + 5,
    headBytes + sealedChunk - 1,
    headBytes + sealedChunk,
    sealed.length - 1,
    ...Array.from({ length: 40 }, () => Math.floor(Math.random() * sealed.length)),
  ]) {
    const flipped = Buffer.from(sealed)
    flipped[at] = (flipped[at] ?? 0) ^ 1
    await t.rejects(open(flipped), { code: 'DAMAGED' }, `byte ${at}`)
  }
})

t.test('decryption detects truncation, also between two chunks', async (t) => {
  const sealed = await seal(randomBytes(2 * chunkBytes + 100))
  for (const length of [
    0,
    7,
    headBytes - 1,
    headBytes,
    headBytes + 15,
    headBytes + 16,
    headBytes + sealedChunk,
    headBytes + 2 * sealedChunk,
    sealed.length - 1,
  ]) {
    await t.rejects(open(sealed.subarray(0, length)), { code: 'DAMAGED' }, `${length} bytes of ${sealed.length}`)
  }
  await t.rejects(
    open(Buffer.concat([sealed, Buffer.alloc(1)])),
    { code: 'DAMAGED' },
    'decryption detects an added byte',
  )
  await t.rejects(open(Buffer.concat([sealed, sealed.subarray(headBytes)])), { code: 'DAMAGED' })
})

t.test('decryption detects swapped, repeated and missing chunks', async (t) => {
  const sealed = await seal(randomBytes(3 * chunkBytes))
  const head = sealed.subarray(0, headBytes)
  const [a, b, c] = [0, 1, 2].map((n) =>
    sealed.subarray(headBytes + n * sealedChunk, headBytes + (n + 1) * sealedChunk),
  )
  if (a === undefined || b === undefined || c === undefined) throw new Error('three chunks')
  for (const order of [
    [b, a, c],
    [a, a, c],
    [a, c],
    [b, c],
    [a, c, b],
    [a, b, b, c],
  ])
    await t.rejects(open(Buffer.concat([head, ...order])), { code: 'DAMAGED' })
  t.equal((await open(Buffer.concat([head, a, b, c]))).length, 3 * chunkBytes)
})

t.test('a part decrypts only under its own name, backup and key', async (t) => {
  const sealed = await seal(randomBytes(100))
  await t.rejects(open(sealed, 'b1/files'), { code: 'DAMAGED' })
  await t.rejects(open(sealed, 'b2/database'), { code: 'DAMAGED' })
  await t.rejects(open(sealed, context, randomBytes(32)), { code: 'DAMAGED' })
})

t.test('decryption yields only authenticated chunks', async (t) => {
  const plain = randomBytes(2 * chunkBytes)
  const sealed = await seal(plain)
  sealed[headBytes + sealedChunk + 3] = (sealed[headBytes + sealedChunk + 3] ?? 0) ^ 1
  const passed: Buffer[] = []
  await t.rejects(async () => {
    for await (const chunk of decrypted(partsOf(sealed), key, context)) passed.push(chunk)
  })
  t.ok(Buffer.concat(passed).equals(plain.subarray(0, chunkBytes)), 'only the valid first chunk is returned')
})
