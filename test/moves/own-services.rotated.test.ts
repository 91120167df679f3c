// Tenants of `npm start` move out of a shared database into a Postgres and a runtime of their own, and back, while all of their
// users are active.
import t from 'tap'
import { everyObjectSql } from '#test/backups/support/every-object.ts'
import { until } from '#test/support/until.ts'
import { checkFiles, checkWrites, runsOf, startRequests } from './support/busy-scene.ts'
import { createBusyTenant } from './support/busy-tenant.ts'
import { ownServices, sharedRemains, startInstalled } from './support/installed.ts'
import { beginIsolation, homeOf, isolate } from './support/isolation.ts'
import { createOwner, ended, sql } from './support/platform.ts'

t.test('A tenant moves into services of its own, and back', { timeout: 1_800_000 }, async (t) => {
  const platform = await startInstalled(t)
  const isolationOf = async (id: string) => (await platform.call('GET', `/v1/tenants/${id}`)).body['isolation']

  await t.test('while everything of it is used', async (t) => {
    const tenant = await createBusyTenant(platform, 'ada')
    await sql(tenant.url, everyObjectSql)
    const users = await startRequests(t, tenant)
    await users.untilAllContinue()
    const logins = users.transfers.logins()
    const operation = await isolate(platform, tenant)
    t.match(operation, {
      kind: 'move',
      state: 'succeeded',
      step: 'done',
      error: null,
      move: { from: 'tenantry_homes_1', to: 'home', to_isolation: 'database-per-tenant', revertible_until: null },
    })
    await users.untilAllContinue()
    t.ok(users.transfers.logins() > logins, 'the former database_url leads to the new database')
    const { body } = await platform.call('GET', `/v1/tenants/${tenant.id}`)
    t.match(body, {
      status: 'ready',
      isolation: 'database-per-tenant',
      database_url: /\/home$/,
    })
    t.same(await sharedRemains(platform, tenant), [], 'nothing is left where tenants share')
    const change = (changes: object) =>
      platform.call('PATCH', `/v1/tenants/${tenant.id}`, changes, { prefer: 'wait=60' })
    t.match(await change({ isolation: 'database-per-tenant' }), { status: 409, body: { code: 'SAME_ISOLATION' } })
    t.match(await change({ pause_after_seconds: 0 }), { status: 200 })
    t.match(await change({ isolation: 'schema-per-tenant' }), {
      body: {
        code: 'NOT_DEDICATED',
        message: /^Field "pause_after_seconds" requires .* Set it to null before the move\.$/,
      },
    })
    t.match(await change({ pause_after_seconds: null }), { status: 200 })
    await users.untilAllContinue()

    t.match(await isolate(platform, tenant, 'schema-per-tenant'), {
      kind: 'move',
      state: 'succeeded',
      step: 'done',
      error: null,
      move: { from: 'home', to: 'tenantry_homes_1', to_isolation: 'schema-per-tenant', revertible_until: null },
    })
    await users.untilAllContinue()
    await users.stop()
    t.match((await platform.call('GET', `/v1/tenants/${tenant.id}`)).body, {
      status: 'ready',
      isolation: 'schema-per-tenant',
      database_url: /\/tenantry_homes_1$/,
    })
    t.same(await ownServices(platform, tenant), [], 'its services are removed')

    const home = homeOf(tenant)
    const ids = await checkWrites(t, home, users)
    await checkFiles(t, tenant, users)
    t.same(users.reader.wrong, [], 'a URL from before the moves is valid')
    const runs = await runsOf(t, home)
    t.same(runs.notes.sort(), ids.sort(), `each of ${ids.length} notes has run its function once`)
    const called = runs.of('http').map(({ input }) => (input as { number: number }).number)
    t.equal(called.length, new Set(called).size, 'no call has run twice')
    t.same(
      users.calls.acknowledged.filter((number) => !called.includes(number)),
      [],
      'all calls have run',
    )
    const { acknowledged, uncertain } = tenant.requests
    let requests = 0
    await until(async () => {
      const { resources } = (await platform.call('GET', `/v1/tenants/${tenant.id}/usage`)).body
      const { by_group: groups } = (resources as { api_requests: { by_group: Record<string, number> } }).api_requests
      requests = (groups['rest'] ?? 0) + (groups['storage'] ?? 0) + (groups['functions'] ?? 0)
      return requests >= acknowledged
    }, 'the usage')
    t.ok(requests <= acknowledged + uncertain, `${acknowledged} ≤ ${requests} ≤ ${acknowledged + uncertain}`)

    t.match(
      await sql(tenant.url, 'select count(*)::int as n from facts'),
      [{ n: 500 }],
      'every kind of object is there',
    )
    const next = await sql(tenant.url, `insert into facts (kind) values ('b') returning id, named`)
    t.match(next, [{ id: 501, named: '<x' }])
    await platform.call('DELETE', `/v1/tenants/${tenant.id}?purge=true`, undefined, { prefer: 'wait=60' })
    t.same(await sharedRemains(platform, tenant), [], 'its home ends with it')
  })

  await t.test('or stays as it was when an operator cancels', async (t) => {
    const eve = await createOwner(platform, 'eve')
    const operation = await beginIsolation(platform, eve.id)
    await until(async () => (await ownServices(platform, eve)).length > 0, 'the services')
    const busy = await platform.call('PATCH', `/v1/tenants/${eve.id}`, { plan: 'Pro' })
    t.match(busy, { status: 423, body: { code: 'OPERATION_IN_PROGRESS' } })
    await platform.call('POST', `/v1/operations/${operation}/cancel`)
    t.match(await ended(platform, operation), { state: 'failed', error: 'An operator has canceled the move.' })
    t.same(await ownServices(platform, eve), [], 'its services are removed')
    t.equal(await isolationOf(eve.id), 'schema-per-tenant')
    await sql(eve.url, 'create table still (id int)')

    t.match(await isolate(platform, eve), { state: 'succeeded' })
    const back = await beginIsolation(platform, eve.id, 'schema-per-tenant')
    await until(async () => (await sharedRemains(platform, eve)).length > 0, 'the copy')
    await platform.call('POST', `/v1/operations/${back}/cancel`)
    t.match(await ended(platform, back), { state: 'failed', error: 'An operator has canceled the move.' })
    t.same(await sharedRemains(platform, eve), [], 'its copy is removed')
    t.equal(await isolationOf(eve.id), 'database-per-tenant')
    await sql(eve.url, 'insert into still values (1)')
    await platform.call('DELETE', `/v1/tenants/${eve.id}?purge=true`, undefined, { prefer: 'wait=60' })
    t.same(await ownServices(platform, eve), [], 'its services end with it')
  })

  await t.test('and requests that make no sense are rejected', async (t) => {
    const mia = await createOwner(platform, 'mia')
    const change = (body: object, headers = {}) => platform.call('PATCH', `/v1/tenants/${mia.id}`, body, headers)
    t.match(await change({ isolation: 'database-per-tenant', plan: 'Pro' }), {
      status: 400,
      body: { code: 'INVALID_FIELD', message: /^Field "isolation" must be the only one of its request/ },
    })
    t.match(await change({ isolation: 'cluster-per-tenant' }), { status: 422, body: { code: 'UNSUPPORTED_ISOLATION' } })
    t.match(await change({ isolation: 'schema-per-tenant' }), { status: 409, body: { code: 'SAME_ISOLATION' } })
    t.match(await change({ isolation: 'none' }), { status: 400 })
    t.match(await change({ isolation: 'database-per-tenant' }, { 'if-match': '"7"' }), { status: 412 })
    t.match(await change({ backup_schedule: '0 3 * * *' }, { prefer: 'wait=30' }), { status: 200 })
    const unsaved = await change({ isolation: 'database-per-tenant' })
    t.match(unsaved, { status: 422, body: { code: 'BACKUPS_OFF' } }, 'a schedule that could not be followed')
  })
})
