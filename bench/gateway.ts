// The gateway's cost: requests per second compared with a minimal forwarder in alternating rounds, and memory under large
// bodies.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Route } from '@tenantry/contract'
import { freePort } from '#test/support/postgres.ts'
import { WatchSource } from '#test/support/watch-source.ts'
import { median, noise, type Figures, type Report } from '#bench/figures.ts'
import { startChild, type Child } from '#bench/support/child.ts'
import { load } from '#bench/support/load.ts'
import { watchMemory } from '#bench/support/memory.ts'
import { download, upload } from '#bench/support/transfer.ts'

const token = 'the-internal-token-of-the-benchmark'
const rounds = 7
const roundMilliseconds = 2_000
const connections = 32
const bodyBytes = 100 * 1024 * 1024
const bodyRepeats = 3

export async function figures(report: Report): Promise<Figures> {
  const scratch = await mkdtemp(join(tmpdir(), 'tenantry-bench-gateway-'))
  const control = new WatchSource<Route>(token)
  await control.start()
  const upstream = await startChild(support('http-upstream.ts'))
  try {
    const upstreamPort = Number(upstream.firstOutput['port'])
    control.routes.put({
      tenant_id: 't_0123456789abcdef0123',
      name: 'acme',
      generation: 1,
      phase: 'ready',
      dedicated: false,
      runtimes: [`http://127.0.0.1:${upstreamPort}`],
    })
    const throughput = await measureThroughput(scratch, control, upstreamPort, report)
    const growth = await measureMemory(scratch, control, report)
    return {
      gateway_rps: { ...throughput, unit: '/s', target: '≥ 0.8 of the floor' },
      gateway_rss_growth_mb: { value: growth, unit: 'MB', target: '≤ 32' },
    }
  } finally {
    await upstream.stop()
    await control.stop()
    await rm(scratch, { recursive: true, force: true })
  }
}

async function measureThroughput(scratch: string, control: WatchSource<Route>, upstreamPort: number, report: Report) {
  const bare = await startChild(support('bare-forwarder.ts'), [String(upstreamPort)])
  const { gateway, port } = await startGateway(scratch, control)
  try {
    const ways = {
      gateway: { port, path: '/t/acme/rest/v1/rows' },
      bare: { port: Number(bare.firstOutput['port']), path: '/rest/v1/rows' },
    }
    const one = ({ port, path }: { port: number; path: string }, milliseconds: number) =>
      load({ port, request: requestFor(path), connections, milliseconds })
    const rps = { gateway: [] as number[], bare: [] as number[] }
    for (const way of ['gateway', 'bare'] as const) await one(ways[way], roundMilliseconds)
    for (let round = 0; round < rounds; round++) {
      for (const way of ['gateway', 'bare'] as const) rps[way].push((await one(ways[way], roundMilliseconds)).rps)
    }
    for (const way of ['gateway', 'bare'] as const) {
      report(
        `${way}: ${rps[way].map((value) => value.toFixed(0)).join(', ')} /s (noise ${noise(rps[way]).toFixed(0)} %)`,
      )
    }
    const { p50, p99 } = await one(ways.gateway, roundMilliseconds)
    report(`gateway with ${connections} connections: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`)
    const value = median(rps.gateway)
    const floor = median(rps.bare)
    return { value, floor, ratio: value / floor }
  } finally {
    await gateway.stop()
    await bare.stop()
  }
}

/** Measures the maximum growth of a new gateway's memory while bodies of 100 MB pass through it repeatedly, up and down. */
async function measureMemory(scratch: string, control: WatchSource<Route>, report: Report): Promise<number> {
  const { gateway, port } = await startGateway(scratch, control)
  try {
    await load({ port, request: requestFor('/t/acme/rest/v1/rows'), connections: 4, milliseconds: 500 })
    const { before, max } = await watchMemory(gateway.pid, async () => {
      for (let round = 0; round < bodyRepeats; round++) {
        const up = await timed(async () => {
          const arrived = await upload('POST', { port, path: '/t/acme/storage/v1/object/b/o', headers: {} }, bodyBytes)
          if (arrived !== String(bodyBytes))
            throw new Error(`The upstream received ${arrived} bytes of the upload, not ${bodyBytes}`)
        })
        const down = await timed(() =>
          download({ port, path: `/t/acme/storage/v1/bytes/${bodyBytes}`, headers: {} }, bodyBytes),
        )
        report(`100 MB up in ${up.toFixed(0)} ms, down in ${down.toFixed(0)} ms`)
      }
    })
    const megabytes = (bytes: number) => bytes / 1024 / 1024
    report(`gateway RSS ${megabytes(before).toFixed(1)} MB before, ${megabytes(max).toFixed(1)} MB at most`)
    return megabytes(max - before)
  } finally {
    await gateway.stop()
  }
}

async function startGateway(scratch: string, control: WatchSource<Route>): Promise<{ gateway: Child; port: number }> {
  const tokenFile = join(scratch, 'token')
  await writeFile(tokenFile, token)
  const port = await freePort()
  const gateway = await startChild(new URL('../gateway/src/main.ts', import.meta.url).pathname, [], {
    TENANTRY_HOST: '127.0.0.1',
    TENANTRY_PORT: String(port),
    TENANTRY_INTERNAL_PORT: String(await freePort()),
    TENANTRY_CONTROL_URL: control.url,
    TENANTRY_INTERNAL_TOKEN_FILE: tokenFile,
    TENANTRY_DATA: join(scratch, 'gateway'),
  })
  const deadline = performance.now() + 10_000
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/t/acme/`)
    await response.body?.cancel()
    if (response.status === 200) return { gateway, port }
    if (performance.now() > deadline) throw new Error('The gateway did not receive the route within 10 s')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

function requestFor(path: string): string {
  const headers = [
    'Host: localhost',
    'Authorization: Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIwIn0.0000000000000000000000000000000000000000000',
    'Accept: application/json',
    'X-Client-Info: supabase-js/2.119.0; runtime=node',
    'User-Agent: bench',
  ]
  return `GET ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`
}

async function timed(work: () => Promise<void>): Promise<number> {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}

function support(file: string): string {
  return new URL(`./support/${file}`, import.meta.url).pathname
}
