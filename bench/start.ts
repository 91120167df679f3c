// From nothing to a tenant that responds: start of an installation, creation of tenants, memory with 1,000 of them,
// and the gateway's cost.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { startInstallation, type Installation } from '#test/support/installation.ts'
import { noise, median, quantile, type Figures, type Report } from '#bench/figures.ts'
import { figures as gatewayFigures } from '#bench/gateway.ts'

export async function figures(report: Report): Promise<Figures> {
  // The directory where `npm start` stores its data: files in a crowded directory such as /tmp cost several times as much.
  const scratch = await mkdtemp(join(import.meta.dirname, '..', '.tenantry-bench-'))
  const data = join(scratch, 'data')
  try {
    const first = await timedStart(data)
    report(`first start: ${first.milliseconds.toFixed(0)} ms`)
    await first.installation.stop()
    const warm: number[] = []
    for (let round = 0; round < 5; round++) {
      const again = await timedStart(data)
      warm.push(again.milliseconds)
      await again.installation.stop()
    }
    report(`warm starts: ${warm.map((ms) => ms.toFixed(0)).join(', ')} ms (noise ${noise(warm).toFixed(0)} %)`)
    const { installation } = await timedStart(data)
    let created: Awaited<ReturnType<typeof measureTenants>>
    try {
      created = await measureTenants(installation, report)
    } finally {
      await installation.stop()
    }
    return {
      first_start_ms: { value: first.milliseconds, unit: 'ms', target: '≤ 15,000' },
      warm_start_ms: { value: median(warm), unit: 'ms', target: '≤ 3,000' },
      ...created,
      ...(await gatewayFigures(report)),
    }
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

async function timedStart(dataDirectory: string): Promise<{ installation: Installation; milliseconds: number }> {
  const begin = performance.now()
  // As many homes are ready as with `npm start`.
  const installation = await startInstallation({ dataDirectory, warmHomes: 10 })
  return { installation, milliseconds: performance.now() - begin }
}

async function measureTenants(installation: Installation, report: Report): Promise<Figures> {
  const pooled: number[] = []
  for (let n = 0; n < 30; n++) {
    // The pool is full again after this time.
    await sleep(1_000)
    pooled.push(await createAndUse(installation, `pooled-${n}`))
  }
  report(`30, one a second: p50 ${quantile(pooled, 0.5).toFixed(0)} ms, p99 ${quantile(pooled, 0.99).toFixed(0)} ms`)

  const oneByOne: number[] = []
  for (let n = 0; n < 300; n++) oneByOne.push(await createAndUse(installation, `one-${n}`))
  report(
    `300 one after another: p50 ${quantile(oneByOne, 0.5).toFixed(0)} ms, p99 ${quantile(oneByOne, 0.99).toFixed(0)} ms`,
  )

  const together = 670
  let next = 0
  const begin = performance.now()
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (next < together) await createAndUse(installation, `many-${next++}`)
    }),
  )
  const perSecond = together / ((performance.now() - begin) / 1000)
  report(`${together} with 16 in flight: ${perSecond.toFixed(1)}/s`)

  const usage = await memoryWithThousand(installation, report)
  return {
    create_pooled_p50_ms: { value: quantile(pooled, 0.5), unit: 'ms', target: '≤ 25' },
    create_p50_ms: { value: quantile(oneByOne, 0.5), unit: 'ms', target: '≤ 100' },
    create_p99_ms: { value: quantile(oneByOne, 0.99), unit: 'ms', target: '≤ 500' },
    create_per_s: { value: perSecond, unit: '/s', target: '≥ 20' },
    ...usage,
  }
}

/** Returns the milliseconds from the POST to the first response of the tenant's own URL that needed its database. */
async function createAndUse(installation: Installation, name: string): Promise<number> {
  const begin = performance.now()
  const response = await fetch(`${installation.controlUrl}/v1/tenants`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${installation.platformKey}`,
      'content-type': 'application/json',
      prefer: 'wait=30',
    },
    body: JSON.stringify({ name, plan: 'Free', region: 'local' }),
  })
  const body = (await response.json()) as { status?: string; keys?: { secret_key: string } }
  if (response.status !== 201 || body.keys === undefined)
    throw new Error(`create ${name}: ${response.status} ${JSON.stringify(body)}`)
  await touch(installation, name, body.keys.secret_key)
  secretKeys.set(name, body.keys.secret_key)
  return performance.now() - begin
}

const secretKeys = new Map<string, string>()

async function touch(installation: Installation, name: string, secretKey: string): Promise<void> {
  const response = await fetch(`${installation.gatewayUrl}/t/${name}/storage/v1/bucket`, {
    headers: { authorization: `Bearer ${secretKey}` },
  })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${name}: ${response.status} ${text}`)
}

/** Restarts the runtimes, so that its memory is that of tenants touched once and of nothing else. */
async function memoryWithThousand(installation: Installation, report: Report): Promise<Figures> {
  const { installation: fresh } = await restart(installation)
  let max = 0
  const begin = performance.now()
  for (const [name, key] of secretKeys) {
    await touch(fresh, name, key)
    max = Math.max(max, await tenantConnections(fresh))
  }
  report(
    `${secretKeys.size} tenants touched in ${((performance.now() - begin) / 1000).toFixed(1)} s, at most ${max} Postgres connections`,
  )
  const rss = await residentMegabytes(fresh)
  const deadline = performance.now() + 90_000
  let remaining = await tenantConnections(fresh)
  while (remaining > 0 && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 1000))
    remaining = await tenantConnections(fresh)
  }
  report(`RSS of all runtimes ${rss.toFixed(0)} MB; connections when idle: ${remaining}`)
  return {
    runtime_rss_mb: { value: rss, unit: 'MB', target: '≤ 350' },
    runtime_connections_max: { value: max, unit: 'connections', target: '≤ 100 (the cap)' },
    runtime_connections_idle: { value: remaining, unit: 'connections', target: '0' },
  }
}

async function restart(installation: Installation): Promise<{ installation: Installation }> {
  await installation.stop()
  const again = await timedStart(installation.data)
  Object.assign(installation, again.installation)
  return again
}

/** Returns the resident memory of all runtimes together. */
async function residentMegabytes(installation: Installation): Promise<number> {
  let megabytes = 0
  for (const service of await installation.runtimes()) {
    const status = await readFile(`/proc/${await installation.pid(service)}/status`, 'utf8')
    megabytes += Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
  }
  return megabytes
}

let monitor: { url: string; client: pg.Client } | undefined

async function tenantConnections(installation: Installation): Promise<number> {
  const regions = JSON.parse(await readFile(join(installation.data, 'regions.json'), 'utf8')) as {
    postgres_url: string
  }[]
  const url = regions[0]?.postgres_url ?? ''
  if (monitor?.url !== url) {
    await monitor?.client.end()
    monitor = { url, client: new pg.Client({ connectionString: url }) }
    monitor.client.on('error', () => (monitor = undefined))
    await monitor.client.connect()
  }
  const { rows } = await monitor.client.query<{ n: string }>(
    "select count(*) as n from pg_stat_activity where application_name like 'tenantry:t\\_%'",
  )
  return Number(rows[0]?.n)
}
