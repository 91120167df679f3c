// Subscriptions to the event log: order, resuming, row-level security, slow readers, and the reasons for their ends.
import type { IncomingMessage } from 'node:http'
import pg from 'pg'
import t from 'tap'
import { EventReader, openStream, type SentEvent } from '#test/support/event-reader.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { effort } from '#test/support/effort.ts'

const maxSubscribers = 4

interface Requested {
  query?: string
  last?: string
  headers?: Record<string, string>
}

const headersOf = (tenant: TestTenant, caller: string | undefined, { last, headers = {} }: Requested) => ({
  ...tenant.as(caller),
  ...(last === undefined ? {} : { 'last-event-id': last }),
  ...headers,
})

function open(tenant: TestTenant, caller: string | undefined, requested: Requested = {}): Promise<IncomingMessage> {
  return openStream(tenant, `/events/v1${requested.query ?? ''}`, headersOf(tenant, caller, requested))
}

function follow(tenant: TestTenant, caller: string | undefined, requested: Requested = {}): Promise<EventReader> {
  return EventReader.open(tenant, `/events/v1${requested.query ?? ''}`, headersOf(tenant, caller, requested))
}

/** Retries for a minute until the attempt succeeds. */
async function withRetries<T>(attempt: () => Promise<T>): Promise<T> {
  for (const deadline = Date.now() + 60_000; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    try {
      return await attempt()
    } catch (error) {
      if (Date.now() > deadline) throw error
    }
  }
}

async function bucket(tenant: TestTenant, caller: string, name: string, policy = 'private') {
  const { status, text } = await tenant.request('POST', '/storage/v1/bucket', { as: caller, body: { name, policy } })
  if (status !== 201) throw new Error(text)
}

async function put(tenant: TestTenant, caller: string, path: string) {
  const { status, text } = await tenant.request('POST', `/storage/v1/object/${path}`, {
    as: caller,
    body: 'x',
    headers: { 'content-type': 'text/plain' },
  })
  if (status !== 200) throw new Error(text)
}

