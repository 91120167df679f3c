// Realtime channels: broadcasts to many clients compared with a bare server in alternating rounds, changes of records to
// many subscribers, and the cost of idle connections, also for another tenant.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { internalTokenHeader, tenantHeader } from '@tenantry/contract'
import { startInstallation } from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'
import { median, noise, quantile, type Figures, type Report } from '#bench/figures.ts'
import { startChild } from '#bench/support/child.ts'
import { FrameSocket } from '#bench/support/frame-socket.ts'
import { createTenant, readRegion, type InstalledTenant } from '#bench/support/installed.ts'
import { wire } from '#bench/support/load.ts'
import { residentBytes } from '#bench/support/memory.ts'
import type { Location } from '#bench/support/transfer.ts'

const rounds = 5
const receivers = 200
const broadcasts = 500
/** Broadcasts that are on their way at a time. */
const window = 20
const subscribers = 500
const changeBatches = 40
const changesPerBatch = 5
const quietChanges = 100
const idleSockets = 10_000
const opening = 50
const idleSeconds = 10
const neighbourRounds = 9
const neighbourMs = 3_000
/** Reads of the other tenant that are in progress at a time. */
const neighbourReaders = 4

const notes = {
  name: 'notes',
  fields: [
    { name: 'id', type: 'uuid', primary: true },
    { name: 'owner_id', type: 'string' },
    { name: 'text', type: 'string' },
  ],
  rls_policy: { type: 'public_read', owner_field: 'owner_id' },
  events: true,
}

type Rest = (method: string, path: string, body?: unknown) => Promise<void>

interface Scene {
  socket: Location
  pid: number
  rest: Rest
  /** The headers of requests to another tenant of the same runtime. */
  neighbour: Record<string, string>
}

export async function figures(report: Report): Promise<Figures> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-bench-realtime-'))
  const data = join(directory, 'data')
  const installation = await startInstallation({ dataDirectory: data, runtimes: 1 })
  const region = await readRegion(data)
  const tenant = await createTenant(installation, 'acme', 'Enterprise')
  const internal = (await readFile(join(data, 'secrets', 'internal-token'), 'utf8')).trim()
  const connect = (to: InstalledTenant): { headers: Record<string, string>; rest: Rest } => {
    const headers = { [internalTokenHeader]: internal, [tenantHeader]: to.id }
    return {
      headers,
      async rest(method, path, body) {
        const response = await fetch(`http://127.0.0.1:${region.runtimePort}${path}`, {
          method,
          headers: {
            ...headers,
            authorization: `Bearer ${to.secretKey}`,
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        })
        if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
        await response.body?.cancel()
      },
    }
  }
  const { headers, rest } = connect(tenant)
  const other = await createTenant(installation, 'neighbour', 'Enterprise')
  const neighbour = connect(other)
  const scene: Scene = {
    socket: {
      port: region.runtimePort,
      path: `/realtime/v1/websocket?vsn=2.0.0&apikey=${tenant.secretKey}`,
      headers,
    },
    pid: await installation.pid('runtime-0'),
    rest,
    neighbour: { ...neighbour.headers, authorization: `Bearer ${other.secretKey}` },
  }
  try {
    for (const send of [rest, neighbour.rest]) {
      await send('POST', '/rest/v1/schemas', notes)
      await send('POST', '/admin/reload-schemas')
    }
    await neighbour.rest('POST', '/rest/v1/notes', { owner_id: 'ada', text: 'a note' })
    return {
      ...(await measureBroadcasts(scene, report)),
      ...(await measureChanges(scene, report)),
      ...(await measureIdle(scene, report)),
    }
  } finally {
    await installation.stop()
    await rm(directory, { recursive: true, force: true })
  }
}

