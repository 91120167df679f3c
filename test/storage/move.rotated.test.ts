// The command moves a tenant's blobs from files to a bucket and back, while eight writers use the runtime. No request
// fails, and after the old store is dropped every object is present and whole.
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { BlobBackend } from '#tenant-runtime/storage/backend/backend.ts'
import { LocalBackend } from '#tenant-runtime/storage/backend/local.ts'
import { PairedBackend } from '#tenant-runtime/storage/backend/paired.ts'
import { S3Backend } from '#tenant-runtime/storage/backend/s3.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startS3Server } from '#test/support/s3-server.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'

const command = new URL('../../tenant-runtime/src/move-blobs.ts', import.meta.url).pathname
const binary = { 'content-type': 'application/octet-stream' }
/** Milliseconds between two requests of a writer in the small run, whose machine runs other tests, too. */
const pauseMilliseconds = effort({ small: 10, full: 0 })
const sha256 = (body: Buffer) => createHash('sha256').update(body).digest('hex')

/** Replaces the runtime's backend, so that its settings can change while it serves requests. */
class Switch implements BlobBackend {
  now: BlobBackend
  constructor(now: BlobBackend) {
    this.now = now
  }

  get name() {
    return this.now.name
  }
  get stores() {
    return this.now.stores
  }
  get lingerMilliseconds() {
    return this.now.lingerMilliseconds
  }
  start: BlobBackend['start'] = () => this.now.start()
  error: BlobBackend['error'] = () => this.now.error()
  put: BlobBackend['put'] = (...args) => this.now.put(...args)
  open: BlobBackend['open'] = (...args) => this.now.open(...args)
  remove: BlobBackend['remove'] = (...args) => this.now.remove(...args)
  list: BlobBackend['list'] = (...args) => this.now.list(...args)
  storeId: BlobBackend['storeId'] = (...args) => this.now.storeId(...args)
  claimStore: BlobBackend['claimStore'] = (...args) => this.now.claimStore(...args)
  isPaired: BlobBackend['isPaired'] = (...args) => this.now.isPaired(...args)
  setPaired: BlobBackend['setPaired'] = (...args) => this.now.setPaired(...args)
  removeTenant: BlobBackend['removeTenant'] = (...args) => this.now.removeTenant(...args)
  readmitTenant: BlobBackend['readmitTenant'] = (...args) => this.now.readmitTenant(...args)
}

/** Starts eight users of one bucket. Each has its own paths, so that it knows what to find. */
function startWriters(tenant: TestTenant) {
  const wrong: string[] = []
  const known = new Map<string, Buffer>()
  let isStopped = false
  let requests = 0
  const writers = Array.from({ length: 8 }, async (_, writer) => {
    for (let n = 0; !isStopped; n++) {
      const path = `${writer}/${(n * 7 + seed) % 11}`
      const at = `/storage/v1/object/docs/${path}`
      const body = n % 40 === 5 ? randomBytes(5_500_000) : randomBytes(1 + ((n * 7_919 + seed) % 60_000))
      const before = known.get(path)
      const kind = (['write', 'read', 'write', 'read', 'delete'] as const)[n % 5]
      const send = () =>
        kind === 'write'
          ? tenant.request('POST', at, { as: 'u1', headers: binary, body })
          : tenant.request(kind === 'read' ? 'GET' : 'DELETE', at, { as: 'u1' })
      const { status, bytes } = await send()
      requests++
      const wanted = kind === 'write' || before !== undefined ? 200 : 404
      if (status !== wanted) wrong.push(`${kind ?? ''} ${path}: ${status} ${bytes.toString().slice(0, 200)}`)
      if (kind === 'read' && before !== undefined && !before.equals(bytes)) wrong.push(`read ${path}: other bytes`)
      if (kind === 'write') known.set(path, body)
      if (kind === 'delete') known.delete(path)
      await sleep(pauseMilliseconds)
    }
  })
  return {
    wrong,
    known,
    requests: () => requests,
    async stop() {
      isStopped = true
      await Promise.all(writers)
    },
  }
}

