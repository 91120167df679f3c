// The plan's document quota: a write that exceeds it is rejected, also when many clients write at once, and deletes
// free space.
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { publish, rest, same } from './support/schemas.ts'

const notes = {
  name: 'notes',
  fields: [
    { name: 'text', type: 'string' },
    { name: 'n', type: 'number', index: true },
  ],
  rls_policy: { type: 'ownership', owner_field: 'owner' },
}
/** Returns text that does not compress. */
const noise = (bytes: number) =>
  randomBytes(Math.ceil(bytes / 2))
    .toString('hex')
    .slice(0, bytes)
const write = (tenant: TestTenant, body: object, as = 'u1') => tenant.request('POST', `${rest}/notes`, { as, body })
const count = async (tenant: TestTenant) => Number((await tenant.rows('select count(*) as n from notes'))[0]?.['n'])
const whole = async (tenant: TestTenant) =>
  Number((await tenant.rows("select pg_total_relation_size('notes') as n"))[0]?.['n'])

/** Writes until the quota is exceeded, and returns the numbers in the error. */
async function fill(tenant: TestTenant, records: number, bytes: number): Promise<{ limit: number; used: number }> {
  for (;;) {
    const response = await write(
      tenant,
      Array.from({ length: records }, (_, n) => ({ text: noise(bytes), n })),
    )
    if (response.status === 413) return response.json() as { limit: number; used: number }
    if (response.status !== 201) throw new Error(response.text)
  }
}

