// The volume of a tenant's files is lost, swapped and restored, under two runtimes that share it. No runtime takes an
// empty volume for the store that the database names, and a tenant without files claims the volume.
import { randomBytes, randomUUID } from 'node:crypto'
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { internalPaths, internalTokenHeader, tenantHeader } from '@tenantry/contract'
import pino from 'pino'
import { createBounds } from '#tenant-runtime/bounds/index.ts'
import { buildApp } from '#tenant-runtime/app.ts'
import { Connections, defaultConnectionLimits } from '#tenant-runtime/database/connections.ts'
import { ScopedDatabase } from '#tenant-runtime/database/scoped-database.ts'
import { LocalBackend } from '#tenant-runtime/storage/backend/local.ts'
import type { StorageFailpoint } from '#tenant-runtime/storage/failpoints.ts'
import { createStorageModule } from '#tenant-runtime/storage/storage-module.ts'
import { Authenticator } from '#tenant-runtime/tenancy/authenticate.ts'
import type { Tenant } from '#tenant-runtime/tenancy/tenant.ts'
import { createHome } from '#test/support/home.ts'
import { query, startPostgres, type TestPostgres } from '#test/support/postgres.ts'
import { roomy, signToken } from '#test/support/runtime.ts'

const internalToken = randomBytes(24).toString('hex')
const gone = 'The store that the database refers to is missing.'
const foreign = 'The files belong to another database.'
const rejected = { status: 503, code: 'STORAGE_UNAVAILABLE' }

async function openVolume(t: Test): Promise<string> {
  const volume = await mkdtemp(join(tmpdir(), 'tenantry-store-'))
  t.teardown(() => rm(volume, { recursive: true, force: true }))
  return volume
}

/** Simulates an operator's accident: the mount point remains, but its contents are gone. */
async function empty(volume: string): Promise<void> {
  for (const name of await readdir(volume)) await rm(join(volume, name), { recursive: true })
}

async function addTenant(t: Test, postgres: TestPostgres) {
  const home = await createHome(postgres)
  const connections = new Connections(defaultConnectionLimits)
  t.teardown(() => connections.close())
  const secret = randomBytes(32).toString('hex')
  const tenant: Tenant = {
    id: home.tenantId,
    name: 'acme',
    generation: 1,
    limits: roomy,
    manifest: {
      tenant_id: home.tenantId,
      name: 'acme',
      generation: 1,
      home: { url: home.url, ddl_url: home.ddl_url, schema: home.schema },
      keys: [],
      jwt_secrets: [secret],
      signing_secret: randomBytes(32).toString('hex'),
      limits: roomy,
    },
    database: new ScopedDatabase(connections, { tenantId: home.tenantId, url: home.url, ddlUrl: home.ddl_url }),
  }
  const superuser = `${postgres.url('homes')}?options=${encodeURIComponent(`-c search_path=${home.schema}`)}`
  const rows = (sql: string) => query(superuser, sql)
  await rows("insert into storage_buckets (name, owner_id) values ('docs', 'u1')")
  const storeId = async () => String((await rows('select store_id from storage_usage'))[0]?.['store_id'])
  const counters = async () =>
    (
      await rows(
        `select (select count(*) from storage_objects)::int as objects,
          (select count(*) from blob_intents)::int as intents, (select count(*) from blob_gc)::int as collectable,
          reserved_bytes::int as reserved from storage_usage`,
      )
    )[0]
  const token = signToken({ sub: 'u1', role: 'authenticated', exp: Math.floor(Date.now() / 1000) + 3600 }, secret)
  return { tenant, rows, storeId, counters, token }
}

type Scene = Awaited<ReturnType<typeof addTenant>>

