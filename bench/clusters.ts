// Tenants with a cluster of their own on a real Docker Engine: from the POST to the first write through the tenant's URL, one by
// one, from the warm pool, and ten at once.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { openEngineWithImages } from '#scripts/engine-with-images.ts'
import { clusterImages, startDockerPlatform, type DockerPlatform } from '#test/support/docker-platform.ts'
import { median, quantile, type Figures, type Report } from '#bench/figures.ts'
import { untilWarm } from '#bench/support/warm-pool.ts'

const creates = 10
const atOnce = 10

export async function figures(report: Report): Promise<Figures> {
  const engine = await openEngineWithImages(report)
  try {
    const { cold, together } = await coldCreates(report)
    const warm = await warmCreates(report)
    return {
      create_cold_p50_s: { value: median(cold), unit: 's' },
      create_cold_p95_s: { value: quantile(cold, 0.95), unit: 's', target: '≤ 60' },
      create_warm_p50_s: { value: median(warm), unit: 's' },
      create_warm_p95_s: { value: quantile(warm, 0.95), unit: 's', target: '≤ 5' },
      ten_at_once_first_s: { value: Math.min(...together), unit: 's' },
      ten_at_once_last_s: { value: Math.max(...together), unit: 's', target: '≤ 300' },
    }
  } finally {
    await engine.stop()
  }
}

async function coldCreates(report: Report): Promise<{ cold: number[]; together: number[] }> {
  const platform = await startDockerPlatform({ docker: { clusters: clusterImages }, deleteGraceSeconds: 0 })
  try {
    // The first one also waits for the region's etcd.
    await removed(platform, (await created(platform, 'first', report)).id)
    const cold: number[] = []
    for (let number = 0; number < creates; number++) {
      const { id, seconds } = await created(platform, `cold-${number}`, report)
      cold.push(seconds)
      await removed(platform, id)
    }
    const names = Array.from({ length: atOnce }, (_, number) => `together-${number}`)
    const made = await Promise.all(names.map((name) => created(platform, name, report)))
    return { cold, together: made.map(({ seconds }) => seconds) }
  } finally {
    await platform.stop()
  }
}

async function warmCreates(report: Report): Promise<number[]> {
  const platform = await startDockerPlatform({
    docker: { clusters: { ...clusterImages, warm_stacks: 1 } },
    deleteGraceSeconds: 0,
  })
  try {
    const times: number[] = []
    for (let number = 0; number < creates; number++) {
      await untilWarm(platform, 1, 300)
      const { id, seconds } = await created(platform, `warm-${number}`, report)
      times.push(seconds)
      await removed(platform, id)
    }
    return times
  } finally {
    await platform.stop()
  }
}

/** Creates a tenant, and writes through its URL until a write succeeds. */
async function created(
  platform: DockerPlatform,
  name: string,
  report: Report,
): Promise<{ id: string; seconds: number }> {
  const begin = performance.now()
  const { status, body } = await platform.call('POST', '/v1/tenants', { name, plan: 'Enterprise', region: 'local' })
  if (status !== 201) throw new Error(`${name}: ${status} ${JSON.stringify(body)}`)
  const id = String(body['tenant_id'])
  await platform.until(id, (tenant) => tenant['status'] === 'ready', 600)
  while (!(await writes(String(body['database_url'])))) {
    if (performance.now() - begin > 600_000) throw new Error(`${name} accepted no write within 600 s`)
    await sleep(100)
  }
  const seconds = (performance.now() - begin) / 1000
  report(`${name}: ${seconds.toFixed(1)} s`)
  return { id, seconds }
}

async function writes(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, query_timeout: 5_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('create table if not exists numbers as select 1 as number')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function removed(platform: DockerPlatform, id: string): Promise<void> {
  await platform.call('DELETE', `/v1/tenants/${id}?purge=true`)
  await platform.until(id, ({ error }) => error !== undefined, 120)
}
