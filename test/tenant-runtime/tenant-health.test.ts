// The health of a tenant, as the control plane requests it: with the structure of the home or without it, and one check at a time.
import { internalPaths, internalTokenHeader } from '@tenantry/contract'
import pg from 'pg'
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { internalToken } from '#test/support/tenant-proxy.ts'
import { until } from '#test/support/until.ts'

t.test('The health of a tenant', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const health = async (query = '') => {
    const url = `http://127.0.0.1:${runtime.port}${internalPaths.tenantHealth(tenant.id)}${query}`
    const response = await fetch(url, { headers: { [internalTokenHeader]: internalToken } })
    return (await response.json()) as { status: string; components: { database: { message?: string } } }
  }

  await t.test('with a lock on the record of the structure', async (t) => {
    const locking = new pg.Client({ connectionString: runtime.postgres.url('homes') })
    await locking.connect()
    try {
      await locking.query(`begin; lock table "${tenant.id}".home_structure`)
      const checks = [health(), health(), health()]
      const waiting = async () =>
        (
          await tenant.rows(
            `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%home_problems%'`,
          )
        ).length
      await until(async () => (await waiting()) > 0, 'a check that waits for the lock')
      t.match(await health('?structure=trusted'), { status: 'healthy' }, 'a check without the structure does not wait')
      checks.push(health())
      t.equal(await waiting(), 1, 'one check for all requests')
      await locking.query('rollback')
      for (const check of checks) t.match(await check, { status: 'healthy' })
    } finally {
      await locking.end()
    }
  })

  await t.test('with an altered structure', async (t) => {
    // A complete home is not checked again for some seconds.
    runtime.clock.ahead += 60_000
    await tenant.rows(`create index extra on "${tenant.id}".event_log (owner_id)`)
    t.match(await health('?structure=trusted'), { status: 'healthy' }, 'it is not read if the caller knows it')
    t.match(await health(), {
      status: 'unhealthy',
      components: { database: { message: /^the home is damaged: .*index "event_log.extra" is not part of it/ } },
    })
  })
})
