// The requests of the console's screen of the fleet, over many tenants: figures, attention, list, search and next pages.
import { median, quantile, type Figures, type Report } from '#bench/figures.ts'
import { openFleetScene } from '#bench/support/fleet-scene.ts'

const rounds = 100

interface Page {
  next_cursor: string | null
}

export async function figures(report: Report): Promise<Figures> {
  const scene = await openFleetScene(Number(process.env['TENANTRY_BENCH_TENANTS'] ?? 100_000), report)
  const headers = { authorization: `Bearer ${scene.api.keys.read}` }
  const get = async (path: string): Promise<Page> => {
    const response = await fetch(`${scene.url}${path}`, { headers })
    const body = (await response.json()) as Page
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${JSON.stringify(body)}`)
    return body
  }
  const after = async (path: string) => `${path}&cursor=${(await get(path)).next_cursor ?? ''}`
  try {
    report(JSON.stringify(await get('/v1/fleet')))
    const paths: Record<string, string> = {
      summary: '/v1/fleet',
      attention: '/v1/fleet/attention?limit=20',
      attention_next: await after('/v1/fleet/attention?limit=20'),
      attention_quota: '/v1/fleet/attention?limit=20&code=Quota',
      list: '/v1/tenants?limit=50',
      list_next: await after('/v1/tenants?limit=50'),
      list_failed: '/v1/tenants?limit=50&status=failed',
      search: '/v1/tenants?limit=50&search=-98765-',
      search_nothing: '/v1/tenants?limit=50&search=zebra',
      search_next: await after('/v1/tenants?limit=50&search=customer-9'),
    }
    const floor = '/v1/plans'
    const times = new Map([floor, ...Object.values(paths)].map((path) => [path, [] as number[]]))
    // All paths take turns, so that other work on the machine slows all of them alike.
    for (let round = -10; round < rounds; round++) {
      for (const [path, measured] of times) {
        const begin = performance.now()
        await get(path)
        if (round >= 0) measured.push(performance.now() - begin)
      }
    }
    const p99 = (path: string) => quantile(times.get(path) ?? [], 0.99)
    const p50 = (path: string) => median(times.get(path) ?? [])
    for (const path of times.keys()) report(`${path}: p50 ${p50(path).toFixed(1)} ms, p99 ${p99(path).toFixed(1)} ms`)
    return Object.fromEntries(
      Object.entries(paths).flatMap(([name, path]) => [
        [`${name}_p50_ms`, { value: p50(path), unit: 'ms', floor: p50(floor), target: 'stated' }],
        [`${name}_p99_ms`, { value: p99(path), unit: 'ms', floor: p99(floor), target: '≤ 50' }],
      ]),
    )
  } finally {
    await scene.close()
  }
}
