// Concurrent writes to one tenant wait for each other, writes to others do not, and no shared name or capacity is given twice.
import pg from 'pg'
import t, { type Test } from 'tap'
import type { TenantBody } from '#control-plane/tenants/index.ts'
import { isError, newName, startApi, type ApiResponse, type CreatedTenant } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'

const api = await startApi(t, { control: false })

const body = (name = newName()) => ({ name, plan: 'Free', region: 'local' })
const create = (name?: string) => api.call('POST', '/v1/tenants', { body: body(name) })
const pathOf = ({ tenant_id: id }: TenantBody) => `/v1/tenants/${id}`
const statuses = (responses: readonly ApiResponse[]) => responses.map(({ status }) => status).sort((a, b) => a - b)

/** Creates a tenant with no open operation, as after a reconciliation. */
async function settled(name?: string): Promise<CreatedTenant> {
  const tenant = (await create(name)).body as CreatedTenant
  await settle(tenant)
  return tenant
}
async function settle({ tenant_id: id }: TenantBody): Promise<void> {
  await api.sql("update operations set state = 'succeeded' where tenant_id = $1", [id])
  await api.sql("update tenants set status = 'ready', observed_generation = generation where id = $1", [id])
}

/** Holds the locks of the statement until the returned function is called, or the test ends. */
async function hold(t: Test, statement: string, values: unknown[] = []): Promise<() => Promise<void>> {
  const holder = new pg.Client({ connectionString: api.controlUrl })
  await holder.connect()
  await holder.query('begin')
  await holder.query(statement, values)
  let release = async () => {
    release = () => Promise.resolve()
    await holder.query('rollback')
    await holder.end()
  }
  t.teardown(() => release())
  return () => release()
}

/** Waits until `count` of the control plane's sessions wait for a lock. */
const untilWaiting = (count: number) =>
  until(
    async () =>
      (
        await api.sql(
          "select 1 from pg_stat_activity where application_name = 'tenantry-control-plane' and wait_event_type = 'Lock'",
        )
      ).length === count,
    `${count} sessions wait`,
  )

const verify = async () => (await api.call('GET', '/v1/audit/verify')).body

t.test('writes to other tenants continue while a write to one tenant waits', async (t) => {
  const [held, other] = [await settled(), await settled()]
  const release = await hold(t, 'select 1 from tenants where id = $1 for update', [held.tenant_id])
  const finished: string[] = []
  const recordFinish = async (name: string, call: Promise<ApiResponse>) => {
    const result = await call
    finished.push(name)
    return result
  }
  const first = recordFinish('change', api.call('PATCH', pathOf(held), { body: { plan: 'Pro' } }))
  await untilWaiting(1)
  const second = recordFinish('delete', api.call('DELETE', pathOf(held)))
  await untilWaiting(2)

  t.same((await api.call('PATCH', pathOf(other), { body: { plan: 'Pro' } })).status, 200, 'a change of another tenant')
  t.same((await create()).status, 201, 'a creation')
  t.same((await api.call('DELETE', pathOf(other))).status, 202, 'a deletion of another tenant')
  await api.newKey('read')
  t.same((await api.call('PATCH', pathOf(held), { body: { plan: 'Gold' } })).status, 400, 'a rejected change')
  t.match(await verify(), { whole: true }, 'the audit log is valid meanwhile')
  t.same(finished, [], 'both writes to the locked tenant wait')

  await release()
  t.match(await first, { status: 200, body: { plan: 'Pro', generation: 2 } })
  t.match(await second, { status: 202, body: { status: 'deleting', generation: 3 } }, 'the second write sees the first')
  t.match((await api.call('GET', '/v1/audit?limit=2')).body, {
    entries: [
      { action: 'tenant.delete', target: held.tenant_id },
      { action: 'tenant.update', target: held.tenant_id },
    ],
  })
  t.match(await verify(), { whole: true })
})

t.test('of concurrent changes of one tenant, each later one sees the earlier', async (t) => {
  const tenant = await settled()
  const change = () => api.call('PATCH', pathOf(tenant), { body: { suspended: true }, headers: { 'if-match': '"1"' } })
  t.same(statuses(await Promise.all([change(), change(), change()])), [200, 412, 412])
  t.match(await api.tenant(tenant.tenant_id), { generation: 2 })
})

