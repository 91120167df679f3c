// The REST interface compared with a minimal Fastify service on the same table under the same policies, in alternating
// rounds; the cost of the policies; the index by which rows are found; memory under a list of all rows; reloads, and the
// memory of schemas.
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { median, noise, type Figure, type Figures, type Report } from '#bench/figures.ts'
import { inTurn, reportRounds } from '#bench/support/in-turn.ts'
import { createTenant, type InstalledTenant } from '#bench/support/installed.ts'
import { load, wire, type LoadResult } from '#bench/support/load.ts'
import { residentBytes, watchMemory } from '#bench/support/memory.ts'
import { openScene, ownerCount, rowCount, todos, type RestScene } from '#bench/support/rest-scene.ts'
import type { Location } from '#bench/support/transfer.ts'

const connections = 16
const rounds = 9
const roundMilliseconds = 2_000
const warmUpMilliseconds = 4_000
const observedRequests = 100
const listRepeats = 3
const reloadedSchemas = 200
const reloads = 9
const tenants = 1_000
const schemasOfTenant = 20

export async function figures(report: Report): Promise<Figures> {
  // Next to the project, where an installation's own data is.
  const scratch = await mkdtemp(join(import.meta.dirname, '..', '.tenantry-bench-'))
  const scene = await openScene(scratch)
  try {
    return {
      ...(await plans(scene, report)),
      ...(await throughput(scene, report)),
      ...(await longList(scene, report)),
      ...(await reload(scene, report)),
      ...(await registry(scene, report)),
    }
  } finally {
    await scene.stop()
    await rm(scratch, { recursive: true, force: true })
  }
}

interface Operation {
  method: 'GET' | 'POST' | 'PATCH'
  status: number
  /** The path below /rest/v1. `barePath` is that of the minimal service. */
  path: (id: string) => string
  barePath: (id: string) => string
  body?: () => object
}

const random = (below: number) => Math.floor(Math.random() * below)
const one = (id: string) => `/todos/${id}`
const listed = 20
let count = 0

const operations = {
  get: { method: 'GET', status: 200, path: one, barePath: one },
  list: {
    method: 'GET',
    status: 200,
    path: () => `/todos?done=eq.false&order=rank.desc&limit=${listed}`,
    barePath: () => `/todos?done=false&limit=${listed}`,
  },
  insert: {
    method: 'POST',
    status: 201,
    path: () => '/todos',
    barePath: () => '/todos',
    body: () => ({ title: `new todo ${count++}`, done: false, rank: random(10_000) }),
  },
  update: {
    method: 'PATCH',
    status: 200,
    path: one,
    barePath: one,
    body: () => ({ done: random(2) === 0, rank: random(10_000) }),
  },
} satisfies Record<string, Operation>

type OperationName = keyof typeof operations

function someRow({ users }: RestScene): { token: string; id: string } {
  const user = users[random(users.length)]
  return { token: user?.token ?? '', id: user?.rows[random(user.rows.length)] ?? '' }
}

/** Returns a function that makes the next request of a random user for a row of theirs. */
function requests(
  scene: RestScene,
  { method, body }: Operation,
  location: (token: string, id: string) => Location,
): () => Buffer {
  return () => {
    const { token, id } = someRow(scene)
    const { path, headers } = location(token, id)
    if (body === undefined) return wire(method, path, headers)
    const text = JSON.stringify(body())
    return Buffer.concat([
      wire(method, path, {
        ...headers,
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(text)),
      }),
      Buffer.from(text),
    ])
  }
}

const throughRuntime = (scene: RestScene, operation: Operation) =>
  requests(scene, operation, (token, id) => scene.atRuntime(scene.tenant, token, `/rest/v1${operation.path(id)}`))

/** Reads from Postgres' own counters how many rows each of the runtime's requests reads, and by which index. */
async function plans(scene: RestScene, report: Report): Promise<Figures> {
  const client = await scene.session()
  try {
    const figures: Figures = {}
    for (const [name, rows, index] of [
      ['get', 1, 'the primary key'],
      ['list', rowCount / ownerCount, "the owner's index"],
    ] as const) {
      await endSessions(scene, client)
      const before = await readCounters(client)
      for (let n = 0; n < observedRequests; n++) {
        const { token, id } = someRow(scene)
        await scene.request(scene.tenant, token, 'GET', `/rest/v1${operations[name].path(id)}`, 200)
      }
      // Sessions report their counters when they end, if not before.
      await endSessions(scene, client)
      const after = await readCounters(client)
      const used = [...after]
        .map(([way, count]) => ({ way, read: (count - (before.get(way) ?? 0)) / observedRequests }))
        .filter(({ read }) => read > 0)
      report(`rows read for each ${name}: ${used.map(({ way, read }) => `${read} by ${way}`).join(', ')}`)
      figures[`${name}_rows_read`] = {
        value: used.reduce((sum, { read }) => sum + read, 0),
        unit: `by ${used.map(({ way }) => way).join(' and ')}`,
        target: `${rows} by ${index}`,
      }
    }
    return figures
  } finally {
    await client.end()
  }
}