async function measureBroadcasts(scene: Scene, report: Report): Promise<Figures> {
  const bare = await startChild(new URL('./support/bare-realtime.ts', import.meta.url).pathname)
  const ways = {
    realtime: await openGroup(scene.socket, receivers, '[null,"1","realtime:bench","phx_join",{"config":{}}]'),
    bare: await openGroup({ port: Number(bare.firstOutput['port']), path: '/', headers: {} }, receivers),
  }
  const rates = { realtime: [] as number[], bare: [] as number[] }
  const message = `[null,null,"realtime:bench","broadcast",{"type":"broadcast","event":"move","payload":{"text":"${'x'.repeat(200)}"}}]`
  for (let round = 0; round <= rounds; round++)
    for (const way of ['realtime', 'bare'] as const) {
      const rate = await send(ways[way], message)
      // The first round is for warming up.
      if (round > 0) rates[way].push(rate)
    }
  for (const way of ['realtime', 'bare'] as const) {
    report(
      `${way}: ${rates[way].map((rate) => rate.toFixed(0)).join(', ')} messages/s (noise ${noise(rates[way]).toFixed(0)} %)`,
    )
    for (const socket of ways[way]) socket.close()
  }
  await bare.stop()
  const [value, floor] = [median(rates.realtime), median(rates.bare)]
  return {
    broadcast_fan_out: { value, unit: 'messages/s', floor, ratio: value / floor, target: '≥ 0.7 of the floor' },
  }
}

/** Opens connections, the first of which sends. */
async function openGroup(location: Location, count: number, first?: string): Promise<FrameSocket[]> {
  const sockets = await openMany(location, count + 1)
  if (first === undefined) return sockets
  for (const socket of sockets) socket.send(first)
  await until(() => sockets.every(({ received }) => received > 0), 'the replies to the joins')
  return sockets
}

async function openMany(location: Location, count: number): Promise<FrameSocket[]> {
  const sockets: FrameSocket[] = []
  while (sockets.length < count)
    sockets.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(opening, count - sockets.length) }, () => FrameSocket.open(location)),
      )),
    )
  return sockets
}

/** Sends broadcasts as fast as they arrive. @returns the messages that arrived per second */
async function send([sender, ...others]: FrameSocket[], message: string): Promise<number> {
  const [last] = others.slice(-1)
  if (sender === undefined || last === undefined) throw new Error('There are no receivers.')
  const before = others.reduce((sum, { received }) => sum + received, 0)
  const begun = performance.now()
  await new Promise<void>((resolve) => {
    let sent = 0
    let arrived = 0
    const more = () => {
      while (sent < broadcasts && sent - arrived < window) {
        sender.send(message)
        sent++
      }
    }
    last.onFrame = () => {
      arrived++
      if (arrived === broadcasts) resolve()
      else more()
    }
    more()
  })
  last.onFrame = undefined
  const expected = before + broadcasts * others.length
  const total = () => others.reduce((sum, { received }) => sum + received, 0)
  await until(() => total() === expected, 'all messages')
  return ((expected - before) * 1_000) / (performance.now() - begun)
}

async function measureChanges(scene: Scene, report: Report): Promise<Figures> {
  const config = '{"config":{"postgres_changes":[{"event":"*","schema":"public","table":"notes"}]}}'
  const sockets = await openGroup(scene.socket, subscribers - 1, `["1","1","realtime:notes","phx_join",${config}]`)
  await until(() => sockets.every(({ received }) => received === 2), 'the subscriptions')
  const delays: number[] = []
  const arrivals: ((at: number) => void)[] = []
  const [first] = sockets
  if (first === undefined) throw new Error('There are no subscribers.')
  first.onFrame = () => arrivals.shift()?.(performance.now())
  const quiet: number[] = []
  for (let n = 0; n < quietChanges; n++) {
    const arrived = new Promise<number>((resolve) => arrivals.push(resolve))
    await scene.rest('POST', '/rest/v1/notes', { owner_id: 'ada', text: `note ${n}` })
    // The response follows the commit.
    const committed = performance.now()
    quiet.push(Math.max(0, (await arrived) - committed))
  }
  first.onFrame = undefined
  const total = () => sockets.reduce((sum, { received }) => sum + received, 0)
  const expectedQuiet = sockets.length * (2 + quietChanges)
  await until(() => total() === expectedQuiet, 'the changes one by one')
  const written: number[] = []
  for (const socket of sockets) {
    let n = 0
    socket.onFrame = () => {
      delays.push(performance.now() - (written[Math.floor(n++ / changesPerBatch)] ?? Number.NaN))
    }
  }
  const begun = performance.now()
  const interval = (subscribers * changesPerBatch * 1_000) / 25_000
  for (let batch = 0; batch < changeBatches; batch++) {
    const changes = Array.from({ length: changesPerBatch }, (_, n) => ({ owner_id: 'ada', text: `note ${n}` }))
    await scene.rest('POST', '/rest/v1/notes', changes)
    written.push(performance.now())
    const wait = begun + (batch + 1) * interval - performance.now()
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
  }
  const count = changeBatches * changesPerBatch * sockets.length
  await until(() => total() === expectedQuiet + count, 'all changes')
  const rate = (count * 1_000) / (performance.now() - begun)
  for (const socket of sockets) socket.close()
  report(`${subscribers} subscribers: ${rate.toFixed(0)} changes/s, p50 ${median(delays).toFixed(0)} ms`)
  return {
    changes_to_500_subscribers: { value: rate, unit: 'messages/s', target: '≥ 20,000' },
    changes_p95: { value: quantile(delays, 0.95), unit: 'ms', target: '≤ 240' },
    commit_to_client_p50: { value: median(quiet), unit: 'ms', target: '≤ 15' },
  }
}

