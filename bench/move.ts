// Moves of a home with 1 GB of rows between two shared databases, while it is read and written: the time for which requests
// wait, the throughput of the copy, and how much slower the requests of the tenant and of a neighbour are meanwhile.
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { median, noise, quantile, type Figures, type Report } from '#bench/figures.ts'
import { openScene, post, type BackupScene, type FilledTenant } from '#bench/support/backup-scene.ts'
import type { PacedRequest } from '#bench/support/paced-load.ts'
import { startSteadyLoad, type Sample } from '#bench/support/steady-load.ts'

interface Size {
  megabytes: number
  moves: number
}

const perSecond = 200
const quietMs = 5_000
/** Time before and after the hold that is searched for the longest wait. */
const aroundHoldMs = 1_000

const notes = {
  name: 'notes',
  fields: [
    { name: 'id', type: 'uuid', primary: true },
    { name: 'text', type: 'string' },
  ],
  rls_policy: { type: 'service' },
}

const steps = ['copy', 'catch up', 'compare', 'hold', 'switch', 'done'] as const
type Step = (typeof steps)[number]

interface Measured {
  seconds: number
  copySeconds: number
  holdMs: number
  /** The p99 of the tenant's and the neighbour's requests during the copy, and of both in quiet times just before. */
  own: number
  neighbour: number
  quietOwn: number
  quietNeighbour: number
  failed: number
}

export async function figures(report: Report, size: Size = { megabytes: 1_000, moves: 6 }): Promise<Figures> {
  const scratch = await mkdtemp(join(import.meta.dirname, '..', '.tenantry-bench-'))
  const scene = await openScene('shared', scratch)
  try {
    const tenant = await scene.create('rows', size.megabytes)
    const neighbour = await scene.create('files', 4)
    for (const one of [tenant, neighbour]) {
      await post(one.atGateway('/rest/v1/schemas'), notes)
      await post(one.atGateway('/admin/reload-schemas'), {})
    }
    const freeze = await dumpAndRestore(scene, tenant)
    report(`a backup and its restore: ${freeze.toFixed(1)} s`)
    const moves: Measured[] = []
    for (let n = 0; n < size.moves; n++) {
      const measured = await measureMove(scene, tenant, neighbour, `tenantry_homes_${2 - (n % 2)}`)
      moves.push(measured)
      report(
        `move ${n + 1}: ${measured.seconds.toFixed(1)} s, copy ${measured.copySeconds.toFixed(1)} s, ` +
          `longest wait ${measured.holdMs.toFixed(0)} ms, ${measured.failed} failed requests`,
      )
    }
    const of = (read: (measured: Measured) => number) => moves.map(read)
    report(`noise of quiet times: ${noise(of(({ quietOwn }) => quietOwn)).toFixed(0)} %`)
    const holds = of(({ holdMs }) => holdMs)
    return {
      hold_p95: { value: quantile(holds, 0.95), unit: 'ms', target: '≤ 1,000' },
      hold_max: {
        value: Math.max(...holds),
        unit: 'ms',
        floor: freeze * 1_000,
        ratio: Math.max(...holds) / freeze / 1_000,
        target: '≤ 3,000',
      },
      copy: {
        value: median(of(({ copySeconds }) => tenant.bytes / 1e6 / copySeconds)),
        unit: 'MB/s',
        target: '≥ 50',
      },
      own_p99_ratio: { value: median(of(({ own, quietOwn }) => own / quietOwn)), unit: '×', target: '≤ 2' },
      neighbour_p99_ratio: {
        value: median(of(({ neighbour: p99, quietNeighbour }) => p99 / quietNeighbour)),
        unit: '×',
        target: '≤ 1.3',
      },
      quiet_p99: { value: median(of(({ quietOwn }) => quietOwn)), unit: 'ms' },
      failed_requests: { value: of(({ failed }) => failed).reduce((sum, count) => sum + count, 0), unit: '' },
    }
  } finally {
    await scene.stop()
    await rm(scratch, { recursive: true, force: true })
  }
}

/** Returns the seconds for which a dump and its restore would hold the tenant. */
async function dumpAndRestore(scene: BackupScene, { id }: FilledTenant): Promise<number> {
  const backup = await scene.perform(`/v1/tenants/${id}/backups`)
  const restored = await scene.perform(`/v1/backups/${backup.id}/restore`, { into: 'same' })
  await scene.remove(backup.id)
  return backup.seconds + restored.seconds
}

function requestsTo(tenant: FilledTenant): PacedRequest[] {
  const body = Buffer.from(JSON.stringify({ text: 'a note' }))
  const write = tenant.atGateway('/rest/v1/notes')
  return [
    { method: 'GET', location: tenant.atGateway('/rest/v1/notes?limit=1') },
    { method: 'POST', location: { ...write, headers: { ...write.headers, 'content-type': 'application/json' } }, body },
  ]
}

async function measureMove(
  scene: BackupScene,
  tenant: FilledTenant,
  neighbour: FilledTenant,
  database: string,
): Promise<Measured> {
  // Half of the requests read, half of them write.
  const own = startSteadyLoad(requestsTo(tenant), 2 * perSecond)
  const other = startSteadyLoad(requestsTo(neighbour), perSecond)
  const begun = performance.now()
  await sleep(quietMs)
  const times = new Map<string, number>()
  const started = performance.now()
  const { seconds } = await scene.perform(`/v1/tenants/${tenant.id}/move`, { database }, ({ step }) => {
    if (step !== null && !times.has(step)) times.set(step, performance.now())
  })
  await sleep(aroundHoldMs)
  await own.stop()
  await other.stop()
  // A step that is over between two reads of the operation began before the next one.
  const begins = (step: Step) => Math.min(...steps.slice(steps.indexOf(step)).map((one) => times.get(one) ?? Infinity))
  const [copyFrom, copyTo, holdFrom] = [begins('copy'), begins('catch up'), begins('hold') - aroundHoldMs]
  return {
    seconds,
    copySeconds: (copyTo - copyFrom) / 1_000,
    holdMs: Math.max(...waits(own.samples, holdFrom, Infinity)),
    own: p99(own.samples, copyFrom, copyTo),
    neighbour: p99(other.samples, copyFrom, copyTo),
    quietOwn: p99(own.samples, begun, started),
    quietNeighbour: p99(other.samples, begun, started),
    failed: own.samples.filter(({ status }) => status !== 200 && status !== 201).length,
  }
}

function waits(samples: readonly Sample[], from: number, to: number): number[] {
  return samples.filter(({ at }) => at >= from && at < to).map(({ milliseconds }) => milliseconds)
}

function p99(samples: readonly Sample[], from: number, to: number): number {
  return quantile(waits(samples, from, to), 0.99)
}