t.test('Events', async (t) => {
  const runtime = await startRuntime(t, {
    pace: { heartbeat: 100, timeout: 500, drainTimeout: 20_000, retryDelay: 50 },
    maxSubscribers,
  })

  t.test(
    'Each subscriber receives the events that row-level security lets them see, in the form of the specification',
    async (t) => {
      const tenant = await runtime.addTenant()
      await bucket(tenant, 'ada', 'hers')
      await bucket(tenant, 'ben', 'his')
      const readers = {
        ada: await follow(tenant, 'ada'),
        ben: await follow(tenant, 'ben'),
        anonymous: await follow(tenant, undefined),
        service: await follow(tenant, 'service'),
      }
      t.match(readers.ada.response.headers, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
      })
      await put(tenant, 'ada', 'hers/a.txt')
      await put(tenant, 'ben', 'his/b.txt')
      await readers.service.until(2)
      await readers.ben.until(1)
      t.match((await readers.ada.until(1))[0], {
        event: undefined,
        data: {
          type: 'storage.object.created',
          bucket: 'hers',
          path: 'a.txt',
          owner_id: 'ada',
          timestamp: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
        },
      })
      t.same(
        readers.service.events.map(({ data }) => data['path']),
        ['a.txt', 'b.txt'],
      )
      t.same(
        readers.ben.events.map(({ data }) => data['path']),
        ['b.txt'],
      )
      t.same([readers.ada.events.length, readers.anonymous.events.length], [1, 0])
      for (const reader of Object.values(readers)) reader.leave()
    },
  )

  t.test('The very first event is received', async (t) => {
    const tenant = await runtime.addTenant()
    const reader = await follow(tenant, 'ada')
    await bucket(tenant, 'ada', 'first')
    t.match(await reader.until(1), [{ data: { type: 'storage.bucket.created', bucket: 'first' } }])
    reader.leave()
  })

  t.test('Events are filtered by type and bucket; an invalid filter is an error that names the position', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'ada', 'one')
    await bucket(tenant, 'ada', 'two')
    const reader = await follow(tenant, 'ada', {
      query: '?type=storage.object.deleted,storage.object.moved&bucket=two',
    })
    for (const name of ['one', 'two']) {
      await put(tenant, 'ada', `${name}/a.txt`)
      await tenant.request('DELETE', `/storage/v1/object/${name}/a.txt`, { as: 'ada' })
    }
    t.match(
      (await reader.until(1)).map(({ data }) => data),
      [{ type: 'storage.object.deleted', bucket: 'two' }],
    )
    reader.leave()
    for (const [path, headers, code] of [
      ['?kind=x', {}, 'UNKNOWN_PARAMETER'],
      ['?type=', {}, 'BAD_REQUEST'],
      ['?type=%00', {}, 'BAD_REQUEST'],
      ['?bucket=A%20B', {}, 'BAD_REQUEST'],
      ['', { 'last-event-id': 'x' }, 'INVALID_EVENT_ID'],
      ['', { 'last-event-id': '-1' }, 'INVALID_EVENT_ID'],
      ['', { 'last-event-id': '9'.repeat(19) }, 'INVALID_EVENT_ID'],
      ['', { 'last-event-id': '9999999' }, 'INVALID_EVENT_ID'],
    ] as const) {
      const response = await tenant.request('GET', `/events/v1${path}`, { as: 'ada', headers })
      t.match(
        { status: response.status, ...response.json() },
        { status: 400, code },
        `${path} ${JSON.stringify(headers)}`,
      )
    }
    t.equal((await tenant.request('GET', '/events/v1', { headers: { authorization: 'Bearer x.y.z' } })).status, 401)
  })

  t.test('An event with a lower number that commits later is not skipped', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'ada', 'files')
    const reader = await follow(tenant, 'service')
    // A session of the tenant's own SQL login, which the runtime's login cannot see.
    const slow = new pg.Client({ connectionString: tenant.home.adminUrl })
    await slow.connect()
    await slow.query('begin')
    await slow.query('insert into event_log (type, payload) values (\'test.slow\', \'{"type":"test.slow"}\')')
    await put(tenant, 'ada', 'files/quick.txt')
    await new Promise((resolve) => setTimeout(resolve, 300))
    t.same(reader.events, [], 'the fast transaction waits for the slow one')
    await slow.query('commit')
    await slow.end()
    t.same(
      (await reader.until(2)).map(({ data }) => data['type']),
      ['test.slow', 'storage.object.created'],
    )
    reader.leave()
  })

  t.test('An open transaction of another tenant, or of the service, delays no event', async (t) => {
    const acme = await runtime.addTenant({ name: 'open-acme' })
    const neighbour = await runtime.addTenant({ name: 'open-neighbour' })
    const held = new pg.Client({ connectionString: neighbour.home.adminUrl })
    const service = new pg.Client({ connectionString: runtime.postgres.url('homes') })
    for (const client of [held, service]) {
      await client.connect()
      await client.query('begin')
      await client.query('select pg_current_xact_id()')
    }
    t.teardown(() => Promise.all([held.end(), service.end()]))
    const reader = await follow(acme, 'service')
    for (const name of ['one', 'two', 'three']) await bucket(acme, 'service', name)
    t.same(
      (await reader.until(3)).map(({ data }) => data['bucket']),
      ['one', 'two', 'three'],
    )
    reader.leave()
  })

  t.test('Readers that are disconnected repeatedly receive everything once, in order', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'ada', 'files')
    const first = await follow(tenant, 'ada')
    let last = first.lastId
    first.leave()
    const total = effort({ small: 300, full: 5_000 })
    let next = 0
    const writers = Promise.all(
      Array.from({ length: 8 }, async () => {
        while (next < total) await put(tenant, 'ada', `files/${next++}`)
      }),
    )
    const seen: SentEvent[] = []
    while (seen.length < total) {
      const reader = await follow(tenant, 'ada', { last })
      await reader.until(Math.min(total - seen.length, 1 + Math.floor(Math.random() * 40)), 20)
      reader.leave()
      seen.push(...reader.events)
      last = reader.lastId
    }
    await writers
    const rows = await tenant.rows(
      "select e.seq::text as seq from event_log e where type = 'storage.object.created' order by e.seq",
    )
    t.same(
      seen.map(({ id }) => id),
      rows.map(({ seq }) => seq),
      'nothing lost, nothing twice',
    )
    t.equal(new Set(seen.map(({ data }) => data['path'])).size, total)
  })

  t.test('A client that does not read is disconnected with the reason, and resumes at its position', async (t) => {
    const tenant = await runtime.addTenant()
    const start = await follow(tenant, 'service')
    const from = start.lastId
    start.leave()
    // More than socket buffers hold.
    const count = 4_000
    await tenant.rows(
      `insert into event_log (type, payload) select 'test.large',
        jsonb_build_object('n', n, 'text', repeat('x', 20000)) from generate_series(1, ${count}) n`,
    )
    const before = process.memoryUsage().rss
    const others = await Promise.all(Array.from({ length: maxSubscribers - 1 }, () => follow(tenant, 'ada')))
    const response = await open(tenant, 'service', { last: from })
    // A slot is free as soon as the slow reader is disconnected.
    const turn = await withRetries(() => follow(tenant, 'ada'))
    for (const other of [...others, turn]) other.leave()
    t.ok(process.memoryUsage().rss - before < 100e6, 'little is read ahead of the reader')
    const reader = new EventReader(response)
    const deadline = Date.now() + 15_000
    while (!reader.response.complete && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10))
    const end = reader.events.at(-1)
    t.match(end, { event: 'end', data: { code: 'SLOW_READER', message: /not read in time/ } })
    const got = reader.events.slice(0, -1)
    t.ok(got.length > 0 && got.length < count, String(got.length))
    const again = await follow(tenant, 'service', { last: got.at(-1)?.id ?? '' })
    await again.until(count - got.length, 30)
    t.same(
      [...got, ...again.events].map(({ data }) => data['n']),
      Array.from({ length: count }, (_, index) => index + 1),
    )
    again.leave()
  })

  t.test('A subscription ends when its token expires or its tenant changes', async (t) => {
    const tenant = await runtime.addTenant()
    const token = tenant.token('ada', { exp: Math.floor(runtime.clock.now() / 1000) + 60 })
    const reader = await follow(tenant, undefined, { headers: { authorization: `Bearer ${token}` } })
    const other = await follow(tenant, 'service')
    runtime.clock.ahead += 120_000
    await reader.until(1)
    t.match(reader.events, [{ event: 'end', data: { code: 'INVALID_TOKEN', message: /expired/ } }])
    t.same(other.events, [])
    tenant.change({})
    t.match(await other.until(1), [{ event: 'end', data: { code: 'TENANT_CHANGED' } }])
    runtime.clock.ahead = 0
  })

  t.test('A tenant has a maximum of subscribers; one who leaves frees a slot', async (t) => {
    const [tenant, other] = [await runtime.addTenant(), await runtime.addTenant()]
    const readers = [
      await follow(tenant, 'ada'),
      await follow(tenant, 'ada'),
      await follow(tenant, 'ada'),
      await follow(tenant, 'ada'),
    ]
    t.match((await tenant.request('GET', '/events/v1', { as: 'ada' })).json(), {
      statusCode: '503',
      code: 'TOO_MANY_SUBSCRIBERS',
    })
    const elsewhere = await follow(other, 'ada')
    readers[0]?.leave()
    let fifth: IncomingMessage | undefined
    for (let tries = 0; fifth?.statusCode !== 200 && tries < 100; tries++) fifth = await open(tenant, 'ada')
    t.equal(fifth?.statusCode, 200)
    fifth?.destroy()
    for (const reader of [...readers, elsewhere]) reader.leave()
  })

  t.test('A lost connection to the database is invisible to subscribers', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'ada', 'files')
    const reader = await follow(tenant, 'ada')
    await tenant.rows("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'tenantry:%'")
    await put(tenant, 'ada', 'files/after.txt').catch(() => put(tenant, 'ada', 'files/after.txt'))
    t.match(await reader.until(1), [{ data: { path: 'after.txt' } }])
    reader.leave()
  })
})
