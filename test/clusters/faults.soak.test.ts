// Each fault of a cluster in turn, at its primary, while a client writes numbers through the tenant's URL and a session in each
// member tries to write there. No acknowledged row is lost, none is doubled, and two members never accept writes at the same time.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { ensureEngine } from '#scripts/engine.ts'
import { docker } from '#test/reconcile/support/docker-client.ts'
import { clusterImages, startDockerPlatform } from '#test/support/docker-platform.ts'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { completeCluster, containerOf, crashPostgres, primaryOf, regionStackOf } from './platform-parts.ts'
import { startProbes } from './probes.ts'
import { putOnSmallDisk } from './small-disk.ts'
import { lostNothing, startWriter } from './writer.ts'

/** Faults that last for seconds. The others last for half a minute and more. */
const brief: readonly string[] = ['member killed', 'Postgres crashed', 'switchover']
/**
 * Returns the number of times that a fault occurs. Set `TENANTRY_ROUNDS` and `TENANTRY_FAULTS` (`a,b`) for a part of the full
 * run.
 */
const timesOf = (fault: string) =>
  Number(process.env['TENANTRY_ROUNDS'] ?? effort({ small: 1, full: brief.includes(fault) ? 100 : 20 }))
const writes = 20
const faultMilliseconds = 30_000
const run = promisify(execFile)
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

