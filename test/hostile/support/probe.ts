// Starts the probe as a separate process, which the load of an attack does not delay, and collects its reports.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { until } from '#test/support/until.ts'
import type { ServiceSource } from './services.ts'
import type { MemorySample, Report, Sample } from './samples.ts'

/** The addresses and credentials that the probe uses. */
export interface ProbeTarget {
  /** Local address from which the probe sends. */
  address: string
  controlUrl: string
  platformKey: string
  services: ServiceSource
  neighbour: { id: string; url: string; secretKey: string; fileBytes: number }
}

export interface Probe {
  /** Returns the requests that began in a period; times are in milliseconds since the epoch. */
  samples(from: number, to: number): Sample[]
  /** Returns the memory in a period. */
  memory(from: number, to: number): MemorySample[]
  /** Starts or stops to create and delete tenants. */
  createTenants(wanted: boolean): void
  stop(): Promise<void>
}

/** The present, in milliseconds since the epoch. */
export const present = () => performance.timeOrigin + performance.now()

/** Starts the probe and waits until it has seen an event of the neighbour's stream. */
export async function startProbe(target: ProbeTarget): Promise<Probe> {
  const child = spawn(process.execPath, [new URL('probe-main.ts', import.meta.url).pathname, JSON.stringify(target)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const samples: Sample[] = []
  const memory: MemorySample[] = []
  createInterface({ input: child.stdout }).on('line', (line) => {
    const report = JSON.parse(line) as Report
    if ('memory' in report) memory.push(report)
    else samples.push(report)
  })
  await until(
    () => child.exitCode !== null || samples.some(({ kind, failure }) => kind === 'event' && failure === undefined),
    'an event in the stream of the neighbour',
    30_000,
  )
  const inPeriod = <T extends { at: number }>(all: readonly T[], from: number, to: number) =>
    all.filter(({ at }) => at >= from && at < to)
  return {
    samples: (from, to) => inPeriod(samples, from, to),
    memory: (from, to) => inPeriod(memory, from, to),
    createTenants: (wanted) => void child.stdin.write(wanted ? 'tenants on\n' : 'tenants off\n'),
    async stop() {
      child.stdin.end()
      await exited
    },
  }
}
