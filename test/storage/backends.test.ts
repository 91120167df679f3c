// Every backend does the same: one list of cases, run against each on what it really stores upon.
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { readConfig } from '#tenant-runtime/config.ts'
import type { BlobBackend } from '#tenant-runtime/storage/backend/backend.ts'
import { LocalBackend } from '#tenant-runtime/storage/backend/local.ts'
import { PairedBackend } from '#tenant-runtime/storage/backend/paired.ts'
import { agree, type Registers } from '#tenant-runtime/storage/backend/s3-agreement.ts'
import { S3Backend } from '#tenant-runtime/storage/backend/s3.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startS3Server } from '#test/support/s3-server.ts'

const megabyte = 2 ** 20

interface Subject {
  /** Another one on the same store, as another process has it. */
  open(): Promise<BlobBackend>
}

/** A tenant's store, marked. */
async function openTenant(open: Subject['open']) {
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

async function listed(backend: BlobBackend, tenantId: string): Promise<string[]> {
  const found: string[] = []
  for await (const { blobId } of backend.list(tenantId)) found.push(blobId)
  return found.sort()
}

const code = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error)
const codeOf = (work: Promise<unknown>) => work.then(() => 'no error', code)

const cases: Record<string, (t: Test, open: Subject['open']) => Promise<void>> = {
  'what was put is there, whole, in parts and as often as wanted': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    for (const size of [0, 70_000, 11 * megabyte + 1]) {
      const blobId = randomUUID()
      const body = randomBytes(size)
      const stored = await backend.put(tenantId, blobId, chunked(body, 60_001), 100 * megabyte)
      t.same(stored, { size, sha256: sha256(body) }, `${size} bytes: counted and hashed`)
      // Another one, so that nothing is answered from memory.
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
        `${size} bytes: no more are made up`,
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
        `${size} bytes: several parts of one opening`,
      )
    }
    t.equal((await listed(backend, tenantId)).length, 3, 'all of them are listed')
  },

  'one byte over the limit is refused, in the first bytes or after many, and nothing of it stays': async (t, open) => {
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
      'not one byte over',
    )
    t.same(await listed(backend, tenantId), [exact], 'nothing is left of what was refused')
  },

  'a sender that goes away midway leaves nothing': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    for (const sent of [10, 11 * megabyte]) {
      // As a request's, which somebody listens to.
      const source = new PassThrough().on('error', () => undefined)
      const putting = codeOf(backend.put(tenantId, randomUUID(), source, 100 * megabyte))
      for (let at = 0; at < sent; at += megabyte)
        if (!source.write(Buffer.alloc(Math.min(sent, megabyte))))
          await new Promise((resolve) => source.once('drain', resolve))
      source.destroy(Object.assign(new Error('the sender went away'), { code: 'GONE' }))
      t.equal(await putting, 'GONE', `after ${sent} bytes: the sender's own error`)
    }
    t.same(await listed(backend, tenantId), [], 'nothing is listed, not even half of it')
  },

  'many at once do not get into each other': async (t, open) => {
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

  'removing is final, and no error the second time': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    const [kept, removed] = [randomUUID(), randomUUID()]
    for (const blobId of [kept, removed])
      await backend.put(tenantId, blobId, Readable.from([Buffer.from(blobId)]), 1000)
    await backend.remove(tenantId, removed)
    await backend.remove(tenantId, removed)
    await backend.remove(tenantId, randomUUID())
    t.equal(await backend.open(tenantId, removed), undefined)
    t.same(await listed(backend, tenantId), [kept])
  },

  'an opening that is not used, or only partly, holds nothing up': async (t, open) => {
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

  'what is absent is undefined, and what is no name of a blob is no way to anything': async (t, open) => {
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
    t.type(await backend.storeId(tenantId), 'string', 'the mark is still there')
  },

  'of eight who claim a store at once one does, and all hear of that one': async (t, open) => {
    for (let round = 0; round < effort({ small: 1, full: 100 }); round++) {
      const tenantId = `t_${randomBytes(10).toString('hex')}`
      const claimants = await Promise.all(
        Array.from({ length: 8 }, async () => ({ backend: await open(), storeId: randomUUID() })),
      )
      t.equal(await claimants[0]?.backend.storeId(tenantId), undefined, 'nobody has claimed it')
      const marks = await Promise.all(claimants.map(({ backend, storeId }) => backend.claimStore(tenantId, storeId)))
      t.equal(new Set(marks).size, 1, 'all are told the same')
      t.ok(
        claimants.some(({ storeId }) => storeId === marks[0]),
        "it is one of the claimants'",
      )
      t.equal(await (await open()).claimStore(tenantId, randomUUID()), marks[0], 'whoever comes later is too late')
      t.equal(await (await open()).storeId(tenantId), marks[0])
    }
  },

  'a tenant that is removed during an upload leaves nothing, and the others keep theirs': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    const other = await openTenant(open)
    const kept = randomUUID()
    await other.backend.put(other.tenantId, kept, Readable.from([Buffer.from('kept')]), 1000)
    for (let n = 0; n < 5; n++) await backend.put(tenantId, randomUUID(), Readable.from([Buffer.from('gone')]), 1000)
    for (const size of [10, 11 * megabyte]) {
      const source = new PassThrough()
      const putting = codeOf(backend.put(tenantId, randomUUID(), source, 100 * megabyte))
      source.write(Buffer.alloc(size))
      await backend.removeTenant(tenantId)
      source.end(Buffer.alloc(10))
      t.equal(await putting, 'STORAGE_UNAVAILABLE', 'the upload is told')
    }
    await backend.removeTenant(tenantId)
    t.equal(
      await codeOf(backend.claimStore(tenantId, randomUUID())),
      'STORAGE_UNAVAILABLE',
      'and so is whoever begins it anew',
    )
    t.same(await listed(await open(), tenantId), [])
    t.equal(await (await open()).storeId(tenantId), undefined)
    t.same(await listed(other.backend, other.tenantId), [kept])
  },

  'a note of being one of a pair is kept until it is taken back': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    t.equal(await backend.isPaired(tenantId), false)
    await backend.setPaired(tenantId, true)
    await backend.setPaired(tenantId, true)
    t.equal(await (await open()).isPaired(tenantId), true)
    await backend.setPaired(tenantId, false)
    await backend.setPaired(tenantId, false)
    t.equal(await (await open()).isPaired(tenantId), false)
    t.same(await listed(backend, tenantId), [], 'it is no blob')
  },

  'ages count from the writing': async (t, open) => {
    const { backend, tenantId } = await openTenant(open)
    await backend.put(tenantId, randomUUID(), Readable.from([Buffer.from('young')]), 1000)
    for await (const { age } of backend.list(tenantId)) t.ok(age >= 0 && age < 60_000, `${age} ms`)
  },
}