async function measureIdle(scene: Scene, report: Report): Promise<Figures> {
  const before = await residentBytes(scene.pid)
  const begun = performance.now()
  const clients = await connectIdle(scene)
  const joined = (performance.now() - begun) / 1_000
  const bytes = (await residentBytes(scene.pid)) - before
  const cpuBefore = await cpuSeconds(scene.pid)
  await sleep(idleSeconds * 1_000)
  const cpu = (await cpuSeconds(scene.pid)) - cpuBefore
  clients.close()
  report(`${idleSockets} clients connected and joined in ${joined.toFixed(1)} s`)
  return {
    idle_socket_kb: { value: bytes / 1_000 / idleSockets, unit: 'KB', target: '≤ 30' },
    idle_cpu_percent: { value: (100 * cpu) / idleSeconds, unit: '% of a core', target: '≤ 10' },
    connect_10k: { value: joined, unit: 's', target: '≤ 60' },
    ...(await measureNeighbour(scene, report)),
  }
}

/** Compares another tenant's reads with and without idle clients, in alternating rounds. */
async function measureNeighbour(scene: Scene, report: Report): Promise<Figures> {
  const quiet: number[] = []
  const busy: number[] = []
  // The first reads are for warming up.
  await readP99(scene)
  for (let round = 0; round < neighbourRounds; round++) {
    await sleep(2_000)
    quiet.push(await readP99(scene))
    const clients = await connectIdle(scene)
    await sleep(2_000)
    busy.push(await readP99(scene))
    clients.close()
    report(
      `another tenant's reads: p99 ${String(quiet.at(-1)?.toFixed(2))} ms, with idle clients ${String(busy.at(-1)?.toFixed(2))} ms`,
    )
  }
  report(`noise of quiet reads: ${noise(quiet).toFixed(0)} %`)
  const [value, floor] = [median(busy), median(quiet)]
  return { neighbour_read_p99: { value, unit: 'ms', floor, ratio: value / floor, target: '≤ 1.5 of the floor' } }
}

/** Connects many clients that join and send a heartbeat every 25 s. */
async function connectIdle(scene: Scene): Promise<{ close(): void }> {
  const sockets = await openMany(scene.socket, idleSockets)
  for (const [n, socket] of sockets.entries()) socket.send(`["1","1","realtime:${n % 1_000}","phx_join",{"config":{}}]`)
  await until(() => sockets.every(({ received }) => received > 0), 'the replies to the joins')
  const beating = setInterval(() => {
    for (let n = 0; n < idleSockets / 2_500; n++)
      sockets[Math.floor(Math.random() * idleSockets)]?.send('[null,"2","phoenix","heartbeat",{}]')
  }, 10)
  return {
    close() {
      clearInterval(beating)
      for (const socket of sockets) socket.close()
    },
  }
}

/** Reads a record of the other tenant for some seconds. @returns the 99th percentile in milliseconds */
async function readP99({ socket, neighbour }: Scene): Promise<number> {
  const request = wire('GET', '/rest/v1/notes?limit=1', neighbour)
  const { firstOutput } = await startChild(
    new URL('./support/reading.ts', import.meta.url).pathname,
    [socket.port, neighbourReaders, neighbourMs].map(String),
    { REQUESTS: request.toString('base64') },
  )
  return Number(firstOutput['p99'])
}

/** Returns the CPU time that a process has used. */
async function cpuSeconds(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}
