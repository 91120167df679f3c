// A tenant moves between the isolation models by a restore of its backup into a new tenant.
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import {
  createOwner,
  ended,
  furnish,
  json,
  put,
  scratchObjects,
  seen,
  startBackupPlatform,
  toOwner,
  type Owner,
} from './support/tenants.ts'

const models = ['schema-per-tenant', 'database-per-tenant'] as const

t.test('backups are restored into tenants of the other isolation model', async (t) => {
  const platform = await startBackupPlatform(t)
  const ada = await createOwner(platform, 'ada', 'schema-per-tenant')
  await furnish(platform, ada, 3_000_000)
  const before = await seen(platform, ada)

  /** Backs up a tenant and restores the backup into a new one. */
  const moved = async (from: Owner, isolation: (typeof models)[number], name: string) => {
    const taken = await platform.call('POST', `/v1/tenants/${from.id}/backups`)
    t.match(await ended(platform, taken), { state: 'succeeded', error: null })
    const path = `/v1/backups/${String(taken.body['id'])}/restore`
    const response = await platform.call('POST', path, { into: { name, isolation } })
    t.match(response, { status: 202, body: { isolation, status: 'pending' } })
    const to = toOwner(response.body)
    t.match(await ended(platform, response, 300), { state: 'succeeded', error: null })
    await platform.until(to.id, ({ status }) => status === 'ready')
    await until(async () => (await scratchObjects(platform)).length === 0, 'the removal of the scratch home')
    return to
  }

  /** The new tenant has everything, under its own ID and keys, and can be used like any other. */
  const check = async (from: Owner, to: Owner) => {
    t.same(await seen(platform, to), before)
    t.equal((await platform.tenantCall(to.name, 'GET', '/rest/v1/notes', { key: from.key })).status, 401)
    const [tagged] = await query(
      to.url,
      "select count(*) filter (where tenant_id <> current_setting('app.tenant_id'))::int as others, count(*)::int as all from notes",
    )
    t.same(tagged, { others: 0, all: 3 })
    const roles = await query(to.url, "select rolname as name from pg_roles where rolname ~ '_(loader|reader)_'")
    t.same(roles, [], 'no login of the restore is left')
    await json(platform, to.name, to.key, 'POST', '/admin/reload-schemas', {})
    await json(platform, to.name, to.key, 'POST', '/rest/v1/notes', { owner: 'u2', title: to.name })
    await put(platform, to.name, to.key, 'papers/later.txt', to.name)
    const found = await platform.tenantCall(to.name, 'GET', '/storage/v1/object/papers/later.txt', { key: to.key })
    t.equal(await found.text(), to.name)
    await query(to.url, 'insert into children select 1000, min(id) from "Odd ""names"""')
    await platform.tenantCall(to.name, 'DELETE', '/storage/v1/object/papers/later.txt', { key: to.key })
    await query(to.url, `delete from children where id = 1000; delete from notes where owner = 'u2'`)
    t.same(await seen(platform, to), before)
  }

  const grace = await moved(ada, 'database-per-tenant', 'grace')
  await check(ada, grace)
  const linus = await moved(grace, 'schema-per-tenant', 'linus')
  await check(grace, linus)

  t.test('a wrong isolation model is rejected', async (t) => {
    const { body } = await platform.call('GET', `/v1/tenants/${grace.id}/backups`)
    const [{ id }] = body['backups'] as [{ id: string }]
    for (const [isolation, status, code] of [
      ['cluster-per-tenant', 422, 'UNSUPPORTED_ISOLATION'],
      ['none', 400, 'INVALID_FIELD'],
      [null, 400, 'INVALID_FIELD'],
    ])
      t.match(
        await platform.call('POST', `/v1/backups/${id}/restore`, { into: { name: 'barbara', isolation } }),
        { status, body: { code } },
        String(isolation),
      )
    t.notOk(
      ((await platform.call('GET', '/v1/tenants')).body['tenants'] as { name: string }[]).some(
        ({ name }) => name === 'barbara',
      ),
    )
  })

  t.test('an object that shared homes do not support is named, and the new tenant is removed', async (t) => {
    await query(grace.url, "create aggregate total (int) (sfunc = int4pl, stype = int, initcond = '0')")
    const taken = await platform.call('POST', `/v1/tenants/${grace.id}/backups`)
    t.match(await ended(platform, taken), { state: 'succeeded', error: null })
    const path = `/v1/backups/${String(taken.body['id'])}/restore`
    const response = await platform.call('POST', path, { into: { name: 'edsger', isolation: 'schema-per-tenant' } })
    t.match(await ended(platform, response, 300), { state: 'failed', error: /total/ })
    await until(async () => (await scratchObjects(platform)).length === 0, 'the removal of the scratch home')
    t.match(await seen(platform, grace), before, 'the first tenant is served as before')
  })
})
