// Uploads that share a transaction: each has its own caller, rules and outcome, and the bytes that wait for the disk
// are limited.
import t from 'tap'
import { BytesInFlight } from '#tenant-runtime/storage/backend/bytes-in-flight.ts'
import { startRuntime } from '#test/support/runtime.ts'

t.test('Concurrent uploads share transactions', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const text = { 'content-type': 'text/plain' }
  await tenant.request('POST', '/storage/v1/bucket', { as: 'ada', body: { name: 'shared', policy: 'authenticated' } })
  const put = (caller: string, path: string, body: string, headers = {}) =>
    tenant.request('POST', `/storage/v1/object/shared/${path}`, { as: caller, body, headers: { ...text, ...headers } })
  await put('ada', 'first', 'x')

  t.test('Uploads in one transaction with a rejected one are stored', async (t) => {
    // Only Postgres knows this rule, so the whole transaction fails.
    await tenant.rows("alter table storage_objects add constraint not_this check (path <> 'rejected')")
    const paths = Array.from({ length: 30 }, (_, n) => (n === 17 ? 'rejected' : `many-${n}`))
    const responses = await Promise.all(paths.map((path, n) => put(n % 2 === 0 ? 'ada' : 'ben', path, path)))
    t.same(
      responses.map(({ status }, n) => (status === 200 ? undefined : paths[n])).filter((path) => path !== undefined),
      ['rejected'],
    )
    for (const [n, path] of paths.entries()) {
      const { status, text } = await tenant.request('GET', `/storage/v1/object/shared/${path}`, { as: 'ada' })
      t.same([status, text === path], path === 'rejected' ? [404, false] : [200, true], path)
      if (path !== 'rejected')
        t.equal(responses[n]?.json()['owner_id'], n % 2 === 0 ? 'ada' : 'ben', 'each object is owned by its caller')
    }
    await runtime.storage.idle()
    const [counters] = await tenant.rows(
      `select (select count(*) from storage_objects)::int - file_count::int as files_off,
         (select sum(size) from storage_objects)::int - file_bytes::int as bytes_off,
         reserved_bytes::int as reserved, (select count(*) from blob_intents)::int as intents,
         (select count(*) from blob_gc)::int as waiting,
         (select count(*) from event_log where type = 'storage.object.created')::int - file_count::int as events_off,
         (select sum(file_count) from storage_bucket_counters)::int - file_count::int as counters_off from storage_usage`,
    )
    t.same(counters, {
      files_off: 0,
      bytes_off: 0,
      reserved: 0,
      intents: 0,
      waiting: 0,
      events_off: 0,
      counters_off: 0,
    })
    t.equal((await tenant.files()).length, 30)
  })

  t.test('Concurrent uploads to one path end as one of them, each with its event', async (t) => {
    const bodies = Array.from({ length: 20 }, (_, n) => `body ${n}`)
    const responses = await Promise.all(bodies.map((body) => put('ada', 'same', body)))
    t.ok(responses.every(({ status }) => status === 200))
    t.ok(bodies.includes((await tenant.request('GET', '/storage/v1/object/shared/same', { as: 'ada' })).text))
    t.equal(
      (await tenant.rows("select count(*)::int as n from event_log where payload ->> 'path' = 'same'"))[0]?.['n'],
      20,
    )
    const only = await Promise.all(bodies.map((body) => put('ada', 'only-one', body, { 'x-upsert': 'false' })))
    t.same(only.map(({ status }) => status).sort(), [200, ...Array.from({ length: 19 }, () => 409)])
    await runtime.storage.idle()
    t.equal(
      (await tenant.files()).length,
      Number((await tenant.rows('select count(*)::int as n from storage_objects'))[0]?.['n']),
    )
  })
})

t.test('Bytes in flight are limited', async (t) => {
  t.test('Uploads take bytes in order of arrival, and return them', async (t) => {
    const room = new BytesInFlight(100, 60_000)
    const order: string[] = []
    await room.take(80)
    const waiting = [
      ['large', 60],
      ['small', 10],
    ].map(([name, bytes]) => room.take(Number(bytes)).then(() => order.push(String(name))))
    t.equal(room.free, 20)
    room.release(80)
    await Promise.all(waiting)
    t.same(order, ['large', 'small'], 'a smaller request does not overtake a larger one')
    t.equal(room.free, 30)
  })

  t.test('An upload is rejected when it waits too long for bytes', async (t) => {
    const room = new BytesInFlight(10, 5)
    await room.take(10)
    await t.rejects(room.take(1), { code: 'STORAGE_UNAVAILABLE' })
    room.release(10)
    await room.take(10)
    t.equal(room.free, 0)
  })
})
