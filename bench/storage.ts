// Storage: large and small bodies compared with a minimal server in alternating rounds, the runtime's memory under large
// bodies, and reading metadata and listings in a bucket of a million objects, with row-level security and without.
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { folderStatement } from '#tenant-runtime/storage/objects/folder-statement.ts'
import { toWire } from '#tenant-runtime/database/statement.ts'
import { median, quantile, type Figure, type Figures, type Report } from '#bench/figures.ts'
import { alongside, inTurn, reportRounds } from '#bench/support/in-turn.ts'
import { load, wire } from '#bench/support/load.ts'
import { watchMemory } from '#bench/support/memory.ts'
import { openScene, type StorageScene } from '#bench/support/storage-scene.ts'
import { download, upload, type Location } from '#bench/support/transfer.ts'

const largeBytes = 100_000_000
const smallBytes = 4096
const largeRounds = 5
const smallRounds = 5
const smallMilliseconds = 2_000
/** More objects than the runtime caches in memory, and a number of them that it does cache. */
const storedSmall = 10_000
const cachedSmall = 2_000
const uploads = 16
const objects = 1_000_000
const inFolder = 100_000

/** The best results of another service of this kind on two cores, without fsync and hash. */
const peers = { upload: 302, uploadX4: 394, download: 432, downloadX4: 678, smallUploads: 409, smallDownloads: 1_130 }

export async function figures(report: Report): Promise<Figures> {
  // Next to the project, like an installation's own data: files in a crowded directory such as /tmp cost several times as
  // much.
  const scratch = await mkdtemp(join(import.meta.dirname, '..', '.tenantry-bench-'))
  const scene = await openScene(scratch)
  try {
    return {
      ...(await largeBodies(scene, report)),
      ...(await smallBodies(scene, report)),
      ...(await memory(scene, report)),
      ...(await metadata(scene, report)),
    }
  } finally {
    await scene.stop()
    await rm(scratch, { recursive: true, force: true })
  }
}

type Ways = Record<string, (n: number) => Promise<unknown>>

async function largeBodies(scene: StorageScene, report: Report): Promise<Figures> {
  const up: Ways = {
    runtime: (n) => upload('POST', scene.atRuntime(`/object/large/${n}`), largeBytes),
    bare: (n) => upload('PUT', scene.atBare(`/large/${n}`), largeBytes),
    gateway: (n) => upload('POST', scene.throughGateway(`/object/large/${n}`), largeBytes),
    forwarder: (n) => upload('PUT', scene.throughForwarder(`/large/${n}`), largeBytes),
  }
  const down: Ways = {
    runtime: (n) => download(scene.atRuntime(`/object/large/${n}`), largeBytes),
    bare: (n) => download(scene.atBare(`/large/${n}`), largeBytes),
    gateway: (n) => download(scene.throughGateway(`/object/large/${n}`), largeBytes),
    forwarder: (n) => download(scene.throughForwarder(`/large/${n}`), largeBytes),
  }
  const figures: Figures = {}
  const target = { up: '≥ 0.85 of the floor, > 50', down: '≥ 0.85 of the floor, > 100' }
  for (const [name, ways, goal, one, four] of [
    ['upload', up, target.up, peers.upload, peers.uploadX4],
    ['download', down, target.down, peers.download, peers.downloadX4],
  ] as const) {
    for (const [parallel, suffix, peer] of [
      [1, '', one],
      [4, '_x4', four],
    ] as const) {
      const speeds = await inTurn(ways, largeRounds, async (way) => {
        const begin = performance.now()
        await Promise.all(Array.from({ length: parallel }, (_, n) => way(n)))
        return (parallel * largeBytes) / 1000 / (performance.now() - begin)
      })
      figures[`${name}_100mb${suffix}_mbps`] = alongside(speeds, 'runtime', 'bare', {
        unit: 'MB/s',
        target: goal,
        peer,
      })
      figures[`${name}_100mb${suffix}_gateway_mbps`] = alongside(speeds, 'gateway', 'forwarder', {
        unit: 'MB/s',
        target: goal,
        peer,
      })
      reportRounds(report, `${name} 100 MB × ${parallel}, MB/s`, speeds)
    }
  }
  return figures
}

