// Nothing that a tenant's keys, users or functions can call changes what its home says it has used, but by using it.
import t from 'tap'
import { guardStatement } from '../../tenant-runtime/src/functions/host/guarded-statement.ts'
import { startRuntime } from '../tenancy/support/runtime.ts'

const books = ['usage_hours', 'storage_usage', 'storage_bucket_counters', 'function_invocations', 'blob_intents', 'blob_gc']

t.test('forging', { timeout: 60_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  await tenant.ask('POST', '/storage/v1/bucket', { as: 'service', body: { name: 'files' } })
  await tenant.ask('PUT', '/storage/v1/object/files/a.txt', { as: 'service', body: Buffer.alloc(1_000, 'a'), headers: { 'content-type': 'text/plain' } })
  await tenant.rows("insert into usage_hours values ('2026-05-01T00:00:00Z', 'function_invocations', 7)")
  const state = async () => [
    await tenant.rows('select * from usage_hours'),
    await tenant.rows('select books, books_began, counted_at, file_byte_us, file_bytes, file_count from storage_usage'),
    await tenant.rows('select * from function_invocations'),
  ]

  t.test('REST, with any key, neither reads nor writes the tables of the books', async (t) => {
    const before = await state()
    for (const table of books) {
      for (const as of ['service', 'ada', undefined]) {
        for (const [method, path, body] of [
          ['POST', table, { value: 0 }], ['PATCH', `${table}?value=gte.0`, { value: 0 }], ['DELETE', `${table}?value=gte.0`, undefined], ['PUT', `${table}/1`, { value: 0 }],
        ] as const) {
          const answer = await tenant.ask(method, `/rest/v1/${path}`, { as, ...(body === undefined ? {} : { body }) })
          t.ok(answer.status >= 400 && answer.status < 500, `${method} ${table} as ${as ?? 'nobody'}: ${answer.status}`)
        }
        if (table !== 'function_invocations') t.ok((await tenant.ask('GET', `/rest/v1/${table}`, { as })).status >= 400, `reading ${table} as ${as ?? 'nobody'}`)
      }
    }
    t.same(await state(), before)
  })

  t.test('no schema takes the name of such a table, and no reload touches one', async (t) => {
    const before = await state()
    for (const name of books) {
      const fields = [{ name: 'id', type: 'uuid', primary: true }]
      const answer = await tenant.ask('POST', '/rest/v1/schemas', { as: 'service', body: { name, fields, rls_policy: { type: 'public_read' } } })
      t.ok(answer.status >= 400 && answer.status < 500, name)
    }
    await tenant.ask('POST', '/admin/reload-schemas', { as: 'service' })
    t.same(await state(), before)
  })

  t.test("a function in its caller's name can't name them", async (t) => {
    for (const table of books) {
      for (const sql of [`update ${table} set value = 0`, `delete from "${table}"`, `insert into ${table.toUpperCase()} values (1)`, `with x as (delete from ${table} returning 1) select * from x`]) {
        t.throws(() => guardStatement(sql, true), { code: 'STATEMENT_REFUSED' }, sql)
      }
    }
  })

  t.test('what an upload or a change says of sizes is nothing: the bytes that came count', async (t) => {
    const usage = async () => (await tenant.rows('select books, books_began, file_byte_us, file_bytes from storage_usage'))[0]
    const before = await usage()
    for (const [method, path] of [['PATCH', '/storage/v1/object/files/a.txt'], ['POST', '/storage/v1/object/files/b.txt'], ['PATCH', '/rest/v1/storage_objects?size=gte.0']] as const) {
      await tenant.ask(method, path, { as: 'service', body: { size: 0, file_bytes: 0 }, headers: { 'x-upsert': 'true' } })
    }
    const after = await usage()
    t.ok(Number(after?.['file_byte_us']) >= Number(before?.['file_byte_us']))
    t.match(after, { books: before?.['books'], books_began: before?.['books_began'] })
    t.ok(Number(after?.['file_bytes']) >= 1_000)
    t.match(await tenant.rows('select sum(size)::text as bytes from storage_objects'), [{ bytes: String(after?.['file_bytes']) }])
  })
})
