// Dedicated tenants on a real Docker Engine: from the POST to the first response, cold and from the warm pool; a request
// that wakes a paused tenant; recovery from a killed container; the cost of a sweep over a whole region; an idle tenant's
// memory.
// The floor of a cold create is the same two containers, network and volumes created by direct calls of the Engine.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createContainerEngine, onlyHost, type Engine } from '#control-plane/engines/index.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { stackFor, type Stack } from '#control-plane/stacks/index.ts'
import { openEngineWithImages } from '#scripts/engine-with-images.ts'
import { removeAll, startDockerPlatform, type DockerPlatform } from '#test/support/docker-platform.ts'
import { median, quantile, type Figures, type Report } from '#bench/figures.ts'
import { untilWarm } from '#bench/support/warm-pool.ts'

const tenants = 20
const shared = 1_000

export async function figures(report: Report): Promise<Figures> {
  const engine = await openEngineWithImages(report)
  try {
    return await measure(report)
  } finally {
    await engine.stop()
  }
}

async function measure(report: Report): Promise<Figures> {
  const platform = await startDockerPlatform({ deleteGraceSeconds: 0 })
  try {
    await created(platform, 'first')
    const made: Tenant[] = []
    const cold: number[] = []
    const bare: number[] = []
    for (let n = 0; n < tenants; n++) {
      const tenant = await created(platform, `cold-${n}`)
      made.push(tenant)
      cold.push(tenant.milliseconds)
      bare.push(await bareStack(platform, n))
    }
    report(`cold creates: ${shown(cold)}; bare: ${shown(bare)}`)
    const idle = await idleMegabytes(platform, made)
    report(`memory of an idle tenant: ${idle.postgres.toFixed(0)} MB Postgres, ${idle.runtime.toFixed(0)} MB runtime`)
    const recover = await recovered(platform, made)
    report(`killed container → response: ${shown(recover)}`)
    const wake = await woken(platform, made)
    report(`paused → response: ${shown(wake)}`)
    const sweep = await swept(platform, report)
    await platform.stop()
    const warm = await warmCreates(report)
    const [coldMedian, bareMedian] = [median(cold), median(bare)]
    return {
      create_cold_p50_ms: {
        value: coldMedian,
        unit: 'ms',
        floor: bareMedian,
        ratio: coldMedian / bareMedian,
        target: '≤ 4,000',
      },
      create_warm_p50_ms: { value: median(warm), unit: 'ms', target: '≤ 1,000' },
      create_p99_ms: { value: quantile(cold, 0.99), unit: 'ms', target: '≤ 10,000' },
      wake_p95_ms: { value: quantile(wake, 0.95), unit: 'ms', target: '≤ 1,500' },
      recover_p95_ms: { value: quantile(recover, 0.95), unit: 'ms', target: '≤ 5,000' },
      sweep_first_ms: { value: sweep.first, unit: 'ms', target: '≤ 10,000' },
      sweep_idle_ms: { value: sweep.idle, unit: 'ms', target: '≤ 1,000' },
      sweep_idle_writes: { value: sweep.writes, unit: 'rows', target: '0' },
      idle_tenant_mb: { value: idle.postgres + idle.runtime, unit: 'MB', target: '≤ 150' },
    }
  } finally {
    await platform.stop()
  }
}

interface Tenant {
  id: string
  name: string
  key: string
  /** Milliseconds from the POST to the first response of the tenant's own URL. */
  milliseconds: number
}

async function created(platform: DockerPlatform, name: string): Promise<Tenant> {
  const begin = performance.now()
  const { status, body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name, plan: 'Pro', region: 'local' },
    { prefer: 'wait=60' },
  )
  if (status !== 201) throw new Error(`${name}: ${status} ${JSON.stringify(body)}`)
  const tenant = {
    id: String(body['tenant_id']),
    name,
    key: (body['keys'] as { secret_key: string }).secret_key,
    milliseconds: 0,
  }
  await untilResponding(platform, tenant)
  return { ...tenant, milliseconds: performance.now() - begin }
}

/** Repeats a request until it succeeds. The time that the gateway holds a request counts. */
async function untilResponding(platform: DockerPlatform, { name, key }: Pick<Tenant, 'name' | 'key'>): Promise<void> {
  const deadline = performance.now() + 60_000
  for (;;) {
    const response = await platform.tenantCall(name, 'GET', '/storage/v1/bucket', { key }).catch(() => undefined)
    await response?.body?.cancel()
    if (response?.status === 200) return
    if (performance.now() > deadline)
      throw new Error(`${name} did not respond with 200 within 60 s: ${response?.status}`)
    await sleep(10)
  }
}

/** Creates the same stack through the engine alone, until its Postgres accepts statements and its runtime responds. */
async function bareStack(platform: DockerPlatform, n: number): Promise<number> {
  const installation = `bare-${randomBytes(4).toString('hex')}`
  const engine: Engine = createContainerEngine({
    name: 'docker',
    installation,
    hosts: onlyHost(platform.host),
    sleep: systemClock.sleep,
  })
  const signal = AbortSignal.timeout(60_000)
  const [{ id: postgres }, { id: runtime }] = await Promise.all([
    engine.image('tenantry/postgres:latest', signal),
    engine.image('tenantry/tenant-runtime:latest', signal),
  ])
  const size = { memoryBytes: 2 ** 30, cpuMillis: 1_000, pids: 256 }
  const id = `t_${randomBytes(10).toString('hex')}`
  const stack: Stack = stackFor(
    {
      id,
      isolation: 'database-per-tenant',
      running: true,
      hasHome: false,
      resources: { postgres: size, runtime: size },
      restarts: 0,
      images: { postgres, runtime },
      subnet: `10.250.${n}.0/28`,
    },
    { gateways: [{ container: '' }], internalToken: 'x'.repeat(32) },
  )
  const alone: Stack = { ...stack, networks: stack.networks.map((network) => ({ ...network, attachedContainers: [] })) }
  try {
    const begin = performance.now()
    await engine.converge(alone, signal)
    for (const { name, health } of alone.services) {
      while ((await engine.exec(id, name, health.command, { signal })).code !== 0) await sleep(20)
    }
    return performance.now() - begin
  } finally {
    await removeAll(platform.host, installation)
  }
}

