// The runtime killed with -9 at every failpoint of storage's protocol: what was acknowledged is there afterwards, whole; after a
// sweep there is a file for every row and a row for every file (specification, FS-I1).
import { spawn, type ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { internalPaths, internalTokenHeader, tenantHeader, type Route, type TenantManifest } from '@tenantry/contract'
import { Connections, defaultConnectionLimits } from '../../tenant-runtime/src/database/connections.ts'
import { ScopedDatabase } from '../../tenant-runtime/src/database/scoped-database.ts'
import { LocalBackend } from '../../tenant-runtime/src/storage/backend/local.ts'
import { Collector } from '../../tenant-runtime/src/storage/collector.ts'
import { storageFailpointNames } from '../../tenant-runtime/src/storage/failpoints.ts'
import { createHome, type TestHome } from '../support/home.ts'
import { freePort, query, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { effort, seed } from '../support/effort.ts'
import { WatchSource } from '../support/watch-source.ts'
import { ask, roomy, type AskOptions } from '../tenancy/support/runtime.ts'

const main = new URL('../../tenant-runtime/src/main.ts', import.meta.url).pathname
const internalToken = randomBytes(24).toString('hex')
const binary = { 'content-type': 'application/octet-stream' }
const key = `sb_secret_${randomBytes(24).toString('base64url')}`

interface Scene {
  postgres: TestPostgres
  home: TestHome
  control: WatchSource<Route, TenantManifest>
  data: string
  manifest: TenantManifest
}

interface Runtime {
  child: ChildProcess
  ask(method: string, path: string, body?: AskOptions['body']): ReturnType<typeof ask>
  /** True once the process is gone. */
  dead(): boolean
  kill(): Promise<void>
}

async function openScene(t: Test): Promise<Scene> {
  const postgres = await startPostgres()
  const data = await mkdtemp(join(tmpdir(), 'tenantry-crash-'))
  await writeFile(join(data, 'token'), internalToken, { mode: 0o600 })
  const control = new WatchSource<Route, TenantManifest>(internalToken)
  await control.start()
  t.teardown(async () => {
    await control.stop()
    await postgres.stop()
    await rm(data, { recursive: true, force: true })
  })
  const home = await createHome(postgres)
  const manifest: TenantManifest = {
    tenant_id: home.tenantId,
    name: 'acme',
    generation: 1,
    home: { url: home.url, ddl_url: home.ddl_url, schema: home.schema },
    keys: [{ kind: 'secret', sha256: createHash('sha256').update(key).digest('hex') }],
    jwt_secrets: [randomBytes(32).toString('hex')],
    signing_secret: randomBytes(32).toString('hex'),
    limits: roomy,
  }
  control.manifests.put(manifest)
  return { postgres, home, control, data, manifest }
}

/** The runtime's own process, up and serving the tenant. */
async function start(t: Test, { control, data, home }: Scene, failpoints: string): Promise<Runtime> {
  const port = await freePort()
  const child = spawn(process.execPath, [main], {
    env: {
      ...process.env, TENANTRY_PORT: String(port), TENANTRY_CONTROL_URL: control.url, TENANTRY_INTERNAL_TOKEN_FILE: join(data, 'token'),
      TENANTRY_DATA: data, TENANTRY_LOG_LEVEL: 'warn', TENANTRY_FAILPOINTS: failpoints,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const gone = once(child, 'exit')
  const dead = () => child.exitCode !== null || child.signalCode !== null
  const kill = async () => {
    if (!dead()) child.kill('SIGKILL')
    await gone
  }
  t.teardown(kill)
  const headers = { [internalTokenHeader]: internalToken, [tenantHeader]: home.tenantId, authorization: `Bearer ${key}` }
  const deadline = Date.now() + 20_000
  for (;;) {
    const health = await ask(port, 'GET', internalPaths.tenantHealth(home.tenantId), headers).catch(() => undefined)
    if (health?.status === 200 && health.json()['status'] === 'healthy') break
    if (dead() || Date.now() > deadline) throw new Error('the runtime did not get ready')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return { child, dead, kill, ask: (method, path, body) => ask(port, method, path, { ...headers, ...(body === undefined ? {} : binary) }, body) }
}

/** What users were told, and what they may find: an operation whose answer never came may have happened or not. */
class Ledger {
  /** Path → the bodies it may have, undefined for none. */
  readonly #possible = new Map<string, (Buffer | undefined)[]>()

  acknowledged(path: string, body: Buffer | undefined): void {
    this.#possible.set(path, [body])
  }

  unanswered(path: string, body: Buffer | undefined): void {
    this.#possible.set(path, [...(this.#possible.get(path) ?? [undefined]), body])
  }

  get paths(): [path: string, bodies: (Buffer | undefined)[]][] {
    return [...this.#possible]
  }
}

/** Uploads, overwrites and deletes until the process is killed at its failpoint. */
async function untilKilled(runtime: Runtime, ledger: Ledger, round: number): Promise<number> {
  for (let n = 0; n < 60 && !runtime.dead(); n++) {
    const path = n % 3 === 0 ? `fresh-${round}-${n}` : `again-${n % 4}`
    const body = n % 5 === 4 ? undefined : Buffer.alloc(1_000 + ((seed + round * 7_919 + n * 104_729) % 200_000), `${round} ${n} `)
    const at = `/storage/v1/object/docs/${path}`
    try {
      const { status } = await (body === undefined ? runtime.ask('DELETE', at) : runtime.ask('POST', at, body))
      if (status !== 200 && !(body === undefined && status === 404)) throw new Error(`${status} is no answer of a runtime that lives`)
      ledger.acknowledged(path, body)
    } catch (cause) {
      ledger.unanswered(path, body)
      // The connection breaks when the process dies; the parent hears of it a little later.
      if (!(cause instanceof Error && 'code' in cause)) throw cause
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  return ledger.paths.length
}

t.test('kill -9 at every failpoint', async (t) => {
  const scene = await openScene(t)
  const { postgres, home, data, manifest } = scene
  const blobs = join(data, 'blobs')
  const superuser = `${postgres.url('homes')}?options=${encodeURIComponent(`-c search_path=${home.schema}`)}`
  const connections = new Connections(defaultConnectionLimits)
  t.teardown(() => connections.close())
  const tenant = {
    id: home.tenantId, name: 'acme', generation: 1, limits: roomy, manifest,
    database: new ScopedDatabase(connections, { tenantId: home.tenantId, url: home.url, ddlUrl: home.ddl_url }),
  }
  const collector = new Collector({
    backend: new LocalBackend(blobs),
    tenants: () => [tenant],
    failpoint: () => undefined,
    onProblem: (problem) => t.fail(problem.message),
    // Nobody uploads while it sweeps, so that all it finds half done is abandoned.
    abandonedMilliseconds: 0,
  })
  const ledger = new Ledger()

  /** With a runtime that has just started after a crash. */
  const check = async (runtime: Runtime, crash: string) => {
    const wrong: string[] = []
    for (const [path, bodies] of ledger.paths) {
      const { status, bytes } = await runtime.ask('GET', `/storage/v1/object/docs/${path}`)
      const found = bodies.find((body) => (body === undefined ? status === 404 : status === 200 && body.equals(bytes)))
      if (found === undefined && !(status === 404 && bodies.includes(undefined))) wrong.push(`${path}: ${status}, ${bytes.length} bytes`)
      // Seen once, it stays: from here on this is what must be found.
      ledger.acknowledged(path, found)
    }
    t.same(wrong, [], `${crash}: every acknowledged upload is there, whole, and every acknowledged delete holds`)

    await collector.sweep(tenant)
    const { refused, orphans } = await collector.sweep(tenant)
    t.same({ refused, orphans }, { refused: undefined, orphans: 0 }, `${crash}: a sweep leaves no orphan`)
    t.same(await readdir(join(blobs, 'tmp')), [], `${crash}: nothing half written`)
    const rows = await query(superuser, 'select blob_id::text, size::int, etag from storage_objects order by 1')
    const files = (await readdir(
      join(blobs, home.tenantId), { recursive: true, withFileTypes: true },
    )).filter((file) => file.isFile() && file.name !== 'store')
    t.same(files.map(({ name }) => name).sort(), rows.map((row) => row['blob_id']), `${crash}: a file for every row, a row for every file`)
    const torn: string[] = []
    for (const { name, parentPath } of files) {
      const bytes = await readFile(join(parentPath, name))
      const row = rows.find((row) => row['blob_id'] === name)
      if (row?.['size'] !== bytes.length || row['etag'] !== createHash('sha256').update(bytes).digest('hex')) torn.push(name)
    }
    t.same(torn, [], `${crash}: no file is torn`)
    const [books] = await query(
      superuser,
      `select (select count(*) from blob_intents)::int as intents, (select count(*) from blob_gc)::int as collectable,
         reserved_bytes::int as reserved, file_count::int - (select count(*) from storage_objects)::int as count_off,
         file_bytes::int - (select coalesce(sum(size), 0) from storage_objects)::int as bytes_off
       from storage_usage`,
    )
    t.same(books, { intents: 0, collectable: 0, reserved: 0, count_off: 0, bytes_off: 0 }, `${crash}: the books are right`)
  }

  const passes = Array.from({ length: effort({ small: 1, full: 12 }) }, (_, round) => round + 1)
  const hit = new Set<string>()
  const crashes = storageFailpointNames.flatMap((name, index) => passes.map((pass) => ({ name, pass: pass + ((seed + index) % 3) })))
  let crash = 'before any crash'
  for (const [round, { name, pass }] of crashes.entries()) {
    const runtime = await start(t, scene, `${name}=kill:${pass}`)
    if (round === 0) await query(superuser, "insert into storage_buckets (name) values ('docs')")
    else await check(runtime, crash)
    await untilKilled(runtime, ledger, round)
    if (runtime.child.signalCode === 'SIGKILL') hit.add(name)
    await runtime.kill()
    crash = `${name}, pass ${pass}`
  }
  await check(await start(t, scene, ''), crash)
  t.ok(ledger.paths.length > crashes.length, `${ledger.paths.length} paths were written`)
  t.same([...hit].sort(), [...storageFailpointNames].sort(), `failpoints hit: ${hit.size} of ${storageFailpointNames.length}`)
  t.comment(`failpoints hit ${hit.size} / existing ${storageFailpointNames.length}, ${crashes.length} crashes, seed ${seed}`)
})