/** Starts a runtime's storage on the volume and returns how to call it over HTTP as the gateway does. */
async function openRuntime(
  t: Test,
  volume: string,
  { tenant, token }: Scene,
  failpoint: StorageFailpoint = () => undefined,
) {
  const errors: string[] = []
  const storage = createStorageModule({
    backend: new LocalBackend(volume),
    tenants: () => [tenant],
    failpoint,
    now: Date.now,
    abandonedMilliseconds: 0,
    onError: (error) => errors.push(error.message),
  })
  await storage.start()
  const app = await buildApp({
    internalToken,
    authenticator: new Authenticator(Date.now),
    modules: [storage],
    tenantOf: (id) => (id === tenant.id ? tenant : undefined),
    now: () => new Date(),
    elapsed: () => performance.now(),
    bounds: createBounds({ bodyBytes: 2 ** 29, resultBytes: 2 ** 29 }),
    onWrite: () => undefined,
    logger: pino({ level: 'fatal', base: null }),
  })
  t.teardown(async () => {
    await app.close()
    await storage.idle()
  })
  const request = async (
    method: 'GET' | 'POST' | 'DELETE',
    url: string,
    body?: Buffer | string,
    type = 'text/plain',
  ) => {
    const response = await app.inject({
      method,
      url,
      headers: {
        [internalTokenHeader]: internalToken,
        [tenantHeader]: tenant.id,
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': type }),
      },
      ...(body === undefined ? {} : { payload: body }),
    })
    const parsed: unknown =
      response.headers['content-type']?.toString().startsWith('application/json') === true ? response.json() : {}
    const code = typeof parsed === 'object' && parsed !== null && 'code' in parsed ? parsed.code : undefined
    return { status: response.statusCode, code, text: response.body }
  }
  return {
    errors,
    collector: storage.collector,
    phantoms: storage.phantoms,
    request,
    put: (path: string, body: Buffer | string = path) => request('POST', `/storage/v1/object/docs/${path}`, body),
    get: (path: string) => request('GET', `/storage/v1/object/docs/${path}`),
    async health() {
      const { status, message } = await storage.health(tenant, AbortSignal.timeout(5_000))
      const body: unknown = JSON.parse((await request('GET', internalPaths.tenantHealth(tenant.id))).text)
      return { status, message, body }
    },
  }
}

const well = { status: 'healthy', message: undefined, body: { components: { storage: { status: 'healthy' } } } }
const ill = (message: string) => ({
  status: 'unhealthy',
  message,
  body: { status: 'unhealthy', components: { storage: { status: 'unhealthy', message } } },
})

