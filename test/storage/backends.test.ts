// Runs one list of cases against each storage backend on its real store, and tests two stores that serve as one.
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { readConfig } from '#tenant-runtime/config.ts'
import type { BlobBackend } from '#tenant-runtime/storage/backend/backend.ts'
import { LocalBackend } from '#tenant-runtime/storage/backend/local.ts'
import { PairedBackend } from '#tenant-runtime/storage/backend/paired.ts'
import { agree, type Registers } from '#tenant-runtime/storage/backend/s3-agreement.ts'
import { S3Backend } from '#tenant-runtime/storage/backend/s3.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startS3Server } from '#test/support/s3-server.ts'
import { cases, listed, megabyte, openTenant, type Subject } from './support/backend-cases.ts'

t.test('All backends', async (t) => {
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

  t.test('The start fails when the bucket is absent or not ours, and the message names the endpoint', async (t) => {
    const wrong = {
      bucket: { bucket: 'nowhere' },
      secret: { secretAccessKey: 'another' },
      endpoint: { endpoint: 'http://127.0.0.1:1' },
    }
    for (const [what, settings] of Object.entries(wrong)) {
      await t.rejects(
        new S3Backend({ ...server.settings, ...settings }).start(),
        /^The storage can not use the bucket \w+ at http:\S+: \w+/,
        what,
      )
    }
  })

  t.test('A multipart upload that a crash interrupted is listed, and removing it deletes its parts', async (t) => {
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
    t.equal(await other.open(tenantId, blobId), undefined, 'it is not a blob yet')
    await other.remove(tenantId, blobId)
    t.same(await listed(other, tenantId), [])
    source.destroy()
  })
})

t.test('All callers of agree() receive the same text, at any timing', async (t) => {
  let callers = 0
  for (let round = 0; round < effort({ small: 200, full: 20_000 }); round++) {
    const store = new Map<string, string>()
    let state = seed + round * 7_919
    const chance = () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31
    /** Runs `work` after a random delay, and returns its result after another one. */
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
    callers += agreed.length
  }
  t.ok(callers > 0, `${callers} callers received a text, seed ${seed}`)
})

t.test('A pair of backends reads from both and writes to the primary', async (t) => {
  const roots = await Promise.all(['new', 'old'].map((name) => mkdtemp(join(tmpdir(), `tenantry-${name}-`))))
  t.teardown(() => Promise.all(roots.map((root) => rm(root, { recursive: true, force: true }))))
  const [primary, fallback] = await Promise.all(roots.map((root) => started(new LocalBackend(root))))
  if (primary === undefined || fallback === undefined) throw new Error('unreachable')
  const pair = new PairedBackend(primary, fallback)
  const [tenantId, storeId] = ['t_moving', randomUUID()]
  const put = async (to: BlobBackend) => {
    const blobId = randomUUID()
    await to.put(tenantId, blobId, Readable.from([Buffer.from(blobId)]), 1000)
    return blobId
  }
  await fallback.claimStore(tenantId, storeId)
  const old = await put(pair)
  t.same(
    [await listed(primary, tenantId), await listed(fallback, tenantId)],
    [[], [old]],
    'before the tenant is paired, all blobs go to the backend with its store ID',
  )
  t.equal(await pair.storeId(tenantId), storeId)
  await t.rejects(pair.pair(tenantId, randomUUID()), /not the one/)
  const isPaired = fallback.isPaired.bind(fallback)
  fallback.isPaired = async (id) => {
    fallback.isPaired = isPaired
    await pair.pair(tenantId, storeId)
    return isPaired(id)
  }
  t.equal(
    await pair.storeId(tenantId),
    storeId,
    'a reader that runs during the pairing does not report the store as lost',
  )
  const fresh = await put(pair)
  t.same(
    [await listed(primary, tenantId), await listed(fallback, tenantId)],
    [[fresh], [old]],
    'after the pairing, new blobs go to the primary',
  )
  t.same(await listed(pair, tenantId), [old, fresh].sort())
  t.equal(String(await (await pair.open(tenantId, old))?.whole(old.length)), old)

  for (const [index, root] of roots.entries()) {
    await rm(join(root, tenantId, 'store'))
    t.equal(
      await pair.storeId(tenantId),
      undefined,
      `with ${index === 0 ? 'the primary' : 'the fallback'} lost, the pair has no store ID`,
    )
    await t.rejects(pair.pair(tenantId, storeId), /not the one/, 'and claims no new one')
    await (index === 0 ? primary : fallback).claimStore(tenantId, storeId)
    t.equal(await pair.storeId(tenantId), storeId, 'with both stores the pair has the store ID again')
  }
  await pair.remove(tenantId, old)
  t.same(await listed(pair, tenantId), [fresh])
  await pair.dropFallback(tenantId)
  t.equal(await pair.storeId(tenantId), storeId)
  t.same([await listed(pair, tenantId), await fallback.storeId(tenantId)], [[fresh], undefined])

  await primary.claimStore('t_two', randomUUID())
  await fallback.claimStore('t_two', randomUUID())
  t.match(await pair.storeId('t_two'), / and /, 'stores of two databases do not count as one store')
})

t.test('The start fails when settings name no backend, name one twice, or omit what S3 needs', async (t) => {
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
    [{ TENANTRY_STORAGE_BACKEND: 'gcs' }, /Invalid TENANTRY_STORAGE_BACKEND "gcs"\. Allowed: local, s3\./],
    [{ TENANTRY_STORAGE_BACKEND: 'toString' }, /Invalid TENANTRY_STORAGE_BACKEND "toString"/],
    [{ TENANTRY_STORAGE_FALLBACK: 'S3' }, /Invalid TENANTRY_STORAGE_FALLBACK "S3"\. Allowed: local, s3\./],
    [{ TENANTRY_STORAGE_FALLBACK: 'local' }, /TENANTRY_STORAGE_FALLBACK and TENANTRY_STORAGE_BACKEND are both "local"/],
    [{ TENANTRY_STORAGE_BACKEND: 's3' }, /TENANTRY_S3_BUCKET is not set/],
    [
      { ...s3, TENANTRY_S3_SECRET_ACCESS_KEY_FILE: '/nowhere' },
      /The file in TENANTRY_S3_SECRET_ACCESS_KEY_FILE cannot be read/,
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
