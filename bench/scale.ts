// A control plane and a gateway with many tenants: start, memory, sweeps, changes, creates and first requests, compared with
// the same platform when it had few.
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { internalPaths, internalTokenHeader } from '@tenantry/contract'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createSeal } from '#control-plane/platform/seal.ts'
import { createReconcileStore } from '#control-plane/reconcile/index.ts'
import { median, quantile, type Figures, type Report } from '#bench/figures.ts'
import { cpuMicroseconds } from '#bench/support/cpu-time.ts'
import { residentBytes } from '#bench/support/memory.ts'
import { addTenants, openScaleScene, untilSynced, type ScaleScene } from '#bench/support/scale-scene.ts'

const creates = 20
const changes = 100
const idleSeconds = 60
const megabyte = 1_000_000

export async function figures(report: Report): Promise<Figures> {
  const count = Number(process.env['TENANTRY_BENCH_TENANTS'] ?? 100_000)
  const scene = await openScaleScene()
  try {
    await untilSynced(scene, performance.now())
    const few = await measureCreates(scene, 'few')
    report(`creates with few tenants: p50 ${few.p50.toFixed(0)} ms, p99 ${few.p99.toFixed(0)} ms`)
    await addTenants(scene, few.tenantId, count, report)
    await restart(scene)
    // The second start finds what the parts have stored at the first.
    await untilSynced(scene, performance.now())
    await restart(scene)
    return await measure(scene, few, report)
  } finally {
    await scene.close()
  }
}

async function measure(scene: ScaleScene, few: Creates, report: Report): Promise<Figures> {
  const { platform } = scene
  const begin = performance.now()
  const stopped = stopControlPlane(scene)
  await Promise.all([stopped, platform.killGateway()])
  const from = performance.now()
  report(`stopped in ${(from - begin).toFixed(0)} ms`)
  const others = Promise.all([platform.startGateway(), platform.restartRuntime()])
  scene.controlPlane = await platform.startControlPlane()
  const ready = performance.now() - from
  await others
  const first = measureFirstRequest(scene, few, from)
  const synced = await untilSynced(scene, from)
  report(`ready ${ready.toFixed(0)}, gateway ${synced.gateway.toFixed(0)}, runtime ${synced.runtime.toFixed(0)} ms`)
  report(`first request ${(await first).toFixed(0)} ms after the start`)
  const many = await measureCreates(scene, 'many')
  report(`creates: p50 ${many.p50.toFixed(0)} ms, p99 ${many.p99.toFixed(0)} ms`)
  const leased = await untilLeased(scene, from)
  report(`leases of all tenants after ${leased.toFixed(0)} ms`)
  const visible = await measureChanges(scene)
  report(`changes visible: p50 ${quantile(visible, 0.5).toFixed(0)} ms, p99 ${quantile(visible, 0.99).toFixed(0)} ms`)
  const settled = await measureCreates(scene, 'settled')
  report(`creates later: p50 ${settled.p50.toFixed(0)} ms, p99 ${settled.p99.toFixed(0)} ms`)
  const sweeps = await measureSweeps(scene)
  report(`sweeps: ${sweeps.map((ms) => ms.toFixed(0)).join(', ')} ms`)
  const idle = await measureIdle(scene, report)
  report(`in ${idleSeconds} s: ${idle.writes} rows written, ${idle.cpu.toFixed(1)} s of processor time`)
  const [controlPlane, gateway] = await Promise.all(
    [scene.controlPlane, platform.gateway()].map(
      async ({ process: { pid } }) => (await residentBytes(pid ?? 0)) / megabyte,
    ),
  )
  return {
    control_ready_ms: { value: ready, unit: 'ms', target: '≤ 5,000' },
    gateway_synced_ms: { value: synced.gateway, unit: 'ms', target: 'stated' },
    runtime_synced_ms: { value: synced.runtime, unit: 'ms', target: 'stated' },
    first_request_ms: { value: await first, unit: 'ms', target: 'stated' },
    leased_ms: { value: leased, unit: 'ms', target: 'stated' },
    control_mb: { value: controlPlane ?? 0, unit: 'MB', target: 'stated' },
    gateway_mb: { value: gateway ?? 0, unit: 'MB', target: '≤ 300' },
    change_visible_p50_ms: { value: quantile(visible, 0.5), unit: 'ms', target: 'stated' },
    change_visible_p99_ms: { value: quantile(visible, 0.99), unit: 'ms', target: '≤ 200' },
    create_starting_p50_ms: { value: many.p50, unit: 'ms', floor: few.p50, target: 'stated' },
    create_p50_ms: { value: settled.p50, unit: 'ms', floor: few.p50, target: '≤ 1 of the floor' },
    create_p99_ms: { value: settled.p99, unit: 'ms', floor: few.p99, target: '≤ 1 of the floor' },
    sweep_ms: { value: median(sweeps), unit: 'ms', target: '≤ 1,000' },
    idle_writes: { value: idle.writes, unit: 'rows in a minute', target: '0' },
    idle_cpu_percent: { value: (idle.cpu / idleSeconds) * 100, unit: '% of a core', target: 'stated' },
  }
}

interface Creates {
  p50: number
  p99: number
  /** ID, name and secret key of the first tenant. */
  tenantId: string
  name: string
  key: string
}