t.test('all backends', async (t) => {
  const server = await startS3Server()
  t.teardown(() => server.stop())
  const subjects: Record<string, (t: Test) => Promise<Subject>> = {
    async local(t) {
      const root = await mkdtemp(join(tmpdir(), 'tenantry-backend-'))
      t.teardown(() => rm(root, { recursive: true, force: true }))
      await started(new LocalBackend(root))
      return { open: async () => new LocalBackend(root) }
    },
    s3: async () => ({ open: async () => new S3Backend(server.settings) }),
  }
  for (const [name, begin] of Object.entries(subjects)) {
    t.test(name, async (t) => {
      const { open } = await begin(t)
      for (const [sentence, run] of Object.entries(cases)) await t.test(sentence, (t) => run(t, open))
    })
  }

  t.test(
    'a bucket that is not there, or not ours, stops the start, and the message says where it was looked for',
    async (t) => {
      const wrong = {
        bucket: { bucket: 'nowhere' },
        secret: { secretAccessKey: 'another' },
        endpoint: { endpoint: 'http://127.0.0.1:1' },
      }
      for (const [what, settings] of Object.entries(wrong)) {
        await t.rejects(
          new S3Backend({ ...server.settings, ...settings }).start(),
          /^the bucket \w+ at http:\S+ can not be used: \w+/,
          what,
        )
      }
    },
  )

  t.test('an upload in parts that a crash has left is listed, and removing takes its parts away', async (t) => {
    const { backend, tenantId } = await openTenant(() => started(new S3Backend(server.settings)))
    const blobId = randomUUID()
    const source = new PassThrough()
    backend.put(tenantId, blobId, source, 100 * megabyte).catch(() => undefined)
    source.write(Buffer.alloc(6 * megabyte))
    const deadline = Date.now() + 20_000
    while (!(await server.keys()).begun.includes(`here/${tenantId}/blobs/${blobId}`)) {
      if (Date.now() > deadline) throw new Error('the upload does not begin')
    }
    const other = await started(new S3Backend(server.settings))
    t.same(await listed(other, tenantId), [blobId])
    t.equal(await other.open(tenantId, blobId), undefined, 'it is no blob yet')
    await other.remove(tenantId, blobId)
    t.same(await listed(other, tenantId), [])
    source.destroy()
  })
})