async function idleMegabytes(
  platform: DockerPlatform,
  made: readonly Tenant[],
): Promise<{ postgres: number; runtime: number }> {
  const signal = AbortSignal.timeout(60_000)
  const { containers } = await platform.host.observe({ installation: platform.installation }, signal)
  const of = async (service: string) => {
    const names = containers
      .filter(({ labels }) => labels.service === service && made.some(({ id }) => id === labels.stack))
      .map(({ name }) => name)
    const bytes = await Promise.all(names.map(async (name) => (await platform.host.stats(name, signal)).memoryBytes))
    return median(bytes) / 1_000_000
  }
  return { postgres: await of('postgres'), runtime: await of('runtime') }
}

async function recovered(platform: DockerPlatform, made: readonly Tenant[]): Promise<number[]> {
  const times: number[] = []
  for (const [n, tenant] of made.entries()) {
    const { containers } = await platform.host.observe(
      { installation: platform.installation, stack: tenant.id },
      AbortSignal.timeout(30_000),
    )
    const service = n % 2 === 0 ? 'runtime' : 'postgres'
    const victim = containers.find(({ labels }) => labels.service === service)
    if (victim === undefined) throw new Error(`${tenant.name} has no ${service}`)
    const begin = performance.now()
    await platform.kill(victim.name)
    await untilResponding(platform, tenant)
    times.push(performance.now() - begin)
  }
  return times
}

async function woken(platform: DockerPlatform, made: readonly Tenant[]): Promise<number[]> {
  const times: number[] = []
  for (const tenant of made) {
    const { status } = await platform.call('POST', `/v1/tenants/${tenant.id}/pause`, undefined, { prefer: 'wait=60' })
    if (status !== 202) throw new Error(`${tenant.name} could not be paused: ${status}`)
    await platform.until(tenant.id, (body) => body['status'] === 'paused')
    // The engine cleans up after the stop.
    await sleep(1_000)
    const begin = performance.now()
    await untilResponding(platform, tenant)
    times.push(performance.now() - begin)
    await platform.until(tenant.id, (body) => body['status'] === 'ready')
  }
  return times
}

async function swept(
  platform: DockerPlatform,
  report: Report,
): Promise<{ first: number; idle: number; writes: number }> {
  let next = 0
  const begin = performance.now()
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (next < shared) {
        const { status } = await platform.call(
          'POST',
          '/v1/tenants',
          { name: `shared-${next++}`, plan: 'Free', region: 'local' },
          { prefer: 'wait=60' },
        )
        if (status !== 201) throw new Error(`The creation of a shared tenant returned ${status}, not 201`)
      }
    }),
  )
  report(`${shared} shared tenants in ${((performance.now() - begin) / 1000).toFixed(0)} s`)
  await platform.stopControlPlanes()
  const restart = performance.now()
  await platform.startControlPlane()
  while ((await sweepSeconds(platform)) === undefined || (await metric(platform, 'tenantry_queue_depth')) !== 0)
    await sleep(20)
  const first = performance.now() - restart
  // A start records some rows once.
  await sleep(20_000)
  // Two more sweeps, which must write nothing.
  const before = await rowsWritten(platform)
  await sleep(45_000)
  const idle = ((await sweepSeconds(platform)) ?? Number.NaN) * 1000
  return { first, idle, writes: (await rowsWritten(platform)) - before }
}

async function metric(platform: DockerPlatform, name: string): Promise<number | undefined> {
  const response = await fetch(`${platform.controlUrl}/metrics`, {
    headers: { authorization: `Bearer ${platform.platformKey}` },
  })
  const line = (await response.text()).split('\n').find((text) => text.startsWith(name))
  return line === undefined ? undefined : Number(line.split(' ').at(-1))
}

const sweepSeconds = (platform: DockerPlatform) => metric(platform, 'tenantry_sweep_seconds{')

/** Counts written rows of tenants, operations and their dependants, without usage counters, which continue to change. */
async function rowsWritten(platform: DockerPlatform): Promise<number> {
  const [row] = await platform.sql(
    `select sum(n_tup_ins + n_tup_upd + n_tup_del)::int as n from pg_stat_user_tables where relname not in ('usage_counters')`,
  )
  return Number(row?.['n'])
}

async function warmCreates(report: Report): Promise<number[]> {
  const platform = await startDockerPlatform({ deleteGraceSeconds: 0, docker: { warm_stacks: 3 } })
  try {
    const times: number[] = []
    for (let n = 0; n < tenants; n++) {
      await untilWarm(platform, 3, 120)
      const tenant = await created(platform, `warm-made-${n}`)
      times.push(tenant.milliseconds)
      await platform.call('DELETE', `/v1/tenants/${tenant.id}?purge=true`, undefined, { prefer: 'wait=60' })
    }
    report(`creates from the warm pool: ${shown(times)}`)
    return times
  } finally {
    await platform.stop()
  }
}

function shown(values: readonly number[]): string {
  return `p50 ${median(values).toFixed(0)}, p95 ${quantile(values, 0.95).toFixed(0)}, max ${Math.max(...values).toFixed(0)} ms`
}
