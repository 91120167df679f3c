// Cases with the same outcome on every backend, whatever its real store is.
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import type { BlobBackend } from '#tenant-runtime/storage/backend/backend.ts'
import { effort } from '#test/support/effort.ts'

export const megabyte = 2 ** 20

export interface Subject {
  /** Opens another backend on the same store, as another process does. */
  open(): Promise<BlobBackend>
}

/** Opens a tenant's store that has a store ID. */
export async function openTenant(open: Subject['open']) {
  const backend = await open()
  const tenantId = `t_${randomBytes(10).toString('hex')}`
  await backend.claimStore(tenantId, randomUUID())
  return { backend, tenantId }
}

const chunked = (body: Buffer, bytes: number) =>
  Readable.from(
    (function* () {
      for (let at = 0; at < body.length; at += bytes) yield body.subarray(at, at + bytes)
    })(),
  )

const sha256 = (body: Buffer) => createHash('sha256').update(body).digest('hex')

export async function listed(backend: BlobBackend, tenantId: string): Promise<string[]> {
  const found: string[] = []
  for await (const { blobId } of backend.list(tenantId)) found.push(blobId)
  return found.sort()
}

const code = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error)
const codeOf = (work: Promise<unknown>) => work.then(() => 'no error', code)

export const cases: Record<string, (t: Test, open: Subject['open']) => Promise<void>> = {
  'A stored blob is read whole, in part and repeatedly': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    for (const size of [0, 70_000, 11 * megabyte + 1]) {
      const blobId = randomUUID()
      const body = randomBytes(size)
      const stored = await backend.put(tenantId, blobId, chunked(body, 60_001), 100 * megabyte)
      t.same(stored, { size, sha256: sha256(body) }, `${size} bytes: counted and hashed`)
      // Reads with another backend, so that no memory of the first one serves the bytes.
      const reader = await open()
      t.ok(
        body.equals((await (await reader.open(tenantId, blobId))?.whole(size)) ?? Buffer.from('absent')),
        `${size} bytes: all at once`,
      )
      const longer = await reader.open(tenantId, blobId)
      await t.rejects(
        async () => {
          await longer?.whole(size + 1)
        },
        { code: 'FILE_MISSING' },
        `${size} bytes: a read beyond the end fails`,
      )
      if (size < 100) continue
      const streamed = (await reader.open(tenantId, blobId))?.stream(0, size - 1)
      t.ok(body.equals(await buffer(streamed ?? Readable.from([]))), `${size} bytes: as a stream`)
      for (const [start, end] of [
        [0, 0],
        [0, 9],
        [17, 60_123],
        [size - 1, size - 1],
        [size - 65_537, size - 1],
      ] as const) {
        const part = (await reader.open(tenantId, blobId))?.stream(start, end)
        t.ok(
          body.subarray(start, end + 1).equals(await buffer(part ?? Readable.from([]))),
          `${size} bytes: from ${start} to ${end}`,
        )
      }
      const opened = await reader.open(tenantId, blobId)
      const parts: Buffer[] = []
      for (const [start, end] of [
        [5, 9],
        [0, 4],
        [0, 9],
      ] as const)
        for await (const chunk of opened?.read(start, end) ?? []) parts.push(chunk)
      await opened?.close()
      t.ok(
        Buffer.concat(parts).equals(Buffer.concat([body.subarray(5, 10), body.subarray(0, 5), body.subarray(0, 10)])),
        `${size} bytes: several parts of one open file`,
      )
    }
    t.equal((await listed(backend, tenantId)).length, 3, 'all blobs are listed')
  },

  'One byte over the limit is rejected, in the first bytes or after many, and nothing of it remains': async (
    t,
    open,
  ) => {
    const { backend, tenantId } = await openTenant(open)
    for (const limit of [0, 1000, 6 * megabyte]) {
      t.equal(
        await codeOf(backend.put(tenantId, randomUUID(), chunked(Buffer.alloc(limit + 1), 60_000), limit)),
        'FILE_TOO_LARGE',
        `${limit} bytes`,
      )
    }
    const exact = randomUUID()
    t.equal(
      (await backend.put(tenantId, exact, chunked(Buffer.alloc(6 * megabyte), 60_000), 6 * megabyte)).size,
      6 * megabyte,
      'exactly the limit',
    )
    t.same(await listed(backend, tenantId), [exact], 'nothing of a rejected upload remains')
  },

  'A sender that disconnects midway leaves nothing': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    for (const sent of [10, 11 * megabyte]) {
      // The listener stands for that of an HTTP request.
      const source = new PassThrough().on('error', () => undefined)
      const putting = codeOf(backend.put(tenantId, randomUUID(), source, 100 * megabyte))
      for (let at = 0; at < sent; at += megabyte)
        if (!source.write(Buffer.alloc(Math.min(sent, megabyte))))
          await new Promise((resolve) => source.once('drain', resolve))
      source.destroy(Object.assign(new Error('the sender went away'), { code: 'GONE' }))
      t.equal(await putting, 'GONE', `after ${sent} bytes: the sender's own error`)
    }
    t.same(await listed(backend, tenantId), [], 'not even half of the blob is listed')
  },

  'Concurrent uploads do not mix': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    const blobs = Array.from({ length: 16 }, (_, n) => ({
      blobId: randomUUID(),
      body: Buffer.alloc(n % 4 === 0 ? 6 * megabyte : 10_000 + n, `blob ${n} `),
    }))
    const stored = await Promise.all(
      blobs.map(({ blobId, body }) => backend.put(tenantId, blobId, chunked(body, 65_536), 100 * megabyte)),
    )
    t.same(
      stored.map((blob) => blob.sha256),
      blobs.map(({ body }) => sha256(body)),
    )
    const read = await Promise.all(
      blobs.map(async ({ blobId, body }) =>
        sha256((await (await backend.open(tenantId, blobId))?.whole(body.length)) ?? Buffer.alloc(0)),
      ),
    )
    t.same(
      read,
      stored.map((blob) => blob.sha256),
    )
  },

  'Removing is final, and repeating it succeeds': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    const [stored, removed] = [randomUUID(), randomUUID()]
    for (const blobId of [stored, removed])
      await backend.put(tenantId, blobId, Readable.from([Buffer.from(blobId)]), 1000)
    await backend.remove(tenantId, removed)
    await backend.remove(tenantId, removed)
    await backend.remove(tenantId, randomUUID())
    t.equal(await backend.open(tenantId, removed), undefined)
    t.same(await listed(backend, tenantId), [stored])
  },

  'An open file that is not read, or only partly, blocks nothing': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    const blobId = randomUUID()
    await backend.put(tenantId, blobId, chunked(Buffer.alloc(6 * megabyte), 65_536), 100 * megabyte)
    for (let n = 0; n < 3; n++) {
      await (await backend.open(tenantId, blobId))?.close()
      const stream = (await backend.open(tenantId, blobId))?.stream(0, 6 * megabyte - 1)
      for await (const chunk of stream ?? []) {
        t.ok((chunk as Buffer).length > 0)
        break
      }
    }
    t.equal((await (await backend.open(tenantId, blobId))?.whole(6 * megabyte))?.length, 6 * megabyte)
  },

  'An absent blob is undefined, and a name that is not a blob ID opens nothing': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    t.equal(await backend.open(tenantId, randomUUID()), undefined)
    t.equal(await backend.open('t_00000000000000000000', randomUUID()), undefined, 'another tenant')
    t.same(await listed(backend, 't_00000000000000000000'), [])
    for (const name of [
      '../store',
      'store',
      '',
      `${randomUUID()}/x`,
      `${randomUUID()}\n`,
      randomUUID().toUpperCase(),
    ]) {
      t.equal(await codeOf(backend.open(tenantId, name)), 'FILE_MISSING', JSON.stringify(name))
      t.equal(await codeOf(backend.remove(tenantId, name)), 'FILE_MISSING', JSON.stringify(name))
    }
    t.type(await backend.storeId(tenantId), 'string', 'the store ID is unchanged')
  },

  'One of eight concurrent claims of a store succeeds, and all receive its store ID': async (t, open) => {
    for (let round = 0; round < effort({ small: 1, full: 100 }); round++) {
      const tenantId = `t_${randomBytes(10).toString('hex')}`
      const claimants = await Promise.all(
        Array.from({ length: 8 }, async () => ({ backend: await open(), storeId: randomUUID() })),
      )
      t.equal(await claimants[0]?.backend.storeId(tenantId), undefined, 'the store is unclaimed')
      const storeIds = await Promise.all(claimants.map(({ backend, storeId }) => backend.claimStore(tenantId, storeId)))
      t.equal(new Set(storeIds).size, 1, 'all receive the same ID')
      t.ok(
        claimants.some(({ storeId }) => storeId === storeIds[0]),
        "it is one of the claimants'",
      )
      t.equal(
        await (await open()).claimStore(tenantId, randomUUID()),
        storeIds[0],
        'a later claim receives the same ID',
      )
      t.equal(await (await open()).storeId(tenantId), storeIds[0])
    }
  },

  'Removing a tenant during an upload leaves nothing of it, and other tenants keep their blobs': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    const other = await openTenant(open)
    const stored = randomUUID()
    await other.backend.put(other.tenantId, stored, Readable.from([Buffer.from('stored')]), 1000)
    for (let n = 0; n < 5; n++) await backend.put(tenantId, randomUUID(), Readable.from([Buffer.from('gone')]), 1000)
    for (const size of [10, 11 * megabyte]) {
      const source = new PassThrough()
      const putting = codeOf(backend.put(tenantId, randomUUID(), source, 100 * megabyte))
      source.write(Buffer.alloc(size))
      await backend.removeTenant(tenantId)
      source.end(Buffer.alloc(10))
      t.equal(await putting, 'STORAGE_UNAVAILABLE', 'the upload fails')
    }
    await backend.removeTenant(tenantId)
    t.equal(await codeOf(backend.claimStore(tenantId, randomUUID())), 'STORAGE_UNAVAILABLE', 'and so does a new claim')
    t.same(await listed(await open(), tenantId), [])
    t.equal(await (await open()).storeId(tenantId), undefined)
    t.same(await listed(other.backend, other.tenantId), [stored])
  },

  'A tenant remains paired until the pairing is removed': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    t.equal(await backend.isPaired(tenantId), false)
    await backend.setPaired(tenantId, true)
    await backend.setPaired(tenantId, true)
    t.equal(await (await open()).isPaired(tenantId), true)
    await backend.setPaired(tenantId, false)
    await backend.setPaired(tenantId, false)
    t.equal(await (await open()).isPaired(tenantId), false)
    t.same(await listed(backend, tenantId), [], 'the mark is not a blob')
  },

  'The age of a blob counts from its write': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    await backend.put(tenantId, randomUUID(), Readable.from([Buffer.from('young')]), 1000)
    for await (const { age } of backend.list(tenantId)) t.ok(age >= 0 && age < 60_000, `${age} ms`)
  },
}