/** Reads how many rows or index entries were read since the server's start: by each index, and without one. */
async function readCounters(client: pg.Client): Promise<Map<string, number>> {
  const { rows } = await client.query<{ way: string; count: string }>(
    `select indexrelname as way, idx_tup_read as count from pg_stat_user_indexes where relid = $1::regclass
     union all select 'sequential scan', seq_tup_read from pg_stat_user_tables where relid = $1::regclass`,
    ['todos'],
  )
  return new Map(rows.map(({ way, count }) => [way, Number(count)]))
}

/** Ends the runtime's sessions and waits until they are gone. */
async function endSessions(scene: RestScene, client: pg.Client): Promise<void> {
  for (;;) {
    const { rowCount: found } = await client.query(
      'select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = $1',
      [scene.tenant.id],
    )
    if (found === 0) return
  }
}

async function throughput(scene: RestScene, report: Report): Promise<Figures> {
  const bare = await scene.startBare(connections)
  const measured = new Map<OperationName, Record<string, LoadResult[]>>()
  try {
    // Inserts come last, because their rows make lists longer.
    for (const name of ['get', 'list', 'update', 'insert'] as const) {
      const operation: Operation = operations[name]
      const atBare = (prefix: string) =>
        requests(scene, operation, (token, id) => ({
          port: bare.port,
          path: `${prefix}${operation.barePath(id)}`,
          headers: { authorization: `Bearer ${token}` },
        }))
      const ways = {
        runtime: { port: scene.atRuntime(scene.tenant, '', '').port, request: throughRuntime(scene, operation) },
        bare: { port: bare.port, request: atBare('/rls') },
        'bare without RLS': { port: bare.port, request: atBare('/plain') },
      }
      // The first requests compile code; that time is not part of the measurement.
      for (const way of Object.values(ways))
        await load({ ...way, connections, milliseconds: warmUpMilliseconds, status: operation.status })
      const results = await inTurn(ways, rounds, (way) =>
        load({ ...way, connections, milliseconds: roundMilliseconds, status: operation.status }),
      )
      measured.set(name, results)
      reportRounds(report, `${name}, ${connections} connections, /s`, of(results, 'rps'))
      reportRounds(report, `${name}, p99 in ms`, of(results, 'p99'), 2)
    }
  } finally {
    await bare.stop()
  }
  const figure = (
    name: OperationName,
    what: 'rps' | 'p99',
    [ours, theirs]: [string, string],
    rest: Pick<Figure, 'unit' | 'target'>,
  ): Figure => {
    const values = of(measured.get(name) ?? {}, what)
    const [value, floor] = [median(values[ours] ?? []), median(values[theirs] ?? [])]
    return { value, floor, ratio: value / floor, ...rest }
  }
  const names = ['get', 'list', 'insert', 'update'] as const
  return {
    ...Object.fromEntries(
      names.map((name) => [
        `${name}_rps`,
        figure(name, 'rps', ['runtime', 'bare'], { unit: '/s', target: '≥ 0.8 of the floor' }),
      ]),
    ),
    ...Object.fromEntries(
      names.map((name) => [
        `${name}_p99_ms`,
        figure(name, 'p99', ['runtime', 'bare'], { unit: 'ms', target: '≤ 1.5 of the floor' }),
      ]),
    ),
    ...Object.fromEntries(
      names.map((name) => [`${name}_bare_rls_rps`, figure(name, 'rps', ['bare', 'bare without RLS'], { unit: '/s' })]),
    ),
  }
}

function of(results: Record<string, LoadResult[]>, what: 'rps' | 'p99'): Record<string, number[]> {
  return Object.fromEntries(Object.entries(results).map(([way, each]) => [way, each.map((result) => result[what])]))
}

