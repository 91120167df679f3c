// The hosts over the API: measured by the leader, with the age of the measurement, and what is known of one that does not respond.
import { totalmem, availableParallelism, hostname } from 'node:os'
import t from 'tap'
import { createHostStore } from '#control-plane/hosts/store.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { LeadershipLost } from '#control-plane/platform/leadership-lost.ts'
import { isError, newName, startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'

interface HostBody {
  id: string
  name: string | null
  state: string
  error: string | null
  last_seen_at: string | null
  tenants: { total: number; dedicated: number }
  cpu_millis: Record<string, number | null>
  memory_bytes: Record<string, number | null>
  disk_bytes: Record<string, number | null>
}

const api = await startApi(t, { cloud: true, jobs: true, control: false })
let controller = api.startController()
api.engine.host = { memoryBytes: 8 * 2 ** 30, cpus: 4, disk: undefined }
const output =
  'MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n--\ncpu 100 0 0 500 0 0 0 0 0 0\n--\ncpu 125 0 0 575 0 0 0 0 0 0\n--\n' +
  'Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/sda1 2000 500 1500 25% /var/lib/postgresql\n'
api.engine.run = () => Promise.resolve({ code: 0, stdout: output, stderr: '' })

const hosts = async () => ((await api.call('GET', '/v1/hosts')).body as { hosts: HostBody[] }).hosts
const host = async (id: string) => (await api.call('GET', `/v1/hosts/${id}`)).body as HostBody
/** Waits for a measurement. A new leader measures at once, instead of after the interval. */
async function measuredAfter(id: string, holds: (found: HostBody) => boolean): Promise<HostBody> {
  await controller.stop()
  controller = api.startController()
  await until(async () => holds(await host(id)), `the measurement of ${id}`)
  return host(id)
}

t.test('The machine is the host of a region whose parts are processes', async (t) => {
  const found = await measuredAfter('local', ({ last_seen_at: at }) => at !== null)
  t.match(found, { id: 'local', name: hostname(), state: 'reachable', error: null })
  t.equal(found.memory_bytes['total'], totalmem())
  t.equal(found.cpu_millis['total'], availableParallelism() * 1000)
  const [free, cpu] = [found.memory_bytes['free'] ?? 0, found.cpu_millis['free'] ?? -1]
  t.ok(free > 0 && free < totalmem(), String(free))
  t.ok(cpu >= 0 && cpu <= availableParallelism() * 1000, String(cpu))
  t.ok(Date.now() - Date.parse(found.last_seen_at ?? '') < 60_000)
})

t.test('A host with an engine shows what it has, what tenants reserve, and what is free', async (t) => {
  const { resources } = (await api.create(newName(), { plan: 'Pro', region: 'cloud' })) as unknown as {
    resources: Record<'postgres' | 'runtime', { memory_bytes: number; cpu_millis: number }>
  }
  const memory = resources.postgres.memory_bytes + resources.runtime.memory_bytes
  const found = await measuredAfter('cloud', ({ memory_bytes: now }) => now['reserved_by_tenants'] === memory)
  t.match(found, { id: 'cloud', engine: 'docker', state: 'reachable', tenants: { total: 1, dedicated: 1 } })
  t.match(found.memory_bytes, { total: 8 * 2 ** 30, free: 4 * 2 ** 30, reserved_by_tenants: memory })
  const own = [...api.engine.stacks.entries()].find(([id]) => id.startsWith('region-'))?.[1].containers ?? []
  t.equal(
    found.memory_bytes['reserved_by_platform'],
    own.reduce((sum, { resources: limits }) => sum + limits.memoryBytes, 0),
    "the region's own services",
  )
  t.match(found.cpu_millis, {
    total: 4000,
    free: 3000,
    reserved_by_tenants: resources.postgres.cpu_millis + resources.runtime.cpu_millis,
  })
  t.match(found.disk_bytes, { total: 2_048_000, free: 1_536_000, tenants_without_quota: 0 })
  t.ok((found.disk_bytes['reserved_by_tenants'] ?? 0) > 1e9, 'the quotas of its plan')
  t.same(
    (await hosts()).map(({ id }) => id),
    ['local', 'cloud'],
  )
})

t.test('A host that does not respond keeps its last measurement and its time', async (t) => {
  const before = await host('cloud')
  api.engine.isReachable = false
  const found = await measuredAfter('cloud', ({ state }) => state === 'unreachable')
  t.match(found, { error: 'the engine cannot be reached', last_seen_at: /^20/, memory_bytes: before.memory_bytes })
  api.engine.isReachable = true
  await measuredAfter('cloud', ({ state, error }) => state === 'reachable' && error === null)
})

t.test('A measurement that does not differ materially is not written, and its time is reported', async (t) => {
  await controller.stop()
  const database = openDatabase(api.controlUrl)
  t.teardown(() => database.$disconnect())
  let time = Date.now()
  const store = createHostStore(database, () => new Date(time))
  const row = async () =>
    (await api.sql("select xmin::text as version, measured_at from hosts where region_id = 'cloud'"))[0]
  const epoch = BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
  const measurement = (await store.records()).find(({ regionId }) => regionId === 'cloud')?.measurement
  if (measurement === undefined) throw new Error('The host was not measured.')
  await store.record('cloud', '', measurement, epoch)
  const written = await row()
  time += 15_000
  await store.record('cloud', '', measurement, epoch)
  t.same(await row(), written, 'nothing is written')
  const found = async () => (await store.records()).find(({ regionId }) => regionId === 'cloud')
  t.same(await found(), { regionId: 'cloud', hostId: '', measuredAt: new Date(time), measurement, error: undefined })
  await store.record('cloud', '', { ...measurement, warnings: ['no swap limit'] }, epoch)
  t.match(await row(), { measured_at: new Date(time) }, 'a change is written')
  time += 15_000
  await store.record('cloud', '', 'no response', epoch)
  t.match(await found(), { measuredAt: new Date(time - 15_000), error: 'no response' })
  await t.rejects(
    store.record('cloud', '', measurement, epoch - 1n),
    new LeadershipLost('Another control plane leads.'),
  )
  store.evict()
  t.match(await found(), { measuredAt: new Date(time - 15_000), error: 'no response' }, 'what is stored remains')
  controller = api.startController()
})

t.test('Keys see the hosts that they may, and unknown hosts are rejected', async (t) => {
  isError(t, await api.call('GET', '/v1/hosts/moon'), 404, 'HOST_NOT_FOUND', 'region', 'no such region')
  t.equal((await api.call('GET', '/v1/hosts', { key: api.keys.read })).status, 200)
  isError(t, await api.call('GET', '/v1/hosts', { key: api.keys.billing }), 403, 'WRONG_SCOPE', '', 'a billing key')
  const limited = await api.call('POST', '/v1/keys', { body: { name: 'cloud', scope: 'read', region: 'cloud' } })
  const { key } = limited.body as { key: string }
  const seen = (await api.call('GET', '/v1/hosts', { key })).body as { hosts: HostBody[] }
  t.same(
    seen.hosts.map(({ id }) => id),
    ['cloud'],
  )
  isError(t, await api.call('GET', '/v1/hosts/local', { key }), 404, 'NOT_FOUND', 'local', 'another region')
})
