// The rights of each caller under each policy, and that only the service changes the owner of a record: each change by
// each caller, and the stored state afterwards.
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { publish, rest, same } from './support/schemas.ts'

const fields = [
  { name: 'id', type: 'number', primary: true },
  { name: 'text', type: 'string' },
]
const owned = { owner_field: 'owner' }
const callers = ['u1', 'u2', 'service', undefined] as const

const schemas = [
  { name: 'own', fields, rls_policy: { type: 'ownership', ...owned } },
  { name: 'shown', fields, rls_policy: { type: 'public_read', ...owned } },
  { name: 'signed', fields, rls_policy: { type: 'authenticated' } },
  { name: 'served', fields, rls_policy: { type: 'service' } },
]
const isOwned = (collection: string) => collection === 'own' || collection === 'shown'

/** Creates u1's record in each collection, as the service. */
async function fill(tenant: TestTenant): Promise<void> {
  for (const { name } of schemas) {
    await query(tenant.home.adminUrl, `delete from ${name}`)
    const record = isOwned(name) ? { id: 1, text: 'a', owner: 'u1' } : { id: 1, text: 'a' }
    const { status, text } = await tenant.request('POST', `${rest}/${name}`, { as: 'service', body: record })
    if (status !== 201) throw new Error(text)
  }
}