/** Measures the maximum growth of the runtime's memory while the service reads all rows with one request, several times. */
async function longList(scene: RestScene, report: Report): Promise<Figures> {
  const pid = await scene.restart()
  const { tenant } = scene
  // The first requests load code; that memory is not part of a long list's.
  await load({
    port: scene.atRuntime(tenant, '', '').port,
    request: throughRuntime(scene, operations.get),
    connections: 8,
    milliseconds: 2_000,
  })
  const { before, max } = await watchMemory(pid, async () => {
    for (let n = 0; n < listRepeats; n++) {
      const begin = performance.now()
      const rows = await scene.request(tenant, tenant.secretKey, 'GET', `/rest/v1/todos?limit=${rowCount}`, 200)
      if (!Array.isArray(rows) || rows.length !== rowCount)
        throw new Error(
          `The list has the wrong number of rows. Expected ${rowCount}, got ${Array.isArray(rows) ? rows.length : 'none'}`,
        )
      report(`list of ${rowCount} rows in ${(performance.now() - begin).toFixed(0)} ms`)
    }
  })
  report(
    `lists of ${rowCount} rows: runtime ${(before / 1e6).toFixed(0)} MB before, ${(max / 1e6).toFixed(0)} MB at most`,
  )
  return { stream_rss_growth_mb: { value: (max - before) / 1e6, unit: 'MB', target: '≤ 32' } }
}

async function reload(scene: RestScene, report: Report): Promise<Figures> {
  const tenant = await createTenant(scene.installation, 'reloaded', 'Enterprise')
  await createSchemas(scene, tenant, reloadedSchemas)
  const times: number[] = []
  for (let n = 0; n <= reloads; n++) {
    const begin = performance.now()
    await scene.request(tenant, tenant.secretKey, 'POST', '/admin/reload-schemas', 200)
    if (n > 0) times.push(performance.now() - begin)
  }
  report(
    `reload of ${reloadedSchemas} unchanged schemas, ms: ${times.map((time) => time.toFixed(0)).join(', ')} ` +
      `(noise ${noise(times).toFixed(0)} %)`,
  )
  return { reload_200_ms: { value: median(times), unit: 'ms', target: '≤ 1,000' } }
}

/**
 * Measures the growth of a runtime's memory when the first request for a collection comes to each of many tenants, and then
 * the second. The runtime has served these tenants before, but none of their collections.
 */
async function registry(scene: RestScene, report: Report): Promise<Figures> {
  const made: InstalledTenant[] = []
  await eachOf(
    Array.from({ length: tenants }, (_, n) => n),
    async (n) => {
      const tenant = await createTenant(scene.installation, `many-${n}`, 'Free')
      await createSchemas(scene, tenant, schemasOfTenant)
      made.push(tenant)
      if (made.length % 100 === 0) report(`${made.length} tenants with ${schemasOfTenant} schemas each`)
    },
  )
  await scene.settle()
  const pid = await scene.restart()
  const touch = async (path: string) => {
    const before = await residentBytes(pid)
    await eachOf(made, async (tenant) => {
      await scene.request(tenant, tenant.secretKey, 'GET', path, 200)
    })
    return ((await residentBytes(pid)) - before) / 1e6
  }
  const others = [await touch('/storage/v1/bucket'), await touch('/storage/v1/bucket')]
  const grown = [await touch('/rest/v1/collection_0'), await touch('/rest/v1/collection_0')]
  const shown = (growth: number[]) => growth.map((megabytes) => megabytes.toFixed(1)).join(' + ')
  report(
    `${tenants} tenants: ${shown(others)} MB by buckets, then ${shown(grown)} MB by a collection of ${schemasOfTenant}`,
  )
  return { registry_mb: { value: grown.reduce((sum, megabytes) => sum + megabytes), unit: 'MB', target: '≤ 100' } }
}

async function createSchemas(scene: RestScene, tenant: InstalledTenant, many: number): Promise<void> {
  const schemas = Array.from({ length: many }, (_, n) => ({ ...todos, name: `collection_${n}` }))
  await scene.request(tenant, tenant.secretKey, 'POST', '/rest/v1/schemas', 201, schemas)
  await scene.request(tenant, tenant.secretKey, 'POST', '/admin/reload-schemas', 200)
}

/** Runs the work for all items, eight at a time. */
async function eachOf<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const remaining = items.values()
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (const item of remaining) await work(item)
    }),
  )
}