t.test('The document quota', async (t) => {
  const runtime = await startRuntime(t)

  t.test('Exactly the writes that exceed the quota are rejected', async (t) => {
    const limit = 2_000_000
    const tenant = await runtime.addTenant({ limits: { document_bytes: limit } })
    const neighbour = await runtime.addTenant({ name: 'neighbour', limits: { document_bytes: 1_000_000 } })
    await publish(tenant, notes)
    await publish(neighbour, notes)
    const rejected = await fill(tenant, 20, 2_000)
    t.equal(rejected.limit, limit)
    const before = await count(tenant)
    t.ok(before > 500, `${before} records of 2 kB were stored`)
    // Postgres extends a table with many concurrent writers by more pages than it needs, which matters for one this
    // small.
    t.ok((await whole(tenant)) < limit * 1.2, `they take ${await whole(tenant)} bytes`)
    const large = { text: noise(100_000) }
    const { id } = (await tenant.request('GET', `${rest}/notes?limit=1`, { as: 'u1' })).list()[0] ?? {}
    for (const [method, path, body] of [
      ['POST', 'notes', large],
      ['POST', 'notes', [large]],
      ['PATCH', `notes/${String(id)}`, large],
      ['PATCH', 'notes?n=gte.0', large],
      ['PUT', `notes?id=eq.${String(id)}`, { id, ...large }],
      ['POST', 'notes?on_conflict=id', { id, ...large }],
    ] as const) {
      for (const as of ['u1', 'service'])
        same(
          t,
          await tenant.request(method, `${rest}/${path}`, {
            as,
            body,
            headers: { prefer: path.includes('on_conflict') ? 'resolution=merge-duplicates' : '' },
          }),
          413,
          'QUOTA_EXCEEDED',
          /of 2000000 bytes/,
        )
    }
    t.equal(await count(tenant), before)
    t.equal(
      (await tenant.rows('select max(length(text))::int as n from notes'))[0]?.['n'],
      2_000,
      'nothing of it was stored',
    )
    t.equal((await write(neighbour, large)).status, 201, "another tenant's quota is separate")
    t.equal((await tenant.request('GET', `${rest}/notes?limit=1`, { as: 'u1' })).status, 200)
    t.equal(
      (await tenant.request('POST', `${rest}/schemas`, { as: 'service', body: { ...notes, name: 'more' } })).status,
      201,
      'a schema is not a document',
    )
    t.equal((await tenant.request('DELETE', `${rest}/notes/${String(id)}`, { as: 'u1' })).status, 200)
    tenant.change({ limits: { ...tenant.manifest.limits, document_bytes: 2 * limit } })
    t.equal((await write(tenant, large)).status, 201, 'a larger plan applies at once')
  })

  t.test('Deletes free their space at once, whatever Postgres does with it', async (t) => {
    const limit = 4_000_000
    const tenant = await runtime.addTenant({ limits: { document_bytes: limit } })
    await publish(tenant, notes)
    await fill(tenant, 100, 500)
    const full = await count(tenant)
    t.equal((await tenant.request('DELETE', `${rest}/notes?n=lt.50`, { as: 'u1' })).status, 204)
    t.equal(await count(tenant), full / 2)
    const taken = async () => {
      const before = await count(tenant)
      await fill(tenant, 100, 500)
      return (await count(tenant)) - before
    }
    const again = await taken()
    t.ok(again > full * 0.3 && again < full * 0.7, `${again} records replaced ${full / 2}`)
    t.equal((await tenant.request('DELETE', `${rest}/notes?n=gte.20`, { as: 'u1' })).status, 204)
    await query(runtime.postgres.url('homes'), `vacuum ${tenant.id}.notes`)
    const vacuumed = await taken()
    t.ok(vacuumed > full * 0.5, `${vacuumed} records replaced those whose space Postgres has freed`)
    t.ok((await whole(tenant)) < 2 * limit)
  })

  t.test('Concurrent writers do not exceed the quota', async (t) => {
    const limit = 3_000_000
    const tenant = await runtime.addTenant({ limits: { document_bytes: limit } })
    await publish(tenant, notes)
    const responses = await Promise.all(
      Array.from({ length: 40 }, (_, n) => write(tenant, { text: noise(200_000), n }, `u${n}`)),
    )
    const made = responses.filter(({ status }) => status === 201).length
    t.same(
      responses.filter(({ status }) => status !== 201 && status !== 413),
      [],
    )
    t.equal(await count(tenant), made)
    t.ok(made * 200_000 >= limit / 2 && made * 200_000 <= limit, `${made} of 200 kB were stored`)
  })

  t.test('Rows that SQL writes count from the next size check', async (t) => {
    const limit = 3_000_000
    const tenant = await runtime.addTenant({ limits: { document_bytes: limit } })
    await publish(tenant, notes)
    runtime.clock.stopped = Date.now()
    t.equal((await write(tenant, { text: 'first' })).status, 201)
    await query(
      tenant.home.adminUrl,
      `insert into notes (text) select string_agg(gen_random_uuid()::text, '')
        from generate_series(1, 4000) n, generate_series(1, 20) m group by n`,
    )
    await query(tenant.home.adminUrl, 'create table made_by_sql (text text)')
    t.ok((await whole(tenant)) > limit)
    t.equal((await write(tenant, { text: 'unseen' })).status, 201, 'the size has not been checked yet')
    runtime.clock.stopped += 5_000
    // This write is accepted and triggers a size check.
    t.equal((await write(tenant, { text: 'check' })).status, 201)
    let rejected = await write(tenant, { text: 'x' })
    for (let tries = 0; rejected.status === 201 && tries < 100; tries++) rejected = await write(tenant, { text: 'x' })
    same(t, rejected, 413, 'QUOTA_EXCEEDED')
    await query(tenant.home.adminUrl, 'truncate notes')
    same(t, await write(tenant, { text: 'x' }), 413, 'QUOTA_EXCEEDED', /./)
    runtime.clock.stopped += 1_000
    t.equal((await write(tenant, { text: 'x' })).status, 201, 'after a rejection the size is checked again in a second')
    runtime.clock.stopped = undefined
  })

  t.test(
    'A tenant without a quota has no extra statements; with one, the size is checked every five seconds',
    async (t) => {
      const [limited, free] = [
        await runtime.addTenant({ limits: { document_bytes: 10_000_000 } }),
        await runtime.addTenant({ name: 'free' }),
      ]
      runtime.clock.stopped = Date.now()
      const cost = async (tenant: TestTenant) => {
        await publish(tenant, notes)
        await write(tenant, { text: 'first' })
        const before = tenant.statements()
        for (let n = 0; n < 20; n++) t.equal((await write(tenant, { text: 'x' })).status, 201)
        return tenant.statements() - before
      }
      t.same([await cost(limited), await cost(free)], [20, 20])
      runtime.clock.stopped = undefined
    },
  )

  t.same(runtime.errors, [], 'no internal error occurred')
})
