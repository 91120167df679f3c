// The SQL login of a suspended or deleted tenant is closed, its sessions end, and a resumed tenant can log in again.
import pg from 'pg'
import t, { type Test } from 'tap'
import { startApi, type CreatedTenant } from '#test/support/control-plane/api.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

const api = await startApi(t, { jobs: true })

async function connect(t: Test, { database_url: url }: CreatedTenant): Promise<{ ended: Promise<void> }> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve()))
  await client.connect()
  t.teardown(() => client.end().catch(() => undefined))
  return { ended }
}

const change = async (t: Test, tenant: CreatedTenant, method: string, body?: object) => {
  const response = await api.call(method, `/v1/tenants/${tenant.tenant_id}`, {
    ...(body === undefined ? {} : { body }),
    headers: { prefer: 'wait=30' },
  })
  t.ok(response.status === 200 || response.status === 202, response.text)
}

t.test(
  'A suspension ends the SQL sessions and closes the login; a resume opens it',
  { timeout: 120_000 },
  async (t) => {
    const [tenant, neighbour] = [await api.create(), await api.create()]
    const [own, other] = [await connect(t, tenant), await connect(t, neighbour)]
    let neighbourEnded = false
    void other.ended.then(() => (neighbourEnded = true))
    await change(t, tenant, 'PATCH', { suspended: true })
    await own.ended
    await t.rejects(connect(t, tenant), { code: '28000' })

    // What opens it from outside is corrected, and the session that began meanwhile ends.
    await query(api.postgres.url('postgres'), `alter role ${tenant.tenant_id}_admin login`)
    await connect(t, tenant).then(
      ({ ended }) => ended,
      () => undefined,
    )
    await until(() =>
      connect(t, tenant).then(
        () => false,
        () => true,
      ),
    )
    await change(t, tenant, 'PATCH', { suspended: false })
    await connect(t, tenant)
    t.notOk(neighbourEnded, "the neighbour's session continues")
  },
)

t.test('A deleted tenant cannot log in during its grace time', { timeout: 120_000 }, async (t) => {
  const tenant = await api.create()
  const own = await connect(t, tenant)
  await change(t, tenant, 'DELETE')
  await own.ended
  await t.rejects(connect(t, tenant), { code: '28000' })
  t.equal((await api.tenant(tenant.tenant_id)).status, 'deleting')
})