t.test('Faults of a cluster', { timeout: 28_800_000 }, async (t) => {
  const platform = await startDockerPlatform({ docker: { clusters: clusterImages }, deleteGraceSeconds: 0 })
  t.teardown(() => platform.stop())
  const signal = AbortSignal.timeout(28_790_000)
  const created = await platform.call('POST', '/v1/tenants', { name: 'acme', plan: 'Enterprise', region: 'local' })
  const tenant = { id: String(created.body['tenant_id']) }
  await platform.until(tenant.id, ({ status }) => status === 'ready', 240)

  const complete = () => completeCluster(platform, tenant, 180)
  const inContainer = (service: string) => containerOf(platform, tenant, service, signal)
  const inMember = async (service: string, script: string) =>
    platform.host.exec(await inContainer(service), ['bash', '-c', script], { signal })
  const etcd = async () => {
    const stack = { id: await regionStackOf(platform, signal) }
    return Promise.all([1, 2, 3].map((member) => containerOf(platform, stack, `etcd-${member}`, signal)))
  }
  /** Drops packets of a container, until the returned function is called. */
  const cut = async (container: string, ...filter: string[]) => {
    const pid = await docker('inspect', '--format', '{{.State.Pid}}', container)
    const rules = [['OUTPUT', '!', '-o', 'lo', ...filter], ...(filter.length === 0 ? [['INPUT', '!', '-i', 'lo']] : [])]
    const change = async (action: string) => {
      for (const rule of rules)
        await run('nsenter', ['-t', pid, '-n', 'iptables', action, ...rule, '-j', 'DROP']).catch((error: unknown) => {
          // The network is gone with the container's process.
          if (action === '-A') throw error
        })
    }
    await change('-A')
    return () => change('-D')
  }
  const during = async (begin: () => Promise<() => Promise<unknown>>) => {
    const end = await begin()
    await sleep(faultMilliseconds)
    await end()
  }
  const volumeOf = (member: string) => `tenantry-${tenant.id}-data-${member.slice(-1)}`
  const switchOver = async (to?: string) => {
    const path = `/v1/tenants/${tenant.id}/switchover`
    const body = to === undefined ? undefined : { to }
    const switched = await platform.call('POST', path, body, { prefer: 'wait=60' })
    t.match(switched.body, { operation: { state: 'succeeded' } }, JSON.stringify(switched.body))
  }
  /** Stops a member for a change of its volume, and waits until the cluster is complete. */
  const whileStopped = async <T>(member: string, change: () => Promise<T>): Promise<T> => {
    const container = await inContainer(member)
    await platform.stopControlPlanes()
    await docker('stop', container)
    const result = await change()
    await docker('start', container)
    await platform.startControlPlane()
    await complete()
    return result
  }
  /** Each fault is inflicted at the primary, and has ended when its function returns. */
  const faults: Record<string, (primary: string) => Promise<unknown>> = {
    'member killed': async (primary) => platform.kill(await inContainer(primary)),
    'Postgres crashed': async (primary) => platform.host.exec(await inContainer(primary), crashPostgres, { signal }),
    switchover: () => switchOver(),
    'Patroni frozen': (primary) =>
      during(async () => {
        await inMember(primary, 'pkill -STOP -x patroni')
        return () => inMember(primary, 'pkill -CONT -x patroni')
      }),
    'network of the primary cut': (primary) => during(async () => cut(await inContainer(primary))),
    'primary cut off from etcd': (primary) =>
      during(async () => cut(await inContainer(primary), '-p', 'tcp', '--dport', '2379')),
    'one member of etcd lost': () => during(async () => cut((await etcd())[0] ?? '')),
    'all of etcd lost': () =>
      during(async () => {
        const ends = await Promise.all((await etcd()).map((container) => cut(container)))
        return () => Promise.all(ends.map((end) => end()))
      }),
    'a replica diverged': async (primary) => {
      const restore = await cut(await inContainer(primary))
      // Rows that no replica has: the member must give them up to follow the next primary.
      await inMember(primary, `psql -X -q -h /run/postgresql -U postgres -d postgres ${localWrites}`)
      await until(async () => (await primaryOf(platform, tenant)) !== primary, 'another primary', 120_000)
      await restore()
    },
    'disk of the primary full': async (primary) => {
      const disk = await whileStopped(primary, () => putOnSmallDisk(t, volumeOf(primary)))
      if ((await primaryOf(platform, tenant)) !== primary) await switchOver(primary)
      await complete()
      await during(async () => {
        await disk.fill()
        // Postgres ends when the log needs another file.
        const next = `psql -X -q -h /run/postgresql -U postgres -d postgres ${nextLogFile}`
        await inMember(primary, `for file in {1..40}; do ${next} || exit 0; done; exit 1`)
        return () => disk.empty()
      })
      await complete()
      await whileStopped(primary, () => disk.remove())
    },
    'the volume of the primary deleted': async (primary) => {
      const owner = { installation: platform.installation, stack: tenant.id }
      await platform.stopControlPlanes()
      await platform.host.removeContainer(await inContainer(primary), owner, signal)
      await platform.host.removeVolume(volumeOf(primary), owner, signal)
      await platform.startControlPlane()
    },
    'the control plane unavailable': () =>
      during(async () => {
        await platform.stopControlPlanes()
        return () => platform.startControlPlane()
      }),
    'the Engine restarted': async () => (await ensureEngine()).restart(),
  }

  const writer = startWriter(String(created.body['database_url']))
  t.teardown(() => writer.stop())
  await writer.acknowledged(writes)
  await complete()
  const probes = startProbes(inContainer)
  t.teardown(() => probes.stop())
  const pauses = new Map<string, number[]>()
  const only = process.env['TENANTRY_FAULTS']?.split(',')
  const chosen = Object.entries(faults).filter(([fault]) => only?.includes(fault) !== false)
  const rounds = Math.max(...chosen.map(([fault]) => timesOf(fault)))
  for (let round = 0; round < rounds; round++) {
    for (const [fault, inflict] of chosen) {
      if (round >= timesOf(fault)) continue
      writer.takeMaxPause()
      const before = writer.count()
      await inflict(await primaryOf(platform, tenant))
      await writer.acknowledged(before + writes, 120)
      await complete()
      const pause = writer.takeMaxPause()
      pauses.set(fault, [...(pauses.get(fault) ?? []), pause])
      t.comment(`${fault}: ${pause} ms without writes`)
    }
  }
  for (const [fault, times] of pauses) {
    const sorted = times.sort((one, other) => one - other)
    const p95 = sorted[Math.ceil(sorted.length * 0.95) - 1] ?? NaN
    t.comment(`${fault}: ${sorted.length} times; ms without writes: p95 ${p95}; ${sorted.join(', ')}`)
  }
  const { written, overlaps } = await probes.stop()
  t.comment(`${written} writes in the members themselves`)
  t.ok(written > rounds, 'the sessions in the members wrote')
  t.same(overlaps, [], 'two members never accepted writes at the same time')
  lostNothing(t, await writer.stop())
})

/** Arguments of psql: rows that Postgres acknowledges before a replica has them. */
const localWrites = [
  'set synchronous_commit = local',
  'create table if not exists local_rows (n int)',
  'insert into local_rows select generate_series(1, 1000)',
]
  .map((statement) => `-c "${statement}"`)
  .join(' ')

/** Arguments of psql: begins another file of the log. */
const nextLogFile = `-v ON_ERROR_STOP=1 -c "select pg_logical_emit_message(true, 'file', '')" -c "select pg_switch_wal()"`
