// Of two control planes on one database, one leads. When it loses its connection, the other takes over, and no work is done
// twice or lost.
import t from 'tap'
import { LeadershipLost } from '#control-plane/platform/leadership-lost.ts'
import { effort } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { newName, startApi, type CreatedTenant, type TestController } from '#test/support/control-plane/api.ts'

const api = await startApi(t, { control: false })
const controllers = [api.startController(), api.startController()]
const epochs = () => controllers.flatMap((controller) => controller.epochs.map(Number)).sort((a, b) => a - b)
const storedEpoch = async () => Number((await api.sql('select epoch from installation'))[0]?.['epoch'])
const newest = () => controllers.find((controller) => Number(controller.epochs.at(-1) ?? 0) === epochs().at(-1))

/** Returns the process IDs of the connections that hold the leader's lock, or that wait for it. */
async function leaders(granted: boolean): Promise<number[]> {
  const rows = await api.sql(
    `select pid from pg_stat_activity where application_name = 'tenantry-leader'
     and $1 = exists (select from pg_locks where pg_locks.pid = pg_stat_activity.pid and locktype = 'advisory' and granted)`,
    [granted],
  )
  return rows.map(({ pid }) => Number(pid))
}

async function cutOffLeader(): Promise<void> {
  const [pid] = await leaders(true)
  await api.sql('select pg_terminate_backend($1)', [pid])
}

const create = async () => {
  const response = await api.call('POST', '/v1/tenants', { body: { name: newName(), plan: 'Free', region: 'local' } })
  if (response.status !== 201) throw new Error(response.text)
  return (response.body as CreatedTenant).tenant_id
}

const allReady = async () =>
  (await api.sql("select 1 from tenants where status <> 'ready' or observed_generation <> generation")).length === 0

t.test('one control plane leads, and the other waits', async (t) => {
  await until(
    async () => (await leaders(true)).length === 1 && (await leaders(false)).length === 1,
    'one leader and one that waits',
  )
  await until(() => epochs().length === 1, 'the first epoch')
  t.same(epochs(), [await storedEpoch()])
  const tenant = await api.create()
  t.same(tenant.status, 'ready')
  t.same(epochs().length, 1, 'the other control plane has not led')
})

t.test('when the leader loses its connection during its work, the other takes over and completes it', async (t) => {
  for (let round = 0; round < effort({ small: 1, full: 20 }); round++) {
    const before = newest()
    const oldEpoch = before?.epochs.at(-1) ?? 0n
    // No tenant becomes ready while the region does not respond, so the leader loses its connection while it works.
    api.region.agrees = false
    const ids = await Promise.all(Array.from({ length: 10 }, create))
    await until(
      async () => (await api.sql("select 1 from operations where state = 'running'")).length > 0,
      'work in progress',
    )
    await cutOffLeader()
    ids.push(...(await Promise.all(Array.from({ length: 10 }, create))))
    await until(() => newest() !== before, 'a new leader')
    t.ok((newest()?.epochs.at(-1) ?? 0n) > oldEpoch, 'its epoch is higher')
    api.region.agrees = true
    await until(allReady, 'readiness of all tenants')

    const [tenantId = ''] = ids
    // Times are left out, because they change with each check of the new leader.
    const stored = () =>
      api.sql(
        `select desired, status, reason, home_version, route_phase, generation, observed_generation from tenants where id = $1
         union all select kind, state, error, step, null, generation, null from operations where tenant_id = $1`,
        [tenantId],
      )
    const operationId = String((await api.sql('select id from operations where tenant_id = $1', [tenantId]))[0]?.['id'])
    const unchanged = await stored()
    const store = api.reconcileStore
    const observed = {
      generation: 1,
      status: 'failed' as const,
      reason: 'old',
      conditions: [],
      operation: { id: operationId, error: 'old' },
    }
    for (const [what, write] of Object.entries({
      beginOperation: () => store.beginOperation(operationId, oldEpoch),
      recordPublished: () => store.recordPublished(tenantId, { homeVersion: null, routePhase: 'deleted' }, oldEpoch),
      recordObserved: () => store.recordObserved(tenantId, observed, oldEpoch),
      beginPurge: () => store.beginPurge(tenantId, 1, oldEpoch),
      removeTenant: () => store.removeTenant(tenantId, oldEpoch),
    })) {
      const error: unknown = await write().then(
        () => undefined,
        (cause: unknown) => cause,
      )
      t.ok(error instanceof LeadershipLost, `${what} of the old leader is rejected`)
    }
    t.same(await stored(), unchanged, 'the rejected writes change nothing')
  }
  t.same(await storedEpoch(), epochs().at(-1))
  t.same(new Set(epochs()).size, epochs().length, 'no epoch is used twice')
})

t.test('every tenant has exactly one home, created by one operation', async (t) => {
  const tenants = (await api.sql('select id from tenants order by id')).map(({ id }) => String(id))
  t.ok(tenants.length > 20)
  const homesUrl = api.postgres.url('tenantry_homes_1')
  const homes = await query(
    homesUrl,
    "select nspname::text as name from pg_namespace where nspname like 't\\_%' order by 1",
  )
  t.same(
    homes.map(({ name }) => name),
    tenants,
  )
  const databases = await query(
    api.postgres.url('postgres'),
    "select datname::text as name from pg_database where datname like 'tenantry%'",
  )
  t.same(databases, [{ name: 'tenantry_homes_1' }])
  const roles = await api.sql(
    "select left(rolname, 22) as id, count(*)::int as count from pg_roles where rolname like 't\\_%' group by 1 order by 1",
  )
  t.same(
    roles,
    tenants.map((id) => ({ id, count: 5 })),
  )
  t.same(
    await api.sql('select tenant_id as id, state, count(*)::int as count from operations group by 1, 2 order by 1'),
    tenants.map((id) => ({ id, state: 'succeeded', count: 1 })),
  )
  for (const id of tenants) {
    const [row] = await query(
      homesUrl,
      `select count(*)::int as count, count(distinct version)::int as versions from "${id}".home_migrations`,
    )
    t.ok(Number(row?.['count']) > 0 && row?.['count'] === row?.['versions'], `${id} is migrated once`)
  }
})

t.test('a leader that stops passes the lead on; a waiting control plane stops at once', async (t) => {
  const leader = newest() as TestController
  const count = epochs().length
  await leader.stop()
  await until(() => epochs().length === count + 1, 'the lead of the other control plane')
  t.not(newest(), leader)
  t.same((await api.create()).status, 'ready')
  const third = api.startController()
  await until(async () => (await leaders(false)).length === 1, 'a third control plane that waits')
  await third.stop()
  t.same(third.epochs, [])
  t.same((await leaders(true)).length, 1)
})