/** Creates tenants, one a second, each until its own URL responds. */
async function measureCreates({ platform }: ScaleScene, prefix: string): Promise<Creates> {
  const times: number[] = []
  let first: Pick<Creates, 'tenantId' | 'name' | 'key'> | undefined
  for (let n = 0; n < creates; n++) {
    await sleep(1_000)
    const name = `${prefix}-${n}`
    const begin = performance.now()
    const { status, body } = await platform.call(
      'POST',
      '/v1/tenants',
      { name, plan: 'Free', region: 'local' },
      { prefer: 'wait=30' },
    )
    if (status !== 201) throw new Error(`create: ${status} ${JSON.stringify(body)}`)
    const { tenant_id: tenantId, keys } = body as { tenant_id: string; keys: { secret_key: string } }
    first ??= { tenantId, name, key: keys.secret_key }
    await requestOf(platform, name, keys.secret_key)
    times.push(performance.now() - begin)
  }
  if (first === undefined) throw new Error('No tenant was created.')
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99), ...first }
}

async function requestOf(platform: ScaleScene['platform'], name: string, key: string): Promise<void> {
  const response = await platform.tenantCall(name, 'GET', '/storage/v1/bucket', { key })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${name}: ${response.status} ${text}`)
}

/** Returns the milliseconds until a tenant's URL responds. */
async function measureFirstRequest({ platform }: ScaleScene, { name, key }: Creates, since: number): Promise<number> {
  for (;;) {
    const isServed = await requestOf(platform, name, key).then(
      () => true,
      () => false,
    )
    if (isServed) return performance.now() - since
    await sleep(20)
  }
}

async function stopControlPlane({ controlPlane }: ScaleScene): Promise<void> {
  controlPlane.process.kill('SIGTERM')
  await controlPlane.exited
}

async function restart(scene: ScaleScene): Promise<void> {
  await stopControlPlane(scene)
  scene.controlPlane = await scene.platform.startControlPlane()
}

/** Waits until the gateway has leases of all tenants. */
async function untilLeased({ control }: ScaleScene, since: number): Promise<number> {
  for (;;) {
    const { rows } = await control.query<{ missing: number }>(
      `select count(*)::int as missing from tenants t where not exists (
         select from request_leases l join lease_holders h using (source, boot)
         where l.tenant_id = t.id and h.latest and l.granted > l.used)`,
    )
    if (rows[0]?.missing === 0) return performance.now() - since
    await sleep(250)
  }
}

/**
 * Renames tenants that have homes, one after the other.
 * @returns the milliseconds from each response until gateway and runtime have the change
 */
async function measureChanges({ platform, control }: ScaleScene): Promise<number[]> {
  const { rows } = await control.query<{ id: string }>(
    `select id from tenants where name not like 'customer-%' and status = 'ready' and desired = 'active'`,
  )
  const token = (await readFile(platform.internalTokenFile, 'utf8')).trim()
  const generationAt = async (url: string, path: string): Promise<number> => {
    const response = await fetch(`${url}${path}`, { headers: { [internalTokenHeader]: token } })
    return ((await response.json()) as { generation: number }).generation
  }
  const times: number[] = []
  for (let n = 0; n < changes; n++) {
    const { id } = rows[n % rows.length] ?? { id: '' }
    const { status, body } = await platform.call('PATCH', `/v1/tenants/${id}`, { name: `renamed-${n}` })
    if (status >= 300) throw new Error(`rename: ${status} ${JSON.stringify(body)}`)
    const begin = performance.now()
    const { generation } = body as { generation: number }
    const seen = async (url: string, path: string) => {
      while ((await generationAt(url, path)) < generation) await sleep(2)
    }
    const { gateway, runtime } = platform.internalUrls
    await Promise.all([seen(gateway, internalPaths.route(id)), seen(runtime, internalPaths.tenantHealth(id))])
    times.push(performance.now() - begin)
  }
  return times
}

/** Returns the milliseconds of the query for the tenants that need work. */
async function measureSweeps({ platform }: ScaleScene): Promise<number[]> {
  const database = openDatabase(platform.postgres.url('control'))
  const seal = createSeal(Buffer.from(await readFile(platform.masterKeyFile, 'utf8'), 'base64'))
  const store = createReconcileStore(database, seal, () => new Date())
  const version = (await database.tenant.findFirst({ where: { homeVersion: { not: null } } }))?.homeVersion ?? ''
  const times: number[] = []
  for (let n = 0; n < 10; n++) {
    const begin = performance.now()
    const unsettled = await store.unsettled(version)
    times.push(performance.now() - begin)
    if (unsettled.length > 0) throw new Error(`${unsettled.length} tenants need work.`)
  }
  await database.$disconnect()
  return times
}

/** Returns what the control plane does in a minute without requests. */
async function measureIdle(scene: ScaleScene, report: Report): Promise<{ writes: number; cpu: number }> {
  const { control, controlPlane, platform } = scene
  const read = async () => {
    await sleep(2_000)
    const { rows } = await control.query<{ table: string; writes: number }>(
      `select relname as table, (n_tup_ins + n_tup_upd + n_tup_del)::int as writes from pg_stat_user_tables`,
    )
    const cpu = await Promise.all(
      [controlPlane, platform.gateway()].map(({ process }) => cpuMicroseconds(process.pid ?? 0)),
    )
    return {
      writes: new Map(rows.map(({ table, writes }) => [table, writes])),
      cpu: cpu.reduce((sum, one) => sum + one, 0) / 1e6,
    }
  }
  const before = await read()
  await sleep(idleSeconds * 1_000)
  const after = await read()
  // The gateway's call for leases each second is recorded there.
  const changed = [...after.writes]
    .map(([table, writes]) => ({ table, writes: writes - (before.writes.get(table) ?? 0) }))
    .filter(({ table, writes }) => writes > 0 && table !== 'lease_holders')
  report(changed.map(({ table, writes }) => `${table} ${writes}`).join(', '))
  return { writes: changed.reduce((sum, { writes }) => sum + writes, 0), cpu: after.cpu - before.cpu }
}