t.test('of two creations with one name, the later waits for the earlier', async (t) => {
  const name = newName()
  const before = await api.counts()
  const release = await hold(t, 'lock table operations in share mode')
  const both = [create(name), create(name)]
  await untilWaiting(2)
  await release()
  const responses = await Promise.all(both)
  t.same(statuses(responses), [201, 409])
  const [rejected] = responses.filter(({ status }) => status === 409)
  if (rejected !== undefined) isError(t, rejected, 409, 'NAME_TAKEN', name, 'the later creation')
  const after = await api.counts()
  for (const table of ['tenants', 'operations', 'audit_log'])
    t.same(after[table], (before[table] ?? 0) + 1, `one more in ${table}`)
})

t.test('a name that a failed creation held is free for the next creation', async (t) => {
  const name = newName()
  const release = await hold(
    t,
    'insert into tenants (id, name, plan_id, region_id, isolation) values ($1, $2, $3, $4, $5)',
    ['t_00000000000000000001', name, 'Free', 'local', 'schema-per-tenant'],
  )
  const waiting = create(name)
  await untilWaiting(1)
  await release()
  t.same((await waiting).status, 201)
})

t.test("two tenants that take each other's names are both rejected, and neither waits forever", async (t) => {
  for (let round = 0; round < 10; round++) {
    const [one, two] = [await settled(), await settled()]
    const responses = await Promise.all([
      api.call('PATCH', pathOf(one), { body: { name: two.name } }),
      api.call('PATCH', pathOf(two), { body: { name: one.name } }),
    ])
    t.same(statuses(responses), [409, 409])
    for (const response of responses) isError(t, response, 409, 'NAME_TAKEN', 'taken', 'the name of the other tenant')
  }
})

t.test('the remaining capacity of a shared database is given once, and one more database is opened', async (t) => {
  const [{ id, homes } = {}] = await api.sql(
    'select d.id, count(*)::int as homes from shared_databases d join tenants t on t.shared_database_id = d.id group by d.id',
  )
  await api.sql('update shared_databases set capacity = $2 where id = $1', [id, Number(homes) + 3])
  t.same(
    statuses(await Promise.all(Array.from({ length: 8 }, () => create()))),
    Array.from({ length: 8 }, () => 201),
  )
  t.same(
    await api.sql(
      `select d.id, count(*)::int as homes from shared_databases d join tenants t on t.shared_database_id = d.id
       group by d.id order by d.created_at`,
    ),
    [
      { id, homes: Number(homes) + 3 },
      { id: 'local-2', homes: 5 },
    ],
  )
})

t.test(
  'concurrent creations, changes and deletions of many tenants leave the same rows as sequential ones',
  async (t) => {
    const names = Array.from({ length: 40 }, () => newName('many'))
    const lifecycles = names.map(async (name, nth) => {
      const tenant = (await create(name)).body as CreatedTenant
      await settle(tenant)
      const changed = await api.call('PATCH', pathOf(tenant), { body: { name: `${name}-${nth}` } })
      const deleted = await api.call('DELETE', pathOf(tenant))
      return [changed.status, deleted.status, (deleted.body as TenantBody).generation]
    })
    let watched = 0
    const all = Promise.all(lifecycles)
    const progress = { isOver: false }
    void all.finally(() => (progress.isOver = true))
    while (!progress.isOver) {
      t.match(await verify(), { whole: true, broken_at: null })
      watched++
    }
    t.same(
      await all,
      names.map(() => [200, 202, 3]),
    )
    t.ok(watched > 1, `verified ${watched} times meanwhile`)
    t.same(
      await api.sql(
        `select action, count(*)::int as count from audit_log where target in (select id from tenants where name like 'many-%')
       group by action order by action`,
      ),
      ['tenant.create', 'tenant.delete', 'tenant.update'].map((action) => ({ action, count: 40 })),
    )
    t.same(
      await api.sql('select 1 from audit_log a join audit_log b on b.seq > a.seq and b.previous = a.previous'),
      [],
      'no entry has two successors',
    )
  },
)

t.test('of two admin keys that are revoked at the same time, one stays', async (t) => {
  const keys = (await api.call('GET', '/v1/keys')).body as { keys: { id: string; scope: string; name: string }[] }
  const [first] = keys.keys.filter(({ scope }) => scope === 'admin')
  const other = await api.newKey('admin')
  const revoke = (id: string) => api.call('DELETE', `/v1/keys/${id}`)
  const responses = await Promise.all([revoke(first?.id ?? ''), revoke(other.id)])
  t.same(statuses(responses), [200, 409])
  const [rejected] = responses.filter(({ status }) => status === 409)
  t.match(rejected?.body, { code: 'LAST_ADMIN_KEY' })
})

t.test('no call failed with an internal error', (t) => {
  t.same(
    api.log.filter((line) => line.includes('The request failed.')),
    [],
  )
  t.end()
})