t.test('whatever the timing, nobody is told another text than the others', async (t) => {
  let told = 0
  for (let round = 0; round < effort({ small: 200, full: 20_000 }); round++) {
    const store = new Map<string, string>()
    let state = seed + round * 7_919
    const chance = () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31
    /** Takes effect at any moment between being asked and being answered. */
    const slowly = async <T>(work: () => T): Promise<T> => {
      for (let turns = Math.floor(chance() * 6); turns > 0; turns--) await Promise.resolve()
      const result = work()
      for (let turns = Math.floor(chance() * 6); turns > 0; turns--) await Promise.resolve()
      return result
    }
    const registers: Registers = {
      get: (name) => slowly(() => store.get(name)),
      put: (name, text) => slowly(() => void store.set(name, text)),
      names: (prefix) =>
        slowly(() =>
          [...store.keys()].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length)),
        ),
    }
    const agreed = await Promise.all(
      ['a', 'b', 'c'].map((text) => agree(registers, text, async () => slowly(() => undefined)).catch(() => undefined)),
    )
    agreed.push(await agree(registers, 'd', async () => undefined))
    const texts = new Set(agreed.filter((text) => text !== undefined))
    if (texts.size !== 1 || texts.has('d')) t.fail(`round ${round}, seed ${seed}: ${[...texts].join(', ')}`)
    told += agreed.length
  }
  t.ok(told > 0, `${told} were told, seed ${seed}`)
})

t.test('two stores as one', async (t) => {
  const roots = await Promise.all(['new', 'old'].map((name) => mkdtemp(join(tmpdir(), `tenantry-${name}-`))))
  t.teardown(() => Promise.all(roots.map((root) => rm(root, { recursive: true, force: true }))))
  const [primary, fallback] = await Promise.all(roots.map((root) => started(new LocalBackend(root))))
  if (primary === undefined || fallback === undefined) throw new Error('unreachable')
  const pair = new PairedBackend(primary, fallback)
  const [tenantId, mark] = ['t_moving', randomUUID()]
  const put = async (to: BlobBackend) => {
    const blobId = randomUUID()
    await to.put(tenantId, blobId, Readable.from([Buffer.from(blobId)]), 1000)
    return blobId
  }
  await fallback.claimStore(tenantId, mark)
  const old = await put(pair)
  t.same(
    [await listed(primary, tenantId), await listed(fallback, tenantId)],
    [[], [old]],
    'until a tenant is paired all goes to where its mark is',
  )
  t.equal(await pair.storeId(tenantId), mark)
  await t.rejects(pair.pair(tenantId, randomUUID()), /not the one/)
  const isPaired = fallback.isPaired.bind(fallback)
  fallback.isPaired = async (id) => {
    fallback.isPaired = isPaired
    await pair.pair(tenantId, mark)
    return isPaired(id)
  }
  t.equal(await pair.storeId(tenantId), mark, 'who looks while the two are paired sees no store lost')
  const fresh = await put(pair)
  t.same(
    [await listed(primary, tenantId), await listed(fallback, tenantId)],
    [[fresh], [old]],
    'from then on to the primary',
  )
  t.same(await listed(pair, tenantId), [old, fresh].sort())
  t.equal(String(await (await pair.open(tenantId, old))?.whole(old.length)), old)

  for (const [index, root] of roots.entries()) {
    await rm(join(root, tenantId, 'store'))
    t.equal(
      await pair.storeId(tenantId),
      undefined,
      `${index === 0 ? 'the primary' : 'the fallback'} lost: nothing is taken for the store`,
    )
    await t.rejects(pair.pair(tenantId, mark), /not the one/, 'nor claimed anew')
    await (index === 0 ? primary : fallback).claimStore(tenantId, mark)
    t.equal(await pair.storeId(tenantId), mark, 'it is back')
  }
  await pair.remove(tenantId, old)
  t.same(await listed(pair, tenantId), [fresh])
  await pair.dropFallback(tenantId)
  t.equal(await pair.storeId(tenantId), mark)
  t.same([await listed(pair, tenantId), await fallback.storeId(tenantId)], [[fresh], undefined])

  await primary.claimStore('t_two', randomUUID())
  await fallback.claimStore('t_two', randomUUID())
  t.match(await pair.storeId('t_two'), / and /, "two databases' stores are nobody's")
})

