// References between records: their targets, the effect of deleting a target, and that Postgres enforces them.
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { insert, publish, rest, same, service } from './support/schemas.ts'

t.test('Attributes of fields', async (t) => {
  const runtime = await startRuntime(t)

  t.test('Records refer to each other, and Postgres enforces it', async (t) => {
    const tenant = await runtime.addTenant()
    const refers = (references: unknown, more: object = {}) => [{ name: 'to', type: 'uuid', references, ...more }]
    await publish(
      tenant,
      // In the order of names, each refers to later ones, and two refer to each other.
      { name: 'a_cascade', fields: refers({ collection: 'parents', on_delete: 'cascade' }), rls_policy: service },
      {
        name: 'b_null',
        fields: refers({ collection: 'parents', field: 'id', on_delete: 'set null' }),
        rls_policy: service,
      },
      { name: 'c_restrict', fields: refers('parents', { required: true }), rls_policy: service },
      {
        name: 'by_code',
        fields: [{ name: 'to', type: 'string', references: { collection: 'parents', field: 'code' } }],
        rls_policy: service,
      },
      {
        name: 'parents',
        fields: [
          { name: 'id', type: 'uuid', primary: true },
          { name: 'code', type: 'string', unique: true },
          { name: 'first', type: 'uuid', references: 'a_cascade' },
          { name: 'self', type: 'uuid', references: 'parents' },
        ],
        rls_policy: service,
      },
    )
    const parent = await insert(tenant, 'parents', { code: 'p' })
    for (const collection of ['a_cascade', 'b_null', 'c_restrict'])
      await insert(tenant, collection, { to: parent['id'] })
    await insert(tenant, 'by_code', { to: 'p' })
    const nowhere = '00000000-0000-4000-8000-000000000000'
    same(
      t,
      await tenant.request('POST', `${rest}/c_restrict`, { as: 'service', body: { to: nowhere } }),
      409,
      '23503',
      /^Field "to" references a record of "parents" that does not exist\.$/,
    )
    same(
      t,
      await tenant.request('PATCH', `${rest}/parents/${String(parent['id'])}`, {
        as: 'service',
        body: { self: nowhere },
      }),
      409,
      '23503',
      /^Field "self" references/,
    )
    same(
      t,
      await tenant.request('DELETE', `${rest}/parents/${String(parent['id'])}`, { as: 'service' }),
      409,
      '23503',
      /^Records of "(c_restrict|by_code)" reference this one\.$/,
    )
    await t.rejects(query(tenant.home.adminUrl, 'insert into c_restrict ("to") values ($1)', [nowhere]), {
      code: '23503',
    })
    t.equal((await tenant.request('DELETE', `${rest}/c_restrict?id=not.is.null`, { as: 'service' })).status, 204)
    t.equal((await tenant.request('DELETE', `${rest}/by_code?id=not.is.null`, { as: 'service' })).status, 204)
    t.equal(
      (
        await tenant.request('PATCH', `${rest}/parents/${String(parent['id'])}`, {
          as: 'service',
          body: { self: parent['id'] },
        })
      ).status,
      200,
      'a record may refer to itself',
    )
    t.equal((await tenant.request('DELETE', `${rest}/parents/${String(parent['id'])}`, { as: 'service' })).status, 200)
    t.same(
      await tenant.rows(
        'select (select count(*)::int from a_cascade) as cascaded, (select count(*)::int from b_null where "to" is null) as emptied',
      ),
      [{ cascaded: 0, emptied: 1 }],
    )
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
