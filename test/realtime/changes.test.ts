// Changes of records on channels: their receivers and their form, and which subscriptions are rejected.
import pg from 'pg'
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { changesOf, follow, runSql } from './support/follow-changes.ts'
import { createNotes, insertNote } from './support/notes.ts'

const all = { event: '*', schema: 'public', table: 'notes' }

t.test('Changes', async (t) => {
  const runtime = await startRuntime(t)

  t.test('An insertion, an update and a deletion arrive in the form of the protocol', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    const { raw, reply } = await follow(tenant, undefined, all)
    t.match(reply.payload, { status: 'ok', response: { postgres_changes: [{ ...all, id: Number }] } })
    await raw.until(({ event }) => event === 'system', 'the message of the subscription')
    t.match(raw.of('system')[0]?.payload, {
      extension: 'postgres_changes',
      status: 'ok',
      message: 'Subscribed to PostgreSQL',
      channel: 'notes',
    })
    const id = await insertNote(tenant, 'ada', { text: 'one', n: 1.5, data: { a: [1] } })
    await tenant.request('PATCH', `/rest/v1/notes/${id}`, { as: 'ada', body: { text: 'two' } })
    await tenant.request('DELETE', `/rest/v1/notes/${id}`, { as: 'ada' })
    await until(() => raw.of('postgres_changes').length === 3)
    const [inserted, updated, deleted] = changesOf(raw)
    const [{ id: subscription }] = (reply.payload['response'] as { postgres_changes: [{ id: number }] })
      .postgres_changes
    t.match(inserted, {
      ids: [subscription],
      data: {
        schema: 'public',
        table: 'notes',
        type: 'INSERT',
        commit_timestamp: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
        record: { id, owner_id: 'ada', text: 'one', n: 1.5, data: { a: [1] } },
        errors: null,
      },
    })
    t.same(
      inserted?.data.columns.map(({ name, type }) => `${name} ${type}`),
      ['id uuid', 'owner_id text', 'text text', 'n float8', 'at timestamptz', 'data jsonb'],
    )
    t.match(updated?.data, { type: 'UPDATE', record: { text: 'two' }, old_record: { id } })
    t.same([deleted?.data.type, deleted?.data.record, deleted?.data.old_record], ['DELETE', undefined, { id }])
    raw.leave()
  })

  t.test('Only those who may read a record receive its changes, by the policy at the time of the change', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant, { policy: 'ownership' })
    const { raw: ada } = await follow(tenant, 'ada', all)
    const { raw: ben } = await follow(tenant, 'ben', all)
    const { raw: anonymous } = await follow(tenant, undefined, all)
    const { raw: service } = await follow(tenant, 'service', all)
    const id = await insertNote(tenant, 'ada', { text: 'hers' })
    await insertNote(tenant, 'ben', { text: 'his' })
    // The record moves to another owner.
    await tenant.request('PATCH', `/rest/v1/notes/${id}`, { as: 'service', body: { owner_id: 'ben' } })
    await until(() => changesOf(service).length === 4 && changesOf(ben).length === 2 && changesOf(ada).length === 2)
    t.same(
      changesOf(ada).map(({ data }) => [data.type, data.record?.['text'], data.old_record]),
      [
        ['INSERT', 'hers', undefined],
        ['DELETE', undefined, { id }],
      ],
    )
    t.same(
      changesOf(ben).map(({ data }) => [data.type, data.record?.['text'], data.old_record]),
      [
        ['INSERT', 'his', undefined],
        ['INSERT', 'hers', undefined],
      ],
    )
    t.same(changesOf(anonymous), [])
    for (const raw of [ada, ben, anonymous, service]) raw.leave()
  })

  t.test('Signed-in users receive the changes of a collection for them, and anonymous ones do not', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant, { policy: 'authenticated' })
    const { raw: ben } = await follow(tenant, 'ben', all)
    const { raw: anonymous } = await follow(tenant, undefined, all)
    await insertNote(tenant, 'ada', { text: 'ours' })
    await until(() => changesOf(ben).length === 1)
    t.same(changesOf(anonymous), [])
    ben.leave()
    anonymous.leave()
  })

  t.test('Several subscriptions, filters and columns of one channel are told apart by their IDs', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    const wanted = [
      { event: 'INSERT', schema: 'public', table: 'notes' },
      { event: '*', schema: 'public', table: 'notes', filter: 'n=gt.3,text=not.like.b%' },
      { event: 'INSERT', schema: '*' },
      { event: 'DELETE', schema: 'public', table: 'notes', filter: 'n=eq.4' },
      { event: 'INSERT', schema: 'public', table: 'notes', filter: 'text=imatch.^A', select: ['n'] },
    ]
    const { raw, reply } = await follow(tenant, undefined, ...wanted)
    const ids = (reply.payload['response'] as { postgres_changes: { id: number }[] }).postgres_changes.map(
      ({ id }) => id,
    )
    t.equal(new Set(ids).size, wanted.length)
    const first = await insertNote(tenant, 'ada', { text: 'a', n: 4 })
    await insertNote(tenant, 'ada', { text: 'b', n: 5 })
    await tenant.request('DELETE', `/rest/v1/notes/${first}`, { as: 'ada' })
    await until(() => changesOf(raw).length === 4)
    const [, two, three, four, five] = ids
    const received = changesOf(raw).map(({ ids: sent, data }) => [data.type, data.record?.['n'], sent])
    t.same(received, [
      ['INSERT', 4, [ids[0], two, three]],
      ['INSERT', 4, [five]],
      ['INSERT', 5, [ids[0], three]],
      ['DELETE', undefined, [two, four]],
    ])
    t.same(changesOf(raw)[1]?.data.columns, [{ name: 'n', type: 'float8' }])
    t.same(changesOf(raw)[1]?.data.record, { n: 4 })
    raw.leave()
  })

  t.test('A join names what is wrong with a subscription', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    await createNotes(tenant, { name: 'quiet', events: false })
    const cases: [object, RegExp][] = [
      [{ ...all, table: 'quiet' }, /^UnableToSubscribeToChanges: .*"quiet".* Set "events": true/],
      [{ ...all, table: 'missing' }, /"missing" are not events/],
      [{ ...all, event: 'TRUNCATE' }, /Unknown event "TRUNCATE". Allowed: \*, INSERT, UPDATE, DELETE/],
      [{ ...all, schema: 'secret' }, /Unknown schema "secret". Allowed: public/],
      [{ ...all, filter: 'n' }, /Invalid condition "n"/],
      [{ ...all, filter: 'n=near.1' }, /Unknown operator "near". Allowed: eq,/],
      [{ ...all, filter: 'x=eq.1' }, /has no column "x". It has: id, owner_id, text, n, at, data/],
      [{ ...all, filter: 'n=eq.many' }, /column "n" is not of its type float8/],
      [{ ...all, filter: 'data=gt.1' }, /type jsonb of the column "data" cannot be ordered/],
      [{ ...all, filter: 'text=match.(' }, /Invalid regular expression "\("/],
      [
        { ...all, filter: Array(11).fill('text=like.a%').join(',') },
        /at most 10 patterns and regular expressions, not 11/,
      ],
      [{ ...all, filter: 'n=is.seven' }, /Invalid value "seven" of "is"/],
      [{ ...all, filter: 'n=in.1' }, /Invalid list "1" of "in"/],
      [{ ...all, filter: `n=in.(${Array(101).fill('1').join(',')})` }, /at most 100 values, not 101/],
      [{ ...all, select: ['nothing'] }, /has no column "nothing"/],
      [{ event: '*', schema: 'public', filter: 'n=eq.1' }, /require a table/],
    ]
    for (const [wanted, reason] of cases) {
      const { raw, reply } = await follow(tenant, undefined, wanted)
      t.match(reply.payload, { status: 'error', response: { reason } }, JSON.stringify(wanted))
      raw.leave()
    }
  })

  t.test('A change with a lower number that commits later is not skipped', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    const { raw } = await follow(tenant, 'service', all)
    const slow = new pg.Client({ connectionString: tenant.home.adminUrl })
    await slow.connect()
    await slow.query(`select set_config('app.tenant_id', $1, false), set_config('app.role', 'service_role', false)`, [
      tenant.id,
    ])
    await slow.query('begin')
    await slow.query(`insert into notes (owner_id, n) values ('ada', 1)`)
    await insertNote(tenant, 'ada', { n: 2 })
    t.same(changesOf(raw), [])
    await slow.query('commit')
    await slow.end()
    await until(() => changesOf(raw).length === 2)
    t.same(
      changesOf(raw).map(({ data }) => data.record?.['n']),
      [1, 2],
    )
    raw.leave()
  })

  t.test('A client that joins during a transaction receives its change', async () => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    const slow = new pg.Client({ connectionString: tenant.home.adminUrl })
    await slow.connect()
    await slow.query(`select set_config('app.tenant_id', $1, false), set_config('app.role', 'service_role', false)`, [
      tenant.id,
    ])
    const { raw: first } = await follow(tenant, 'service', all)
    await slow.query('begin')
    await slow.query(`insert into notes (owner_id, n) values ('ada', 1)`)
    const { raw } = await follow(tenant, 'service', all)
    await slow.query('commit')
    await slow.end()
    await until(() => changesOf(raw).length === 1 && changesOf(first).length === 1)
    for (const each of [first, raw]) each.leave()
  })

  t.test('A pattern that takes too long ends only the channel that has it', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    const { raw: slow } = await follow(tenant, 'service', {
      ...all,
      filter: 'text=match.^(a+)(a+)(a+)(a+)(a+)\\1\\2\\3\\4\\5$',
    })
    const { raw } = await follow(tenant, 'service', { ...all, filter: 'text=like.%a' })
    await insertNote(tenant, 'ada', { text: 'a'.repeat(301) })
    await until(() => changesOf(raw).length === 1 && slow.of('phx_close').length === 1)
    t.match(slow.of('system').at(-1)?.payload, { status: 'error', message: /^ChangesEnded: Matching a pattern/ })
    t.same(raw.of('phx_close'), [])
    for (const each of [slow, raw]) each.leave()
  })

  t.test('A record that is too large for an event is reported with its key and an error', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    const { raw } = await follow(tenant, 'service', all)
    await runSql(
      tenant,
      `insert into notes (owner_id, data)
         select 'ada', jsonb_build_object('text', string_agg(md5(n::text), '')) from generate_series(1, 80000) n`,
    )
    await until(() => changesOf(raw).length === 1)
    t.match(changesOf(raw)[0]?.data, { type: 'INSERT', errors: ['Error 413: Payload Too Large'] })
    t.same(Object.keys(changesOf(raw)[0]?.data.record ?? {}), ['id'])
    raw.leave()
  })

  t.test('Numbers keep all their digits', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    const { raw } = await follow(tenant, 'service', all)
    const texts: string[] = []
    raw.socket.on('message', (data: Buffer) => texts.push(data.toString()))
    await runSql(
      tenant,
      `insert into notes (owner_id, data) values ('ada', '{"big": 12345678901234567890, "exact": 1.10}')`,
    )
    await until(() => changesOf(raw).length === 1)
    t.match(texts.at(-1), /"big":12345678901234567890/)
    t.match(texts.at(-1), /"exact":1\.10/)
    raw.leave()
  })
})