t.test('The store ID protects a store', { timeout: 120_000 }, async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())

  t.test(
    'All runtimes report an emptied volume, accept no upload, do not sweep, and recover once it is restored',
    async (t) => {
      const volume = await openVolume(t)
      const saved = join(await openVolume(t), 'saved')
      const scene = await addTenant(t, postgres)
      const { tenant } = scene
      const both = [await openRuntime(t, volume, scene), await openRuntime(t, volume, scene)] as const
      const [one, other] = both
      t.match(await one.health(), well)
      t.match(await one.put('kept'), { status: 200 })
      t.match(await other.put('kept-too'), { status: 200 })
      await cp(volume, saved, { recursive: true })
      await empty(volume)

      const woken = await openRuntime(t, volume, scene)
      for (const runtime of [...both, woken]) {
        t.match(await runtime.health(), ill(gone))
        t.match(await runtime.put('new'), { ...rejected, text: new RegExp(gone) })
        const form = '--x\r\ncontent-disposition: form-data; name=""; filename="f"\r\n\r\nbody\r\n--x--\r\n'
        t.match(
          await runtime.request('POST', '/storage/v1/object/docs/new', form, 'multipart/form-data; boundary=x'),
          rejected,
          'in a form',
        )
        t.match(await runtime.put('kept', 'over it'), rejected, 'an overwrite')
        t.match(await runtime.get('kept'), { status: 404, code: 'FILE_MISSING' })
        t.equal(runtime.phantoms(), 1)
        t.match(await runtime.collector.sweep(tenant), { stopReason: gone, removed: 0 })
        t.match(await runtime.health(), ill(gone), 'a read does not create the store again')
      }
      t.same(await readdir(volume), ['tmp'], 'nothing was written for the tenant')
      t.same(
        await scene.counters(),
        { objects: 2, intents: 0, collectable: 0, reserved: 0 },
        'nothing is reserved or counted',
      )

      t.match(await one.request('DELETE', '/storage/v1/object/docs/kept-too'), { status: 200 })
      await one.collector.idle()
      t.match(
        await scene.counters(),
        { objects: 1, collectable: 1 },
        'files of objects deleted in the meantime remain to be collected',
      )

      await empty(volume)
      await rename(join(saved, tenant.id), join(volume, tenant.id))
      for (const runtime of [...both, woken]) {
        t.match(await runtime.health(), well, 'without a restart')
        t.match(await runtime.get('kept'), { status: 200, text: 'kept' })
      }
      t.match(await one.put('after'), { status: 200 }, 'and `tmp` was not created with it')
      t.match(await other.get('after'), { status: 200, text: 'after' })
      t.match(await one.collector.sweep(tenant), { stopReason: undefined })
      t.same(await scene.counters(), { objects: 2, intents: 0, collectable: 0, reserved: 0 })
    },
  )

  t.test("Another database's store accepts and loses nothing, also when this database names no file", async (t) => {
    const volume = await openVolume(t)
    const scene = await addTenant(t, postgres)
    const { tenant } = scene
    const runtime = await openRuntime(t, volume, scene)
    const storeId = join(volume, tenant.id, 'store')
    const theirs = randomUUID()
    const blob = randomUUID()
    await mkdir(join(volume, tenant.id, blob.slice(0, 2)), { recursive: true })
    await writeFile(join(volume, tenant.id, blob.slice(0, 2), blob), 'theirs')
    await writeFile(storeId, theirs)
    const nothingHappens = async () => {
      t.match(await runtime.health(), ill(foreign))
      t.match(await runtime.put('a'), { ...rejected, text: new RegExp(foreign) })
      for (let sweeps = 0; sweeps < 2; sweeps++)
        t.match(await runtime.collector.sweep(tenant), { stopReason: foreign, removed: 0 })
      t.equal(await readFile(join(volume, tenant.id, blob.slice(0, 2), blob), 'utf8'), 'theirs')
      t.equal(await readFile(storeId, 'utf8'), theirs)
    }
    await nothingHappens()
    await writeFile(storeId, await scene.storeId())
    t.match(await runtime.put('a', 'ours'), { status: 200 })
    await writeFile(storeId, theirs)
    await scene.rows(`insert into blob_gc (blob_id) values ('${blob}')`)
    await runtime.collector.collect(tenant)
    await nothingHappens()
    await writeFile(storeId, `${await scene.storeId()}\n`)
    t.match(await runtime.health(), well)
    t.match(await runtime.get('a'), { text: 'ours' })
  })

  t.test('A tenant without files claims its store once, whichever runtime and operation comes first', async (t) => {
    const scene = await addTenant(t, postgres)
    const { tenant } = scene
    for (const first of ['health', 'upload', 'sweep'] as const) {
      const volume = await openVolume(t)
      const runtimes = await Promise.all(Array.from({ length: 4 }, () => openRuntime(t, volume, scene)))
      await Promise.all(
        runtimes.map(async (runtime, n) => {
          if (first === 'health') t.match(await runtime.health(), well)
          if (first === 'upload') t.match(await runtime.put(`at-once-${n}`), { status: 200 })
          if (first === 'sweep') t.match(await runtime.collector.sweep(tenant), { stopReason: undefined })
        }),
      )
      t.equal(await readFile(join(volume, tenant.id, 'store'), 'utf8'), await scene.storeId(), first)
      t.same(
        (await readdir(join(volume, tenant.id))).filter((name) => name.startsWith('store')),
        ['store'],
        'and no draft of it',
      )
      for (const runtime of runtimes) t.match(await runtime.health(), well)
      if (first === 'upload') {
        for (const n of runtimes.keys())
          t.match(await runtimes[0]?.get(`at-once-${n}`), { status: 200, text: `at-once-${n}` })
      }
      for (const n of runtimes.keys()) await runtimes[0]?.request('DELETE', `/storage/v1/object/docs/at-once-${n}`)
      await Promise.all(runtimes.map(({ collector }) => collector.idle()))
    }
  })

  t.test('Of two databases that claim one store, one succeeds, and the store ID is never half written', async (t) => {
    const volume = await openVolume(t)
    for (let round = 0; round < 10; round++) {
      const tenantId = `t_${randomBytes(10).toString('hex')}`
      const storeIds: string[] = [randomUUID(), randomUUID()]
      const seen: string[] = []
      const found = await Promise.all(
        storeIds
          .flatMap((storeId) => [storeId, storeId])
          .map(async (storeId) => {
            const backend = new LocalBackend(volume)
            seen.push((await backend.storeId(tenantId)) ?? storeId)
            return backend.claimStore(tenantId, storeId)
          }),
      )
      t.equal(new Set(found).size, 1, 'all callers receive the same ID')
      t.ok([...found, ...seen].every((storeId) => storeIds.includes(storeId)))
    }
  })

  t.test(
    'A starting runtime leaves the uploads of another alone; the sweeper removes the remains of a crash',
    async (t) => {
      const volume = await openVolume(t)
      const scene = await addTenant(t, postgres)
      const { tenant } = scene
      const runtime = await openRuntime(t, volume, scene)
      t.match(await runtime.put('a'), { status: 200 })
      const [intended, lost, old] = [randomUUID(), randomUUID(), randomUUID()]
      for (const blob of [intended, lost, old]) await writeFile(join(volume, 'tmp', `${tenant.id}.${blob}`), 'half')
      await utimes(join(volume, 'tmp', `${tenant.id}.${old}`), 0, 0)
      await scene.rows(`insert into blob_intents (blob_id, reserved) values ('${intended}', 10)`)
      const other = await openRuntime(t, volume, scene)
      t.same((await readdir(join(volume, 'tmp'))).sort(), [intended, lost].map((blob) => `${tenant.id}.${blob}`).sort())
      const [one, two] = await Promise.all([other.collector.sweep(tenant), other.collector.sweep(tenant)])
      t.equal(one, two, 'two concurrent sweeps count as one')
      t.match(one, { abandoned: 1, orphans: 1, removed: 0 }, 'with its intent one goes at once')
      t.match(
        await other.collector.sweep(tenant),
        { orphans: 1, removed: 1 },
        'a second sweep must also find the other',
      )
      t.same(await readdir(join(volume, 'tmp')), [])
      t.match(await runtime.get('a'), { status: 200, text: 'a' })
      t.same(await scene.counters(), { objects: 1, intents: 0, collectable: 0, reserved: 0 })
    },
  )

  t.test("Another runtime's upload does not make the store lost; an upload into a lost store does", async (t) => {
    const volume = await openVolume(t)
    const scene = await addTenant(t, postgres)
    let writing = Promise.withResolvers<undefined>()
    let ending = Promise.withResolvers<undefined>()
    const slow = await openRuntime(t, volume, scene, async (name) => {
      if (name !== 'upload.after-write') return
      writing.resolve(undefined)
      await ending.promise
    })
    const other = await openRuntime(t, volume, scene)
    const first = slow.put('slow')
    await writing.promise
    t.match(await other.health(), well)
    t.match(await other.put('quick'), { status: 200 })
    ending.resolve(undefined)
    t.match(await first, { status: 200 })

    writing = Promise.withResolvers<undefined>()
    ending = Promise.withResolvers<undefined>()
    const lost = slow.put('lost')
    await writing.promise
    await rm(join(volume, scene.tenant.id), { recursive: true })
    t.match(await other.health(), ill(gone))
    ending.resolve(undefined)
    t.match(await lost, rejected, 'a write into the lost store is not acknowledged')
    await slow.collector.idle()
    t.match(await scene.counters(), { objects: 2, intents: 0, reserved: 0 })
    t.match(await slow.get('lost'), { status: 404, code: 'NoSuchKey' })
  })

  t.test('An intent alone counts as a file that the database names, until the sweeper drops it', async (t) => {
    const volume = await openVolume(t)
    const scene = await addTenant(t, postgres)
    const runtime = await openRuntime(t, volume, scene)
    await scene.rows(`insert into blob_intents (blob_id, reserved) values ('${randomUUID()}', 10)`)
    t.match(await runtime.health(), ill(gone))
    t.match(await runtime.put('a'), rejected)
    await runtime.collector.sweep(scene.tenant)
    t.match(await runtime.health(), well)
    t.match(await runtime.put('a'), { status: 200 })
    await runtime.collector.sweep(scene.tenant)
    t.same(await scene.counters(), { objects: 1, intents: 0, collectable: 0, reserved: 0 })
  })

  t.test('A volume that was restored without some of its directories accepts writes', async (t) => {
    const volume = await openVolume(t)
    const scene = await addTenant(t, postgres)
    const runtime = await openRuntime(t, volume, scene)
    const directory = join(volume, scene.tenant.id)
    // Enough uploads that the next blob meets both shards that the runtime knows and shards that it does not.
    for (let n = 0; n < 40; n++) t.match(await runtime.put(`before-${n}`), { status: 200 })
    const storeId = await readFile(join(directory, 'store'))
    await empty(volume)
    await mkdir(directory)
    await writeFile(join(directory, 'store'), storeId)
    for (let n = 0; n < 40; n++) t.match(await runtime.put(`after-${n}`), { status: 200 })
    t.match(await runtime.get('after-0'), { status: 200, text: 'after-0' })
  })

  t.test("A store ID that the tenant writes into its own tables is not written to the machine's disk", async (t) => {
    const volume = await openVolume(t)
    const scene = await addTenant(t, postgres)
    const runtime = await openRuntime(t, volume, scene)
    await scene.rows('alter table storage_usage alter column store_id drop default, alter column store_id type text')
    for (const made of ["'../../x'", "''", "repeat('x', 100000)"]) {
      await scene.rows(`update storage_usage set store_id = ${made}`)
      t.match(await runtime.health(), ill('The database has no valid store ID.'), made)
      t.match(await runtime.put('a'), rejected, made)
    }
    t.same(await readdir(volume), ['tmp'])
  })
})