t.test('settings that name no backend, or the same twice, or not all that s3 needs, stop the start', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-config-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  await writeFile(join(directory, 'token'), 'x'.repeat(32))
  await writeFile(join(directory, 'secret'), 'hidden\n')
  const read = (storage: Record<string, string>) =>
    readConfig({
      TENANTRY_CONTROL_URL: 'http://127.0.0.1:1',
      TENANTRY_INTERNAL_TOKEN_FILE: join(directory, 'token'),
      TENANTRY_DATA: directory,
      ...storage,
    }).storage
  const s3 = {
    TENANTRY_STORAGE_BACKEND: 's3',
    TENANTRY_S3_BUCKET: 'files',
    TENANTRY_S3_ACCESS_KEY_ID: 'me',
    TENANTRY_S3_SECRET_ACCESS_KEY_FILE: join(directory, 'secret'),
  }
  t.same(read({}), { backend: 'local', fallback: undefined, s3: undefined })
  t.same(
    read({
      ...s3,
      TENANTRY_STORAGE_FALLBACK: 'local',
      TENANTRY_S3_ENDPOINT: 'http://127.0.0.1:9000',
      TENANTRY_S3_PREFIX: 'a/b/',
    }),
    {
      backend: 's3',
      fallback: 'local',
      s3: {
        endpoint: 'http://127.0.0.1:9000',
        region: 'us-east-1',
        bucket: 'files',
        prefix: 'a/b/',
        pathStyle: true,
        accessKeyId: 'me',
        secretAccessKey: 'hidden',
      },
    },
  )
  t.equal(read(s3).s3?.pathStyle, false, "AWS' own")
  const wrong: [Record<string, string>, RegExp][] = [
    [
      { TENANTRY_STORAGE_BACKEND: 'gcs' },
      /TENANTRY_STORAGE_BACKEND is "gcs": unknown storage backend; want one of local, s3/,
    ],
    [{ TENANTRY_STORAGE_BACKEND: 'toString' }, /unknown storage backend/],
    [
      { TENANTRY_STORAGE_FALLBACK: 'S3' },
      /TENANTRY_STORAGE_FALLBACK is "S3": unknown storage backend; want one of local, s3/,
    ],
    [{ TENANTRY_STORAGE_FALLBACK: 'local' }, /TENANTRY_STORAGE_FALLBACK is "local", as TENANTRY_STORAGE_BACKEND/],
    [{ TENANTRY_STORAGE_BACKEND: 's3' }, /TENANTRY_S3_BUCKET is not set/],
    [
      { ...s3, TENANTRY_S3_SECRET_ACCESS_KEY_FILE: '/nowhere' },
      /TENANTRY_S3_SECRET_ACCESS_KEY_FILE names a file that can't be read/,
    ],
    [{ ...s3, TENANTRY_S3_ENDPOINT: 'storage.example.org' }, /TENANTRY_S3_ENDPOINT is "storage.example.org"/],
    [{ ...s3, TENANTRY_S3_PREFIX: '../x' }, /TENANTRY_S3_PREFIX is/],
  ]
  for (const [storage, message] of wrong) t.throws(() => read(storage), message)
})

async function started(backend: BlobBackend): Promise<BlobBackend> {
  await backend.start()
  return backend
}