t.test('Policies', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  await publish(tenant, ...schemas)

  const may: Record<string, { read: readonly unknown[]; write: readonly unknown[] }> = {
    own: { read: ['u1', 'service'], write: ['u1', 'service'] },
    shown: { read: callers, write: ['u1', 'service'] },
    signed: { read: ['u1', 'u2', 'service'], write: ['u1', 'u2', 'service'] },
    served: { read: ['service'], write: ['service'] },
  }

  for (const { name } of schemas) {
    for (const caller of callers) {
      t.test(`${name}: ${caller ?? 'anonymous'} reads, changes and deletes what the policy allows`, async (t) => {
        await fill(tenant)
        const stored = () => tenant.rows(`select id, text from ${name} order by id`)
        const reads = may[name]?.read.includes(caller) === true
        const writes = may[name]?.write.includes(caller) === true
        t.equal((await tenant.request('GET', `${rest}/${name}`, { as: caller })).list().length, reads ? 1 : 0)
        t.equal((await tenant.request('GET', `${rest}/${name}/1`, { as: caller })).status, reads ? 200 : 404)
        t.equal(
          (await tenant.request('PATCH', `${rest}/${name}/1`, { as: caller, body: { text: 'b' } })).status,
          writes ? 200 : 404,
        )
        t.same(await stored(), [{ id: 1, text: writes ? 'b' : 'a' }])
        t.equal(
          (await tenant.request('PATCH', `${rest}/${name}?id=gte.0`, { as: caller, body: { text: 'c' } })).status,
          204,
        )
        t.same(await stored(), [{ id: 1, text: writes ? 'c' : 'a' }])
        t.equal((await tenant.request('DELETE', `${rest}/${name}/1`, { as: caller })).status, writes ? 200 : 404)
        t.same(await stored(), writes ? [] : [{ id: 1, text: 'a' }])
        const inserts =
          name === 'signed' ? caller !== undefined : isOwned(name) ? caller !== undefined : caller === 'service'
        const made = await tenant.request('POST', `${rest}/${name}`, { as: caller, body: { id: 2 } })
        if (inserts) t.equal(made.status, 201, made.text)
        else same(t, made, caller === undefined ? 401 : 403, '42501')
        t.same((await stored()).filter(({ id }) => id === 2).length, inserts ? 1 : 0)
      })
    }
  }

  for (const name of ['own', 'shown']) {
    t.test(`${name}: the user who inserts is the owner, and only the service names or changes another`, async (t) => {
      await fill(tenant)
      const owners = () => tenant.rows(`select id, owner from ${name} order by id`)
      const before = await owners()
      for (const caller of ['u1', 'u2', undefined] as const) {
        const denied = caller === undefined ? 401 : 403
        for (const owner of ['u3', '', null, 'service_role']) {
          same(
            t,
            await tenant.request('POST', `${rest}/${name}`, { as: caller, body: { id: 9, owner } }),
            denied,
            '42501',
          )
          const record = await tenant.request('PATCH', `${rest}/${name}/1`, { as: caller, body: { owner } })
          const filtered = await tenant.request('PATCH', `${rest}/${name}?id=gte.0`, {
            as: caller,
            body: { text: 'x', owner },
          })
          if (caller === 'u1') {
            same(t, record, 403, '42501')
            same(t, filtered, 403, '42501')
          } else t.same([record.status, filtered.status], [404, 204])
          const upserted = await tenant.request('POST', `${rest}/${name}?on_conflict=id`, {
            as: caller,
            body: { id: 1, owner },
            headers: { prefer: 'resolution=merge-duplicates' },
          })
          t.equal(upserted.status, denied, upserted.text)
          t.equal(
            (await tenant.request('PUT', `${rest}/${name}?id=eq.1`, { as: caller, body: { id: 1, text: 'y', owner } }))
              .status,
            denied,
          )
        }
        if (caller === 'u2')
          t.equal(
            (
              await tenant.request('POST', `${rest}/${name}?on_conflict=id`, {
                as: caller,
                body: { id: 1, text: 'mine' },
                headers: { prefer: 'resolution=merge-duplicates' },
              })
            ).status,
            403,
            "nor can a user take over another's record",
          )
        t.same(await owners(), before, `nothing that ${caller ?? 'anonymous'} tried was stored`)
      }
      t.same(await tenant.rows(`select text from ${name}`), [{ text: 'a' }])
      t.equal(
        (await tenant.request('PATCH', `${rest}/${name}/1`, { as: 'u1', body: { owner: 'u1', text: 'same' } })).status,
        200,
        'naming oneself as the owner changes nothing',
      )
      t.match((await tenant.request('PATCH', `${rest}/${name}/1`, { as: 'service', body: { owner: 'u2' } })).json(), {
        owner: 'u2',
      })
      t.equal(
        (await tenant.request('PATCH', `${rest}/${name}/1`, { as: 'u1', body: { text: 'late' } })).status,
        404,
        'the user no longer owns it',
      )
      t.equal((await tenant.request('PATCH', `${rest}/${name}/1`, { as: 'u2', body: { text: 'mine' } })).status, 200)
      t.match(
        (await tenant.request('POST', `${rest}/${name}`, { as: 'service', body: { id: 5, owner: null } })).json(),
        { owner: null },
        'the service may remove the owner',
      )
    })
  }

  t.test('A policy that SQL adds applies from the next reload on', async (t) => {
    await fill(tenant)
    const seen = async (caller: string) =>
      (await tenant.request('GET', `${rest}/own`, { as: caller })).list().map(({ owner }) => owner)
    t.same([await seen('u1'), await seen('u2')], [['u1'], []])
    await query(tenant.home.adminUrl, 'create policy shared on own for select using (true)')
    await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
    t.same([await seen('u1'), await seen('u2')], [['u1'], ['u1']])
    t.equal((await tenant.request('PATCH', `${rest}/own?id=gte.0`, { as: 'u2', body: { text: 'taken' } })).status, 204)
    t.same(await tenant.rows('select text from own'), [{ text: 'a' }], 'seeing a record is not owning it')
    await query(tenant.home.adminUrl, 'drop policy shared on own')
    await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
    t.same(await seen('u2'), [])
  })

  t.test('No caller can set the tenant of a record, through the interface or with SQL', async (t) => {
    await fill(tenant)
    for (const { name } of schemas) {
      for (const caller of callers) {
        same(
          t,
          await tenant.request('PATCH', `${rest}/${name}/1`, { as: caller, body: { tenant_id: 'other' } }),
          400,
          'PGRST204',
          /tenant_id/,
        )
        same(
          t,
          await tenant.request('POST', `${rest}/${name}`, { as: caller, body: { id: 9, tenant_id: tenant.id } }),
          400,
          'PGRST204',
          /tenant_id/,
        )
      }
      // The constraint stops the login of the owner, and the policy stops the runtime's.
      await t.rejects(query(tenant.home.adminUrl, `update ${name} set tenant_id = 'other'`), { code: '42501' })
      await t.rejects(
        query(
          `${tenant.home.adminUrl}?options=${encodeURIComponent('-c app.tenant_id=other')}`,
          `insert into ${name} (id, tenant_id) values (9, 'other')`,
        ),
        { code: '23514' },
      )
      t.same(await query(tenant.home.url, `select * from ${name}`), [], 'without a context no row is visible')
    }
    t.same(await tenant.rows('select distinct tenant_id from own'), [{ tenant_id: tenant.id }])
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
