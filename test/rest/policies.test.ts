// Who may do what under each policy, and that nobody but the service changes whose a record is: each change by each caller,
// and what is stored afterwards.
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

/** u1's record in each collection, as the service makes it. */
async function fill(tenant: TestTenant): Promise<void> {
  for (const { name } of schemas) {
    await query(tenant.home.adminUrl, `delete from ${name}`)
    const record = isOwned(name) ? { id: 1, text: 'a', owner: 'u1' } : { id: 1, text: 'a' }
    const { status, text } = await tenant.request('POST', `${rest}/${name}`, { as: 'service', body: record })
    if (status !== 201) throw new Error(text)
  }
}

t.test('policies', async (t) => {
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
      t.test(`${name}: ${caller ?? 'nobody'} reads, changes and deletes what the policy says`, async (t) => {
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
    t.test(`${name}: the owner is whoever inserts, and only the service names or changes another`, async (t) => {
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
            "nor is another's record taken over",
          )
        t.same(await owners(), before, `nothing of what ${caller ?? 'nobody'} tried was stored`)
      }
      t.same(await tenant.rows(`select text from ${name}`), [{ text: 'a' }])
      t.equal(
        (await tenant.request('PATCH', `${rest}/${name}/1`, { as: 'u1', body: { owner: 'u1', text: 'same' } })).status,
        200,
        'to name oneself changes nothing',
      )
      t.match((await tenant.request('PATCH', `${rest}/${name}/1`, { as: 'service', body: { owner: 'u2' } })).json(), {
        owner: 'u2',
      })
      t.equal(
        (await tenant.request('PATCH', `${rest}/${name}/1`, { as: 'u1', body: { text: 'late' } })).status,
        404,
        'it is no longer theirs',
      )
      t.equal((await tenant.request('PATCH', `${rest}/${name}/1`, { as: 'u2', body: { text: 'mine' } })).status, 200)
      t.match(
        (await tenant.request('POST', `${rest}/${name}`, { as: 'service', body: { id: 5, owner: null } })).json(),
        { owner: null },
        'the service may leave it to nobody',
      )
    })
  }

  t.test('a policy that SQL adds shows what it allows, from the next reload on', async (t) => {
    await fill(tenant)
    const seen = async (caller: string) =>
      (await tenant.request('GET', `${rest}/own`, { as: caller })).list().map(({ owner }) => owner)
    t.same([await seen('u1'), await seen('u2')], [['u1'], []])
    await query(tenant.home.adminUrl, 'create policy shared on own for select using (true)')
    await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
    t.same([await seen('u1'), await seen('u2')], [['u1'], ['u1']])
    t.equal((await tenant.request('PATCH', `${rest}/own?id=gte.0`, { as: 'u2', body: { text: 'taken' } })).status, 204)
    t.same(await tenant.rows('select text from own'), [{ text: 'a' }], 'to see it is not to own it')
    await query(tenant.home.adminUrl, 'drop policy shared on own')
    await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
    t.same(await seen('u2'), [])
  })

  t.test("the tenant of a record is nobody's to name, through the interface or with SQL", async (t) => {
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
      // The owner's own login and the runtime's: the one is held by the constraint, the other by the policy.
      await t.rejects(query(tenant.home.adminUrl, `update ${name} set tenant_id = 'other'`), { code: '42501' })
      await t.rejects(
        query(
          `${tenant.home.adminUrl}?options=${encodeURIComponent('-c app.tenant_id=other')}`,
          `insert into ${name} (id, tenant_id) values (9, 'other')`,
        ),
        { code: '23514' },
      )
      t.same(await query(tenant.home.url, `select * from ${name}`), [], 'without a context nothing is seen')
    }
    t.same(await tenant.rows('select distinct tenant_id from own'), [{ tenant_id: tenant.id }])
  })

  t.same(runtime.problems, [], 'none of it was an error of ours')
})
