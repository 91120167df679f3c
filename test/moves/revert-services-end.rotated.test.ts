// What ends the time in which moves into services of a tenant's own and out of them can be reverted.
import t from 'tap'
import { until } from '#test/support/until.ts'
import { ownServices, sharedRemains, startInstalled } from './support/installed.ts'
import { isolate } from './support/isolation.ts'
import { createOwner, sql } from './support/platform.ts'

t.test('A change of the isolation can be reverted', { timeout: 1_800_000 }, async (t) => {
  const platform = await startInstalled(t, { TENANTRY_MOVE_REVERSE_SECONDS: '3600' })
  const read = async (id: string) => (await platform.call('GET', `/v1/tenants/${id}`)).body
  const isRevertible = { move: { revertible_until: /^\d{4}-/, not_revertible_reason: null } }

  await t.test('unless its structure changes, which removes the old home', async (t) => {
    const mia = await createOwner(platform, 'mia')
    await isolate(platform, mia)
    await sql(mia.url, 'create table added (id int)')
    await until(async () => (await sharedRemains(platform, mia)).length === 0, 'the removal of the old home')
    t.match(await platform.call('POST', `/v1/tenants/${mia.id}/move/revert`), {
      status: 409,
      body: { code: 'NO_MOVE_TO_REVERT', message: /The structure of the home has changed since the move\.$/ },
    })
    await isolate(platform, mia, 'schema-per-tenant')
    await sql(mia.url, 'create table more (id int)')
    await until(async () => (await ownServices(platform, mia)).length === 0, 'the removal of its own services')
    t.match(await read(mia.id), { status: 'ready', isolation: 'schema-per-tenant' })
    t.match(await sql(mia.url, 'select from more'), [])
  })

  await t.test('or the tenant is removed', async (t) => {
    for (const models of [['database-per-tenant'], ['database-per-tenant', 'schema-per-tenant']] as const) {
      const eve = await createOwner(platform, `eve-${models.length}`)
      for (const model of models) t.match(await isolate(platform, eve, model), isRevertible)
      await platform.call('DELETE', `/v1/tenants/${eve.id}?purge=true`, undefined, { prefer: 'wait=60' })
      await until(async () => (await sharedRemains(platform, eve)).length === 0, 'the removal of the home')
      await until(async () => (await ownServices(platform, eve)).length === 0, 'the removal of the services')
    }
  })
})