async function openScene(t: Test) {
  const server = await startS3Server()
  const data = await mkdtemp(join(tmpdir(), 'tenantry-move-'))
  t.teardown(async () => {
    await server.stop()
    await rm(data, { recursive: true, force: true })
  })
  const { settings } = server
  await writeFile(join(data, 'token'), randomBytes(24).toString('hex'))
  await writeFile(join(data, 'secret'), settings.secretAccessKey)
  // Creates backends as in separate processes, which do not share what they remember.
  const stores = { local: () => new LocalBackend(join(data, 'blobs')), s3: () => new S3Backend(settings) }
  await mkdir(join(data, 'blobs'))
  const backend = new Switch(stores.local())
  const { storage, addTenant, errors } = await startRuntime(t, { backend, abandonedMilliseconds: 0 })
  const tenant = await addTenant()
  await tenant.request('POST', '/storage/v1/bucket', { as: 'u1', body: { name: 'docs' } })
  await writeFile(join(data, 'manifests.ndjson'), JSON.stringify(tenant.manifest))

  /** Runs the command to its end, or kills it when `killed` returns true. */
  const move = async (
    to: 'local' | 's3',
    { args = [], killed }: { args?: string[]; killed?: () => Promise<void> } = {},
  ) => {
    const child = spawn(process.execPath, [command, ...args], {
      env: {
        PATH: process.env['PATH'],
        TENANTRY_CONTROL_URL: 'http://127.0.0.1:1',
        TENANTRY_INTERNAL_TOKEN_FILE: join(data, 'token'),
        TENANTRY_DATA: data,
        TENANTRY_STORAGE_BACKEND: to,
        TENANTRY_STORAGE_FALLBACK: to === 's3' ? 'local' : 's3',
        TENANTRY_S3_ENDPOINT: settings.endpoint,
        TENANTRY_S3_BUCKET: settings.bucket,
        TENANTRY_S3_PREFIX: settings.prefix,
        TENANTRY_S3_ACCESS_KEY_ID: settings.accessKeyId,
        TENANTRY_S3_SECRET_ACCESS_KEY_FILE: join(data, 'secret'),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    t.teardown(() => child.kill('SIGKILL'))
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    const gone = once(child, 'exit')
    if (killed !== undefined) {
      await killed()
      child.kill('SIGKILL')
    }
    const [code] = (await gone) as [number | null]
    return { code, output }
  }
  const rows = () => tenant.rows('select blob_id::text as id, size::int, etag from storage_objects order by blob_id')
  const inStore = async (store: BlobBackend) => {
    const found: string[] = []
    for await (const { blobId } of store.list(tenant.id)) found.push(blobId)
    return found.sort()
  }
  const files = () => readdir(join(data, 'blobs', tenant.id)).catch(() => [])
  return { server, backend, stores, storage, tenant, errors, move, rows, inStore, files, data }
}

t.test('The command moves blobs from files to a bucket and back while the runtime serves requests', async (t) => {
  const { server, backend, stores, storage, tenant, errors, move, rows, inStore, files } = await openScene(t)
  const writers = startWriters(tenant)
  t.teardown(() => writers.stop())
  const progress = async (requests: number) => {
    const deadline = Date.now() + 120_000
    for (const until = writers.requests() + requests; writers.requests() < until;) {
      if (Date.now() > deadline) throw new Error('the writers are stuck')
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  await progress(effort({ small: 60, full: 5_000 }))

  for (let round = 0; round < effort({ small: 1, full: 5 }); round++) {
    for (const to of ['s3', 'local'] as const) {
      const from = to === 's3' ? 'local' : 's3'
      backend.now = new PairedBackend(stores[to](), stores[from]())
      await progress(8)
      const target = stores[to]()
      const ended = await move(to, {
        async killed() {
          const deadline = Date.now() + 120_000
          while ((await inStore(target)).length < 5) {
            if (Date.now() > deadline) throw new Error('nothing is moved')
          }
        },
      })
      t.equal(ended.code, null, `to ${to}: killed midway`)
      const { code, output } = await move(to, { args: [tenant.id] })
      t.equal(code, 0, output)
      t.match(
        output,
        new RegExp(`${tenant.id}: \\d+ files copied, \\d+ bytes; (\\d+) of \\1 objects verified in ${to}\\n1 tenants`),
      )
      await progress(8)
      const dropped = await move(to, { args: ['--drop'] })
      t.equal(dropped.code, 0, dropped.output)
      await progress(8)
      backend.now = stores[to]()
      await progress(8)
      if (to === 's3') t.same(await files(), [], 'no file remains')
      else
        t.same(
          (await server.keys()).whole.filter((key) => key.includes(tenant.id)),
          [],
          'nothing remains in the bucket',
        )
    }
  }
  await writers.stop()
  t.same(writers.wrong, [], `${writers.requests()} requests, seed ${seed}`)
  t.same(errors, [])
  for (const [path, body] of writers.known) {
    const { bytes } = await tenant.request('GET', `/storage/v1/object/docs/${path}`, { as: 'u1' })
    if (!body.equals(bytes)) t.fail(`${path} has other bytes`)
  }
  await tenant.request('POST', '/storage/v1/admin/sweep', { as: 'service', body: {} })
  await tenant.request('POST', '/storage/v1/admin/sweep', { as: 'service', body: {} })
  await tenant.rows("update blob_gc set created_at = created_at - interval '1 hour'")
  await storage.idle()
  t.same(
    await inStore(stores.local()),
    (await rows()).map(({ id }) => id),
    'a file for every row, a row for every file',
  )
})

t.test(
  'The command reports damaged and lost blobs by name, and drops no store whose blobs are not moved',
  async (t) => {
    const { backend, stores, tenant, move, rows, inStore, data } = await openScene(t)
    for (const path of ['good', 'damaged', 'lost'])
      await tenant.request('POST', `/storage/v1/object/docs/${path}`, {
        as: 'u1',
        headers: binary,
        body: Buffer.alloc(1000, path),
      })
    const location = async (path: string) => {
      const [row] = await tenant.rows('select id::text, blob_id::text as blob from storage_objects where path = $1', [
        path,
      ])
      const blob = String(row?.['blob'])
      return { id: String(row?.['id']), blob, file: join(data, 'blobs', tenant.id, blob.slice(0, 2), blob) }
    }
    const [damaged, lost] = [await location('damaged'), await location('lost')]
    const whole = Buffer.alloc(1000, 'damaged')
    await writeFile(damaged.file, Buffer.from(whole).fill('x', 500, 501))
    await rm(lost.file)
    const early = await move('s3', { args: ['--drop'] })
    t.equal(early.code, 1)
    t.match(early.output, "The tenant's files are not moved yet.")
    const { code, output } = await move('s3')
    t.equal(code, 1)
    t.match(output, `The file of the object ${damaged.id} differs from its row.`)
    t.match(output, `The object ${lost.id} has no file.`)
    t.match(output, /1 files copied, 1000 bytes; 1 of 3 objects verified/)
    t.same(await inStore(stores.s3()), [(await location('good')).blob], 'damaged blobs are not copied')
    const rejected = await move('s3', { args: ['--drop'] })
    t.equal(rejected.code, 1)
    t.match(rejected.output, /is not moved yet/)

    await writeFile(damaged.file, whole)
    backend.now = new PairedBackend(stores.s3(), stores.local())
    await tenant.request('DELETE', '/storage/v1/object/docs/lost', { as: 'u1' })
    t.equal((await move('s3')).code, 0, 'after the repair the command runs again')
    t.equal((await move('s3', { args: ['--drop'] })).code, 0)
    backend.now = stores.s3()
    t.equal(sha256((await tenant.request('GET', '/storage/v1/object/docs/damaged', { as: 'u1' })).bytes), sha256(whole))
    t.equal((await rows()).length, 2)

    t.match((await move('s3', { args: ['t_unknown'] })).output, /t_unknown: This runtime does not serve the tenant\./)
  },
)
