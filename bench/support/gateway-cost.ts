// What counting, quota and rate limit cost the gateway: the same one with and without them, in alternating rounds.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Route } from '@tenantry/contract'
import { WatchSource } from '../../test/support/watch-source.ts'
import { median, noise, type Figures, type Report } from '../figures.ts'
import { startChild } from './child.ts'
import { load, wire } from './load.ts'

const token = 'the-internal-token-of-the-benchmark'
const rounds = 15
const roundMilliseconds = 1_000
const connections = 32

const headers = {
  authorization: 'Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIwIn0.0000000000000000000000000000000000000000000',
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
  const route: Omit<Route, 'tenant_id' | 'name'> = { generation: 1, phase: 'ready', dedicated: false, runtimes: [`http://127.0.0.1:${Number(upstream.said['port'])}`] }
  control.routes.put({ ...route, tenant_id: 't_0123456789abcdef0123', name: 'free' })
  control.routes.put({
    ...route, tenant_id: 't_0123456789abcdef0124', name: 'limited',
    // Never reached, always asked.
    limits: { requests_per_month: control.monthly, connections: 100, rate: { per_second: 1_000_000, burst: 1_000_000 } },
  })
  const start = (variant: string) => child('./gateway-variant.ts', [variant, '0', control.url, join(scratch, variant), token])
  const [counted, uncounted] = await Promise.all([start('counted'), start('uncounted')])
  try {
    const ways = {
      without: { gateway: uncounted, tenant: 'free' },
      metering: { gateway: counted, tenant: 'free' },
      'metering, quota and rate': { gateway: counted, tenant: 'limited' },
    }
    const names = Object.keys(ways) as (keyof typeof ways)[]
    const record = () => Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<keyof typeof ways, number[]>
    const [rps, cpu] = [record(), record()]
    const one = async (name: keyof typeof ways, milliseconds: number) => {
      const { gateway, tenant } = ways[name]
      const port = Number(gateway.said['port'])
      await untilServed(port, tenant)
      const before = await processorTicks(gateway.pid)
      const { requests, rps: rate } = await load({ port, request: wire('GET', `/t/${tenant}/rest/v1/rows`, headers), connections, milliseconds })
      return { rate, ticks: (await processorTicks(gateway.pid)) - before, requests }
    }
    for (const name of names) await one(name, 2 * roundMilliseconds)
    // Each in each place of a round equally often.
    for (let round = 0; round < rounds; round++) {
      for (let nth = 0; nth < names.length; nth++) {
        const name = names[(round + nth) % names.length] ?? 'without'
        const { rate, ticks, requests } = await one(name, roundMilliseconds)
        rps[name].push(rate)
        cpu[name].push((10_000 * ticks) / requests)
      }
    }
    for (const name of names) {
      report(`${name}: ${median(rps[name]).toFixed(0)} /s (noise ${noise(rps[name]).toFixed(0)} %), ${median(cpu[name]).toFixed(1)} µs of a processor each (noise ${noise(cpu[name]).toFixed(0)} %)`)
    }
    const ratio = (name: keyof typeof ways) => median(rps[name]) / median(rps.without)
    return {
      metering_cost: { value: ratio('metering'), unit: 'of the throughput without', target: '≥ 0.95' },
      gateway_cost: { value: ratio('metering, quota and rate'), unit: 'of the throughput without', target: '≥ 0.90' },
    }
  } finally {
    for (const process of [counted, uncounted, upstream]) await process.stop()
    await control.stop()
    await rm(scratch, { recursive: true, force: true })
  }
}

/** What a process has taken of processors so far, in hundredths of a second. */
async function processorTicks(pid: number): Promise<number> {
  const [, , , , , , , , , , , user, system] = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ')
  return Number(user) + Number(system)
}

async function untilServed(port: number, tenant: string): Promise<void> {
  const deadline = performance.now() + 10_000
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/t/${tenant}/`)
    await response.body?.cancel()
    if (response.status === 200) return
    if (performance.now() > deadline) throw new Error('the gateway did not take the route')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