async function smallBodies(scene: StorageScene, report: Report): Promise<Figures> {
  let count = 0
  const body = Buffer.alloc(smallBytes, 'x')
  const put = (method: string, location: (name: string) => Location) => () => {
    const { path, headers } = location(`o-${count++}`)
    return Buffer.concat([
      wire(method, path, { ...headers, 'content-type': 'text/plain', 'content-length': String(smallBytes) }),
      body,
    ])
  }
  const puts = {
    runtime: {
      port: scene.atRuntime('').port,
      request: put('POST', (name) => scene.atRuntime(`/object/small/${name}`)),
    },
    bare: { port: scene.atBare('').port, request: put('PUT', (name) => scene.atBare(`/small/${name}`)) },
  }
  const get = (stored: number, location: (name: string) => Location) => {
    const requests = Array.from({ length: stored }, (_, n) => {
      const { path, headers } = location(`get-${n}`)
      return wire('GET', path, headers)
    })
    let next = 0
    return () => requests[next++ % stored] ?? Buffer.alloc(0)
  }
  const gets = (stored: number) => ({
    runtime: {
      port: scene.atRuntime('').port,
      request: get(stored, (name) => scene.atRuntime(`/object/small/${name}`)),
    },
    bare: { port: scene.atBare('').port, request: get(stored, (name) => scene.atBare(`/small/${name}`)) },
  })
  await Promise.all(
    Array.from({ length: uploads }, async (_, lane) => {
      for (let n = lane; n < storedSmall; n += uploads) {
        await upload('POST', scene.atRuntime(`/object/small/get-${n}`), smallBytes)
        await upload('PUT', scene.atBare(`/small/get-${n}`), smallBytes)
      }
    }),
  )
  const figures: Figures = {}
  for (const [name, ways, connections, target, peer] of [
    ['upload_4k', puts, 16, '≥ 0.7 of the floor', peers.smallUploads],
    ['upload_4k_c64', puts, 64, '≥ 1 of the floor', peers.smallUploads],
    ['download_4k', gets(cachedSmall), 16, '≥ 0.6 of the floor', peers.smallDownloads],
    ['download_4k_file', gets(storedSmall), 16, '≥ 0.6 of the floor', peers.smallDownloads],
  ] as const) {
    const runs = Object.fromEntries(
      Object.entries(ways).map(([way, { port, request }]) => [
        way,
        () => load({ port, request, connections, milliseconds: smallMilliseconds }),
      ]),
    )
    const speeds = await inTurn(runs, smallRounds, async (run) => (await run()).rps)
    figures[`${name}_rps`] = alongside(speeds, 'runtime', 'bare', { unit: '/s', target, peer })
    reportRounds(report, `${name}, ${connections} connections, /s`, speeds)
  }
  return figures
}

async function memory(scene: StorageScene, report: Report): Promise<Figures> {
  const figures: Figures = {}
  for (const [name, transfer] of [
    [
      'upload',
      async (n: number) => {
        await upload('POST', scene.atRuntime(`/object/large/${n}`), largeBytes)
      },
    ],
    ['download', async (n: number) => download(scene.atRuntime(`/object/large/${n}`), largeBytes)],
  ] as const) {
    const pid = await scene.restart()
    // The first requests load code; that memory is not part of large bodies'.
    const { port, path, headers } = scene.atRuntime('/bucket')
    await load({ port, request: wire('GET', path, headers), connections: 8, milliseconds: 1_000 })
    const { before, max } = await watchMemory(pid, async () => {
      await Promise.all(Array.from({ length: 8 }, (_, n) => transfer(n)))
    })
    report(`${name} 100 MB × 8: runtime ${(before / 1e6).toFixed(0)} MB before, ${(max / 1e6).toFixed(0)} MB at most`)
    figures[`${name}_rss_growth_mb`] = { value: (max - before) / 1e6, unit: 'MB', target: '≤ 64' }
  }
  return figures
}

/** Inserts a million rows without files and sets the counters by hand, because only rows are read here. */
async function fill(scene: StorageScene): Promise<void> {
  const client = await scene.session()
  try {
    await client.query('set session_replication_role = replica')
    await client.query(
      `insert into storage_objects (bucket_id, path, blob_id, size, content_type, etag, owner_id)
       select b.id, case when n <= $1::int then 'photos/' || n || '.jpg' else 'years/' || (n % 1000) || '/' || n || '.txt' end,
         gen_random_uuid(), 1, 'text/plain', 'x', $2
       from storage_buckets b, generate_series(1, $3::int) n where b.name = 'many'`,
      [inFolder, scene.userId, objects],
    )
    await client.query(
      `update storage_bucket_counters set file_count = $1, total_size = $1
       where bucket_id = (select id from storage_buckets where name = 'many')`,
      [objects],
    )
    await client.query('update storage_usage set file_count = file_count + $1, file_bytes = file_bytes + $1', [objects])
    await client.query('vacuum analyze storage_objects')
    await client.query('checkpoint')
  } finally {
    await client.end()
  }
}

