// The gateway's cost of metering, quotas and rate limits: the same gateway with and without them, in short alternating
// rounds.
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Route } from '@tenantry/contract'
import { WatchSource } from '#test/support/watch-source.ts'
import { median, quantile, type Figure, type Figures, type Report } from '#bench/figures.ts'
import { startChild, type Child } from './child.ts'
import { load, wire } from './load.ts'

const token = 'the-internal-token-of-the-benchmark'
/** Processes of one program differ in what their compilers optimised first, so each variant runs in several processes. */
const starts = 3
const rounds = 25
const roundMilliseconds = 300
const warmMilliseconds = 2_000
const connections = 32

const ways = {
  without: { variant: 'uncounted', tenant: 'free' },
  metering: { variant: 'counted', tenant: 'free' },
  'metering, quota and rate': { variant: 'counted', tenant: 'limited' },
} as const
type Way = keyof typeof ways
const wayNames: readonly Way[] = ['without', 'metering', 'metering, quota and rate']

interface Measured {
  /** Requests per second. */
  rps: number
  /** Nanoseconds of processor time for each request. */
  cpu: number
}

const headers = {
  authorization:
    'Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIwIn0.0000000000000000000000000000000000000000000',
  accept: 'application/json',
  'x-client-info': 'supabase-js/2.119.0; runtime=node',
  'user-agent': 'bench',
}

export async function gatewayCost(report: Report): Promise<Figures> {
  const scratch = await mkdtemp(join(tmpdir(), 'tenantry-bench-metering-'))
  const control = new WatchSource<Route>(token)
  control.monthly = 1_000_000_000_000
  await control.start()
  const child = (file: string, args: string[] = []) => startChild(new URL(file, import.meta.url).pathname, args)
  const upstream = await child('./http-upstream.ts')
  const route: Omit<Route, 'tenant_id' | 'name'> = {
    generation: 1,
    phase: 'ready',
    dedicated: false,
    runtimes: [`http://127.0.0.1:${Number(upstream.firstOutput['port'])}`],
  }
  control.routes.put({ ...route, tenant_id: 't_0123456789abcdef0123', name: 'free' })
  control.routes.put({
    ...route,
    tenant_id: 't_0123456789abcdef0124',
    name: 'limited',
    // Limits that the gateway checks and no request reaches.
    limits: {
      requests_per_month: control.monthly,
      connections: 100,
      rate: { per_second: 1_000_000, burst: 1_000_000 },
    },
  })
  const running: Child[] = [upstream]
  try {
    const measured: Record<Way, Measured[]> = { without: [], metering: [], 'metering, quota and rate': [] }
    for (let nth = 0; nth < starts; nth++) {
      const pairs = await Promise.all(
        wayNames.map(async (way, at) => ({
          way,
          gateway: await child('./gateway-variant.ts', [
            ways[way].variant,
            '0',
            control.url,
            join(scratch, `${nth}-${at}`),
            token,
          ]),
        })),
      )
      running.push(...pairs.map(({ gateway }) => gateway))
      for (const { way, gateway } of pairs) await measure(gateway, ways[way].tenant, warmMilliseconds)
      for (let round = 0; round < rounds; round++) {
        // Each variant has each position in a round equally often.
        const order = [...pairs.slice(round % pairs.length), ...pairs.slice(0, round % pairs.length)]
        for (const { way, gateway } of order)
          measured[way].push(await measure(gateway, ways[way].tenant, roundMilliseconds))
      }
      for (const { gateway } of pairs) await gateway.stop()
    }
    for (const way of wayNames) {
      const of = (what: keyof Measured) => measured[way].map((round) => round[what])
      report(
        `${way}: ${median(of('rps')).toFixed(0)} /s, ${(median(of('cpu')) / 1_000).toFixed(1)} µs of a processor each`,
      )
    }
    const cost = (way: Way, what: keyof Measured, of: string, target: string): Figure => {
      const ratios = measured[way].map((round, nth) => round[what] / (measured.without[nth]?.[what] ?? Number.NaN))
      const middle = [0.25, 0.75].map((q) => quantile(ratios, q).toFixed(2)).join(' to ')
      return { value: median(ratios), unit: `of the ${of} without (half of the rounds: ${middle})`, target }
    }
    return {
      metering_cost: cost('metering', 'rps', 'throughput', '≥ 0.95'),
      metering_processor: cost('metering', 'cpu', 'processor time', 'stated'),
      gateway_cost: cost('metering, quota and rate', 'rps', 'throughput', '≥ 0.90'),
      gateway_processor: cost('metering, quota and rate', 'cpu', 'processor time', 'stated'),
    }
  } finally {
    for (const process of running) await process.stop()
    await control.stop()
    await rm(scratch, { recursive: true, force: true })
  }
}

async function measure(gateway: Child, tenant: string, milliseconds: number): Promise<Measured> {
  const port = Number(gateway.firstOutput['port'])
  await untilServed(port, tenant)
  const before = await processorNanoseconds(gateway.pid)
  const { requests, rps } = await load({
    port,
    request: wire('GET', `/t/${tenant}/rest/v1/rows`, headers),
    connections,
    milliseconds,
  })
  return { rps, cpu: ((await processorNanoseconds(gateway.pid)) - before) / requests }
}

/** Reads the processor time that all threads of a process have used. */
async function processorNanoseconds(pid: number): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`)
  const taken = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').catch(() => '0')),
  )
  return taken.reduce((sum, text) => sum + Number(text.split(' ')[0]), 0)
}

async function untilServed(port: number, tenant: string): Promise<void> {
  const deadline = performance.now() + 10_000
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/t/${tenant}/`)
    await response.body?.cancel()
    if (response.status === 200) return
    if (performance.now() > deadline) throw new Error('The gateway did not receive the route within 10 s')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
