// What is written to the control database while no tenant is used and nothing changes: the signs of life of gateways, and nothing
// for each tenant.
import t from 'tap'
import { effort } from '#test/support/effort.ts'
import { startPlatform } from '#test/support/platform.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

const tenants = 5
/** Calls of the gateway for leases, one each second, while writes are watched. */
const calls = effort({ small: 15, full: 300 })

/** The tables that may be written, and why. */
const allowed = {
  lease_holders: 'the last call of each gateway',
  usage_sources: 'the hours that each source has completed',
  hosts: 'free memory, CPU and disk of the machine, when they change',
} as const

t.test('Idle tenants cause no writes', { timeout: 900_000 }, async (t) => {
  const platform = await startPlatform()
  t.teardown(() => platform.stop())
  await platform.startControlPlane()
  const control = platform.postgres.url('control')
  for (let number = 0; number < tenants; number++) {
    const body = { name: `idle-${number}`, plan: 'Free', region: 'local' }
    t.match(await platform.call('POST', '/v1/tenants', body, { prefer: 'wait=30' }), { body: { status: 'ready' } })
  }
  /** Returns the versions of all rows of each table. */
  const versions = async () => {
    const tables = await query(
      control,
      "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
    )
    const found = new Map<string, string>()
    for (const { relname } of tables) {
      const [row] = await query(
        control,
        `select coalesce(md5(string_agg(xmin::text || ctid::text, ',' order by ctid)), '') as rows from "${String(relname)}"`,
      )
      found.set(String(relname), String(row?.['rows']))
    }
    return found
  }
  const lastCall = async () =>
    Number((await query(control, 'select max(sequence)::int as last from lease_holders'))[0]?.['last'])
  // Each home is read for the first time after its creation.
  await until(async () => {
    const [row] = await query(control, 'select count(*)::int as count from home_readings')
    return row?.['count'] === tenants
  }, 'the first reading of each home')
  const before = await versions()
  const end = (await lastCall()) + calls
  await until(async () => (await lastCall()) >= end, `${calls} calls of the gateway`, 1_000 * 10 * calls)
  const after = await versions()
  const changed = [...after].filter(([name, rows]) => rows !== before.get(name) && !(name in allowed))
  t.same(changed, [], 'nothing is written for a tenant')
  t.not(after.get('lease_holders'), before.get('lease_holders'), 'a write is seen')
})