async function metadata(scene: StorageScene, report: Report): Promise<Figures> {
  await fill(scene)
  const random = (below: number) => Math.floor(Math.random() * below)
  const post = (path: string, make: () => object) => () => {
    const text = JSON.stringify(make())
    const { path: at, headers } = scene.atRuntime(path)
    return Buffer.concat([
      wire('POST', at, {
        ...headers,
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(text)),
      }),
      Buffer.from(text),
    ])
  }
  const get = (path: () => string) => () => {
    const { path: at, headers } = scene.atRuntime(path())
    return wire('GET', at, headers)
  }
  const aPhoto = () => `photos/${1 + random(inFolder)}.jpg`
  const p99 = async (what: string, request: () => Buffer) => {
    const { port } = scene.atRuntime('')
    await load({ port, request, connections: 4, milliseconds: 500 })
    const { p50, p99, rps } = await load({ port, request, connections: 4, milliseconds: 3_000 })
    report(`${what}: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, ${rps.toFixed(0)}/s with 4 connections`)
    return p99
  }
  const single = [
    await p99(
      'info of an object',
      get(() => `/object/info/many/${aPhoto()}`),
    ),
    await p99(
      'bucket with its counters',
      get(() => '/bucket/many'),
    ),
  ]
  const page = (offset: number) => ({ prefix: 'photos', limit: 100, offset })
  const changed = await afterChange(scene, report, page(inFolder - 100))
  // Four clients, each reading page by page from its own position.
  const clients = Array.from({ length: 4 }, () => random(inFolder / 100) * 100)
  let turn = 0
  const nextPage = () => {
    const client = turn++ % clients.length
    const offset = clients[client] ?? 0
    clients[client] = (offset + 100) % inFolder
    return page(offset)
  }
  const pages = [
    await p99('list, page after page by offset', post('/object/list/many', nextPage)),
    await p99(
      'list, any page by offset',
      post('/object/list/many', () => page(random(inFolder))),
    ),
    await p99(
      'list, first page of folders',
      post('/object/list/many', () => ({ prefix: 'years', limit: 100 })),
    ),
    await p99(
      'list-v2, any page by cursor',
      post('/object/list-v2/many', () => ({
        prefix: 'photos/',
        limit: 100,
        with_delimiter: true,
        cursor: Buffer.from(`o${aPhoto()}`).toString('base64url'),
      })),
    ),
  ]
  return {
    metadata_p99_ms: { value: Math.max(...single), unit: 'ms', target: '< 10' },
    list_p99_ms: { value: Math.max(...pages), unit: 'ms', target: '< 20' },
    list_last_page_changed_ms: changed,
    list_rls_ratio: await listUnderPolicies(scene, report),
  }
}

/**
 * Measures the last page by offset when the bucket has changed since the previous page, so that no cached position is
 * valid.
 */
async function afterChange(scene: StorageScene, report: Report, page: object): Promise<Figure> {
  const times: number[] = []
  const { port, path, headers } = scene.atRuntime('/object/list/many')
  for (let n = 1; n <= 20; n++) {
    await scene.rows("update storage_objects set cache_control = $1 where path = 'photos/1.jpg'", [`max-age=${n}`])
    const begin = performance.now()
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(page),
    })
    const shown = (await response.json()) as unknown[]
    times.push(performance.now() - begin)
    if (shown.length !== 100) throw new Error(`The last page has ${shown.length} objects, not 100`)
  }
  report(`list, last page by offset, each after a change: p50 ${median(times).toFixed(2)} ms`)
  return { value: median(times), unit: 'ms' }
}

/**
 * Runs the runtime's own statement on one connection: as its role in a user's context, and as the superuser, to whom no
 * policy applies.
 */
async function listUnderPolicies(scene: StorageScene, report: Report): Promise<Figure> {
  const client = await scene.session()
  try {
    const { rows } = await client.query<{ id: string }>("select id from storage_buckets where name = 'many'")
    const { text, values } = folderStatement(rows[0]?.id ?? '', {
      folder: 'photos/',
      search: '',
      column: 'name',
      order: 'asc',
      limit: 100,
      offset: 0,
    })
    const once = async (role: string) => {
      await client.query('begin')
      await client.query(`set local role ${role}`)
      await client.query(
        "select set_config('app.tenant_id', $1, true), set_config('app.role', 'authenticated', true), set_config('app.user_id', $2, true)",
        [scene.tenantId, scene.userId],
      )
      const begin = performance.now()
      const result = await client.query({ name: role, text, values: values.map(toWire) })
      const took = performance.now() - begin
      await client.query('commit')
      // The two other rows report the bucket's counters and where the objects begin.
      if (result.rows.length !== 102)
        throw new Error(`The statement returned ${result.rows.length} rows to ${role}, not 102`)
      return took
    }
    const times = { with: [] as number[], without: [] as number[] }
    for (let n = 0; n < 600; n++) {
      const ways = [
        ['with', scene.tenantId],
        ['without', 'postgres'],
      ] as const
      for (const [way, role] of ways) {
        const took = await once(role)
        // Postgres plans the first executions for their values.
        if (n >= 100) times[way].push(took)
      }
    }
    const [value, floor] = [median(times.with), median(times.without)]
    report(
      `list of 100 in SQL: ${value.toFixed(3)} ms with policies, ${floor.toFixed(3)} ms without; ` +
        `p99 ${quantile(times.with, 0.99).toFixed(2)}, ${quantile(times.without, 0.99).toFixed(2)} ms`,
    )
    return { value: value / floor, unit: '×', target: '≤ 1.2' }
  } finally {
    await client.end()
  }
}
