// Plan periods: each way to create, change and delete a tenant leaves the periods that prices and quotas use.
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createWarmPoolStore } from '#control-plane/warm-pool/store.ts'
import { createPlanHistory } from '#control-plane/plans/store-history.ts'
import { warmName } from '#control-plane/tenants/names.ts'
import { newSecrets } from '#control-plane/tenants/new-secrets.ts'
import { newName, startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'

const api = await startApi(t, { cloud: true })
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
const history = createPlanHistory(database)

const ever = [new Date(0), new Date('2100-01-01')] as const
const periods = (id: string) => history.periods(id, ...ever)
const change = async (id: string, body: object) => {
  const response = await api.call('PATCH', `/v1/tenants/${id}`, { body, headers: { prefer: 'wait=30' } })
  if (response.status !== 200) throw new Error(response.text)
  return new Date((await api.tenant(id)).updated_at)
}

t.test('A tenant has its plan from its creation on, and the next one from the change on', async (t) => {
  const { tenant_id: id, created_at: created } = await api.create()
  t.same(await periods(id), [{ plan: 'Free', since: new Date(created), until: ever[1] }])
  api.clock.ahead += 60_000
  await change(id, { plan: 'Pro' })
  const [first, second, ...more] = await periods(id)
  t.same([first?.plan, second?.plan, more.length], ['Free', 'Pro', 0])
  t.same(first?.until, second?.since, 'without a gap')
  t.ok(Number(second?.since) - Number(new Date(created)) >= 60_000)
})

t.test('Other changes, such as suspensions, begin no period', async (t) => {
  const { tenant_id: id } = await api.create()
  await change(id, { suspended: true })
  await change(id, { suspended: false })
  await change(id, { name: newName() })
  await change(id, { plan: 'Free' })
  t.same(
    (await periods(id)).map(({ plan }) => plan),
    ['Free'],
  )
})

t.test('A move to a region with a stronger isolation begins a period', async (t) => {
  const { tenant_id: id } = await api.create()
  await change(id, { plan: 'Pro' })
  t.same(
    (await periods(id)).map(({ weakerIsolation }) => weakerIsolation),
    [undefined, undefined],
  )
  await api.sql(`update tenants set region_id = 'cloud', updated_at = updated_at + interval '1 minute' where id = $1`, [
    id,
  ])
  const [, before, after] = await periods(id)
  t.same(after?.since, before?.until, 'without a gap')
  t.match(after, { plan: 'Pro', weakerIsolation: 'schema-per-tenant' })
  await api.sql(`update tenants set region_id = 'local' where id = $1`, [id])
})

t.test('An undeleted tenant has its plan again from then on, and none while it was deleted', async (t) => {
  const { tenant_id: id, created_at: created } = await api.create()
  const remove = () => api.call('DELETE', `/v1/tenants/${id}`, { headers: { prefer: 'wait=30' } })
  const undelete = () => api.call('POST', `/v1/tenants/${id}/undelete`, { headers: { prefer: 'wait=30' } })
  await remove()
  api.clock.ahead += 60_000
  await undelete()
  const [first, second, ...more] = await periods(id)
  t.same([first?.plan, second?.plan, more.length], ['Free', 'Free', 0])
  t.same([first?.since, second?.until], [new Date(created), ever[1]])
  t.ok(Number(second?.since) - Number(first?.until) >= 60_000)
  await remove()
  const ended = (await periods(id)).at(-1)
  t.not(ended?.until, ever[1], 'a second deletion ends it again')
})

t.test('Of two changes at one instant the last counts, and a clock that steps back causes no overlap', async (t) => {
  const { tenant_id: id } = await api.create()
  const at = new Date(Date.now() + 3_600_000)
  const set = (plan: string, updated: Date) =>
    api.sql('update tenants set plan_id = $2, updated_at = $3 where id = $1', [id, plan, updated])
  await set('Pro', at)
  await set('Enterprise', at)
  t.same((await periods(id)).map(({ plan, since }) => [plan, since]).slice(1), [['Enterprise', at]])
  await set('Free', new Date(at.getTime() - 1_800_000))
  await set('Pro', new Date(at.getTime() + 5))
  const all = await periods(id)
  t.same(
    all.map(({ plan }) => plan),
    ['Free', 'Free', 'Pro'],
  )
  for (const [nth, { since, until }] of all.entries()) {
    t.ok(since < until)
    t.same(since, nth === 0 ? since : all[nth - 1]?.until)
  }
})

t.test('A request for deletion ends the last period, and the purge leaves the periods', async (t) => {
  const { tenant_id: id } = await api.create()
  await api.call('DELETE', `/v1/tenants/${id}`)
  const [{ requested } = {}] = await api.sql('select delete_requested_at as requested from tenants where id = $1', [id])
  const [period] = await periods(id)
  t.same(period?.until, requested)
  await api.call('DELETE', `/v1/tenants/${id}?purge=true`)
  await until(async () => (await api.sql('select 1 from tenants where id = $1', [id])).length === 0, 'its purge')
  t.same(await periods(id), [period])
})

t.test('A warm tenant has no period before it is claimed, nor when it is removed unclaimed', async (t) => {
  const epoch = async () => BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
  await until(async () => (await epoch()) > 0n, 'a leader')
  const store = createWarmPoolStore(database, api.seal, () => new Date())
  const makeWarm = async () => {
    const id = `t_${randomBytes(10).toString('hex')}`
    await store.addWarm(
      {
        id,
        name: warmName(id),
        plan: 'Pro',
        region: 'cloud',
        isolation: 'database-per-tenant',
        secrets: newSecrets(),
      },
      await epoch(),
    )
    await until(
      async () => (await api.sql('select status from tenants where id = $1', [id]))[0]?.['status'] === 'warm',
      'a warm tenant',
    )
    return id
  }
  const removed = await makeWarm()
  await store.removeWarm(removed, await epoch())
  const claimed = await makeWarm()
  t.same(await periods(claimed), [])
  const { tenant_id: id, created_at: created } = await api.create(newName(), {
    plan: 'Enterprise',
    region: 'cloud',
    isolation: 'database-per-tenant',
  })
  t.same(id, claimed)
  t.same(await periods(id), [{ plan: 'Enterprise', since: new Date(created), until: ever[1] }])
  t.same(await periods(removed), [])
})

t.test('Periods are cut to the requested time, and tenants without any in it are not listed', async (t) => {
  const { tenant_id: id } = await api.create()
  const day = (text: string) => new Date(`${text}T00:00:00Z`)
  await api.sql('delete from plan_periods where tenant_id = $1', [id])
  const rows: [string, string | null, string][] = [
    ['2020-01-10', '2020-02-10', 'Free'],
    ['2020-02-10', '2020-03-01', 'Pro'],
    ['2020-04-05', null, 'Free'],
  ]
  for (const [since, end, plan] of rows)
    await api.sql('insert into plan_periods (tenant_id, since, until, plan_id) values ($1, $2, $3, $4)', [
      id,
      day(since),
      end === null ? null : day(end),
      plan,
    ])
  t.same(await history.periods(id, day('2020-02-01'), day('2020-03-01')), [
    { plan: 'Free', since: day('2020-02-01'), until: day('2020-02-10') },
    { plan: 'Pro', since: day('2020-02-10'), until: day('2020-03-01') },
  ])
  t.same(await history.periods(id, day('2020-03-01'), day('2020-04-05')), [])
  t.same(await history.periods(id, day('2020-05-01'), day('2020-06-01')), [
    { plan: 'Free', since: day('2020-05-01'), until: day('2020-06-01') },
  ])
  t.same(await history.tenants(day('2020-01-01'), day('2020-01-10'), '', 10), [])
  t.same(await history.tenants(day('2020-01-01'), day('2020-01-11'), '', 10), [id])
  t.same(await history.tenants(day('2020-01-01'), day('2020-01-11'), id, 10), [])
})
