// The password of a service's login that a tenant's code has changed is restored.
import t from 'tap'
import { startApi, type CreatedTenant } from '#test/support/control-plane/api.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

const api = await startApi(t, { jobs: true })

const logins = [
  { kind: 'runtime_password', suffix: '' },
  { kind: 'ddl_password', suffix: '_ddl' },
] as const

/** Returns the URL of a service's login, with the password of the control database or another one. */
async function urlOf(
  { tenant_id: id, database_url: url }: CreatedTenant,
  { kind, suffix }: (typeof logins)[number],
  other?: string,
): Promise<string> {
  const [password = ''] = (await api.reconcileStore.snapshot(id))?.secrets[kind] ?? []
  return Object.assign(new URL(url), { username: `${id}${suffix}`, password: other ?? password }).href
}

/** Returns what Postgres stores of the passwords of a tenant's logins. */
const verifiers = ({ tenant_id: id }: CreatedTenant) =>
  query(
    api.postgres.url('postgres'),
    'select rolname, rolpassword from pg_authid where starts_with(rolname, $1) order by 1',
    [id],
  )

const canLogIn = (url: string) =>
  query(url, 'select 1').then(
    () => true,
    () => false,
  )

t.test("A changed password of the runtime's or the reloads' login is restored", { timeout: 120_000 }, async (t) => {
  const [tenant, neighbour] = [await api.create(), await api.create()]
  const before = await verifiers(neighbour)
  for (const login of logins) {
    const url = await urlOf(tenant, login)
    for (const [what, change] of [
      ['another password', "password 'taken'"],
      ['no password', 'password null'],
    ] as const) {
      // As code of the tenant does that runs in this login.
      await query(url, `reset role; alter role current_user ${change}`)
      await until(() => canLogIn(url), `${login.kind}, ${what}`)
    }
    await t.rejects(query(await urlOf(tenant, login, 'taken'), 'select 1'), { code: '28P01' })
  }
  t.same(await verifiers(neighbour), before, "the neighbour's passwords are not set again")
  t.ok(
    api.log.some((line) => line.includes(tenant.tenant_id) && line.includes('is restored')),
    'the log names the tenant',
  )
})

t.test("The tenant's own password is not restored", { timeout: 120_000 }, async (t) => {
  const tenant = await api.create()
  await query(tenant.database_url, `reset role; alter role current_user password 'chosen'`)
  const [before] = (await verifiers(tenant)).filter(({ rolname }) => String(rolname).endsWith('_admin'))
  const runtime = await urlOf(tenant, logins[0])
  await query(runtime, "alter role current_user password 'taken'")
  await until(() => canLogIn(runtime))
  t.same(
    (await verifiers(tenant)).filter(({ rolname }) => String(rolname).endsWith('_admin')),
    [before],
  )
})
