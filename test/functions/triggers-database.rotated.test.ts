// Functions with a trigger on a table receive every change in order, until they succeed, whichever client wrote the change.
import t from 'tap'
import { maxAttempts, waitAfter } from '#tenant-runtime/functions/triggers/retry.ts'
import { effort } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { deployFunction, invoke } from './support/deployed.ts'
import { listener, makeNotes, onNotes, open, quick, runs, status, waiting } from './support/listener.ts'
import { secondRuntime } from './support/second-runtime.ts'
import { command, forever } from './support/wasm.ts'

/** This runtime does not deliver, so that deliveries stay in the table. */
const undelivered = startRuntime(t)
const withoutDispatch = async () => ({ tenant: await (await undelivered).addTenant() })

t.test('A delivery contains the record before and after the change, whichever client wrote it', async (t) => {
  const { tenant } = await withoutDispatch()
  await makeNotes(tenant)
  for (const operation of ['Insert', 'Update', 'Delete'])
    await deployFunction(tenant, { name: operation.toLowerCase(), wasm: listener, trigger: onNotes(operation) })
  t.same(await status(tenant, 'insert'), { trigger_status: 'ready' })
  const made = await tenant.request('POST', '/rest/v1/notes', { as: 'ada', body: { text: 'one' } })
  const { id } = made.json()
  await tenant.request('PATCH', `/rest/v1/notes/${String(id)}`, { as: 'ada', body: { text: 'two' } })
  await query(tenant.home.adminUrl, "update notes set id = '00000000-0000-4000-8000-000000000000'")
  await query(tenant.home.adminUrl, 'delete from notes')
  const moved = '00000000-0000-4000-8000-000000000000'
  const shown = (await waiting(tenant)).map(({ name, payload }) => [name, payload])
  const event = (type: string, record: object | null, old_record: object | null) => ({
    type,
    table: 'notes',
    schema: tenant.id,
    record,
    old_record,
    timestamp: String,
  })
  t.match(shown, [
    ['insert', event('INSERT', { id, text: 'one', owner_id: 'ada' }, null)],
    ['update', event('UPDATE', { id, text: 'two', owner_id: 'ada' }, { id, text: 'one', owner_id: 'ada' })],
    ['update', event('UPDATE', { id: moved, text: 'two', owner_id: 'ada' }, { id, text: 'two', owner_id: 'ada' })],
    ['delete', event('DELETE', null, { id: moved, text: 'two', owner_id: 'ada' })],
  ])
  t.notMatch(JSON.stringify(shown), 'tenant_id', 'a column that is not a field is not delivered')
  await query(tenant.home.adminUrl, "begin; insert into notes (text) values ('never'); rollback")
  t.equal((await waiting(tenant)).length, 4, 'a change that is rolled back is not delivered')
  const rejected = await tenant.request('POST', '/rest/v1/notes', { as: 'ada', body: { text: 'x', owner_id: 'ben' } })
  t.equal(rejected.status, 403)
  t.equal((await waiting(tenant)).length, 4)
})

t.test('Each record of a bulk statement is delivered in order, to each listening function', async (t) => {
  const { tenant } = await withoutDispatch()
  await makeNotes(tenant)
  for (const name of ['first', 'second'])
    await deployFunction(tenant, { name, wasm: listener, trigger: onNotes('Insert') })
  await query(tenant.home.adminUrl, "insert into notes (text) select 'note ' || n from generate_series(1, 10000) n")
  const deliveries = await tenant.rows(
    `select f.name, array_agg(payload -> 'record' ->> 'text' order by seq) as texts from function_deliveries d
      join functions f on f.id = d.function_id group by 1 order by 1`,
  )
  const texts = Array.from({ length: 10_000 }, (_, n) => `note ${n + 1}`)
  t.same(deliveries, [
    { name: 'first', texts },
    { name: 'second', texts },
  ])
})

t.test('A delivery is deleted after its run, and the record names the trigger', async (t) => {
  const { tenant } = await open(t)
  await makeNotes(tenant)
  await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
  await query(tenant.home.adminUrl, "insert into notes (text) select 'note ' || n from generate_series(1, 20) n")
  await until(async () => (await waiting(tenant)).length === 0)
  t.equal(await runs(tenant), 20)
  t.same(await tenant.rows('select distinct trigger, status, user_id from function_invocations'), [
    { trigger: 'database', status: 'success', user_id: null },
  ])
})

t.test('A delivery is deleted in the transaction that records the end of its run', async (t) => {
  const { tenant } = await open(t)
  await makeNotes(tenant)
  await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
  const count = 100
  await query(tenant.home.adminUrl, `insert into notes (text) select 'note ' || n from generate_series(1, ${count}) n`)
  const sums = new Set<number>()
  let remaining = count
  while (remaining > 0) {
    const [row] = await tenant.rows(
      `select (select count(*) from function_deliveries)::int as waiting,
         (select count(*) from function_invocations where state = 'ended')::int as ended`,
    )
    remaining = Number(row?.['waiting'])
    sums.add(remaining + Number(row?.['ended']))
  }
  t.same([...sums], [count], 'no moment shows both or neither')
})

t.test('A failing delivery is dead after eight attempts, the next ones continue, and a replay succeeds', async (t) => {
  const { tenant, clock, runtime } = await open(t)
  await makeNotes(tenant)
  await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
  clock.stopped = clock.now()
  await query(tenant.home.adminUrl, "insert into notes (text) values ('broken'), ('fine'), ('broken'), ('fine')")
  const attempts = async () => (await waiting(tenant)).map((delivery) => [delivery['state'], delivery['attempts']])
  for (let attempt = 1; attempt < maxAttempts; attempt++) {
    await until(async () => (await waiting(tenant))[0]?.['attempts'] === attempt)
    t.same(
      await attempts(),
      [
        ['waiting', attempt],
        ['waiting', 0],
        ['waiting', 0],
        ['waiting', 0],
      ],
      'the deliveries behind it wait',
    )
    const [first] = await waiting(tenant)
    const wait = (first as { next_attempt_at: Date }).next_attempt_at.getTime() - clock.now()
    t.equal(wait, waitAfter(attempt, 0.5), `after attempt ${attempt} it waits ${wait} ms`)
    clock.stopped += wait
    runtime.notify(tenant.id)
  }
  await until(async () => (await waiting(tenant))[0]?.['state'] === 'dead' && (await waiting(tenant)).length === 3)
  t.equal(await runs(tenant), 1, 'the next delivery succeeded')
  for (let attempt = 1; attempt < maxAttempts; attempt++) {
    await until(async () => (await waiting(tenant))[1]?.['attempts'] === attempt)
    clock.stopped += waitAfter(attempt, 0.5) ?? 0
    runtime.notify(tenant.id)
  }
  await until(
    async () => (await waiting(tenant)).length === 2 && (await waiting(tenant)).every(({ state }) => state === 'dead'),
  )
  t.equal(await runs(tenant, 'error'), 2 * maxAttempts)
  t.equal(await runs(tenant), 2)

  const dead = await tenant.request('GET', '/functions/v1/listener/deliveries?status=dead&limit=1', { as: 'service' })
  const page = dead.json() as { deliveries: Record<string, unknown>[]; next_cursor: string }
  t.match(page.deliveries, [
    {
      status: 'dead',
      attempts: maxAttempts,
      last_error: /exited with code 1.*it can not take this/,
      payload: { record: { text: 'broken' } },
    },
  ])
  const rest = (
    await tenant.request('GET', `/functions/v1/listener/deliveries?status=dead&limit=5&cursor=${page.next_cursor}`, {
      as: 'service',
    })
  ).json() as typeof page
  t.equal(rest.deliveries.length, 1)
  t.equal(rest.next_cursor, null)
  t.equal((await tenant.request('GET', '/functions/v1/listener/deliveries', { as: 'ada' })).status, 403)

  await tenant.request('PATCH', '/functions/v1/listener', {
    as: 'service',
    body: { config: { environment: { REPAIRED: 'yes' } } },
  })
  const replayed = await tenant.request(
    'POST',
    `/functions/v1/listener/deliveries/${String(page.deliveries[0]?.['seq'])}/replay`,
    { as: 'service' },
  )
  t.same(replayed.json(), { replayed: 1 })
  await until(async () => (await waiting(tenant)).length === 1)
  t.same((await tenant.request('POST', '/functions/v1/listener/deliveries/replay', { as: 'service' })).json(), {
    replayed: 1,
  })
  await until(async () => (await waiting(tenant)).length === 0)
  t.equal(await runs(tenant), 4)
  t.equal(
    (await tenant.request('POST', '/functions/v1/listener/deliveries/1/replay', { as: 'service' })).json()['code'],
    'NO_SUCH_DELIVERY',
  )
})

t.test('A response of 400 or more is a failure, and a delivery can be deleted', async (t) => {
  const { tenant, clock } = await open(t)
  await makeNotes(tenant)
  await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
  clock.stopped = clock.now()
  await query(tenant.home.adminUrl, "insert into notes (text) values ('rejected')")
  await until(async () => (await waiting(tenant))[0]?.['attempts'] === 1)
  const [delivery] = await waiting(tenant)
  t.equal(delivery?.['last_error'], 'The function responded with status 422.')
  t.equal(
    (
      await tenant.request('DELETE', `/functions/v1/listener/deliveries/${String(delivery?.['seq'])}`, {
        as: 'service',
      })
    ).status,
    204,
  )
  t.same(await waiting(tenant), [])
  t.equal(
    (
      await tenant.request('DELETE', `/functions/v1/listener/deliveries/${String(delivery?.['seq'])}`, {
        as: 'service',
      })
    ).status,
    404,
  )
})

t.test('The delivery of a very large record contains only its key', async (t) => {
  const { tenant } = await withoutDispatch()
  await query(
    tenant.home.adminUrl,
    'create table big (number bigint primary key, text text); alter table big enable row level security',
  )
  await deployFunction(tenant, {
    name: 'listener',
    wasm: listener,
    trigger: { Database: { table: 'big', operation: 'Insert' } },
  })
  await query(
    tenant.home.adminUrl,
    "insert into big values (1, 'small'), (2, (select string_agg(md5(n::text), '') from generate_series(1, 40000) n))",
  )
  t.match(
    (await waiting(tenant)).map(({ payload }) => payload),
    [
      { record: { number: 1, text: 'small' }, old_record: null },
      { record: { number: 2 }, old_record: null, too_large: true },
    ],
  )
})

t.test('A client with SQL access as a user cannot create, read, change or delete a delivery', async (t) => {
  const { tenant } = await withoutDispatch()
  await makeNotes(tenant)
  const id = await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
  for (const role of ['authenticated', 'anon']) {
    const as = (statement: string) =>
      query(
        tenant.home.url,
        `select set_config('app.tenant_id', '${tenant.id}', false), set_config('app.role', '${role}', false),
          set_config('app.user_id', 'ada', false); ${statement}`,
      )
    await as("insert into notes (owner_id, text) values ('ada', 'one')")
    const before = await waiting(tenant)
    t.equal(before.length, role === 'authenticated' ? 1 : 2, 'the trigger of the record writes its delivery')
    await t.rejects(
      as(`insert into function_deliveries (function_id, payload) values ('${id}', '{"type":"INSERT"}')`),
      { code: '42501' },
    )
    await as(
      "delete from function_deliveries; update function_deliveries set state = 'dead'; delete from function_dispatcher",
    )
    await t.rejects(as("insert into function_dispatcher (holder, until) values ('ada', 'infinity')"), { code: '42501' })
    await t.rejects(
      as(`insert into function_schedule_runs (function_id, planned_at, skipped) values ('${id}', now(), 'missed')`),
      { code: '42501' },
    )
    await t.rejects(
      as(`insert into function_webhook_ids (function_id, message_id, invocation_id) values ('${id}', 'a', 'b')`),
      { code: '42501' },
    )
    await t.rejects(
      as(
        "do $$ begin if exists (select from function_deliveries) then raise exception 'seen'; end if; raise exception 'not seen'; end $$",
      ),
      { message: 'not seen' },
    )
    t.same(await waiting(tenant), before)
  }
})

t.test('A full queue does not count as an attempt', async (t) => {
  const { tenant } = await open(t, { functions: { total: 1, perTenant: 1, waitMilliseconds: 50 } })
  await makeNotes(tenant)
  await deployFunction(tenant, { name: 'spinner', wasm: command({ code: forever }), config: { timeout: 3 } })
  await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
  const spinning = invoke(tenant, 'spinner')
  await until(async () => (await tenant.rows('select 1 from function_invocations')).length === 1)
  await query(tenant.home.adminUrl, "insert into notes (text) values ('one')")
  // While the other function spins, this invocation waits as long as a delivery does.
  t.equal((await invoke(tenant, 'listener')).json()['code'], 'FUNCTIONS_BUSY')
  t.match(await waiting(tenant), [{ attempts: 0, last_error: null, next_attempt_at: null }])
  t.equal((await spinning).status, 504)
  await until(async () => (await waiting(tenant)).length === 0)
  t.same(await tenant.rows("select status from function_invocations where trigger = 'database'"), [
    { status: 'success' },
  ])
})

t.test(
  'A runtime delivers nothing while another one does, and takes over when the claim of the other expires',
  async (t) => {
    const { tenant } = await open(t)
    await makeNotes(tenant)
    await tenant.rows("insert into function_dispatcher (holder, until) values ('another', now() + interval '1 hour')")
    await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
    await query(tenant.home.adminUrl, "insert into notes (text) values ('one')")
    await until(async () =>
      [...tenant.statementTexts()].some((text) => text.startsWith('insert into function_dispatcher')),
    )
    t.equal((await waiting(tenant)).length, 1)
    t.equal(await runs(tenant), 0)
    await tenant.rows("update function_dispatcher set until = now() - interval '1 second'")
    tenant.change({})
    await until(async () => (await runs(tenant)) === 1 && (await waiting(tenant)).length === 0)
    t.not((await tenant.rows('select holder from function_dispatcher'))[0]?.['holder'], 'another')
  },
)

t.test('Of two runtimes that serve a tenant one delivers, and each change is delivered once', async (t) => {
  const { tenant, clock } = await open(t)
  await makeNotes(tenant)
  await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
  await until(async () => (await tenant.rows('select * from function_dispatcher')).length === 1)
  const other = secondRuntime(t, tenant, { now: () => new Date(clock.now()), dispatch: quick })
  const count = effort({ small: 50, full: 1_000 })
  for (let n = 0; n < 5; n++) {
    await query(
      tenant.home.adminUrl,
      `insert into notes (text) select 'note ' || n from generate_series(1, ${count / 5}) n`,
    )
    other.notify()
  }
  await until(async () => (await waiting(tenant)).length === 0)
  t.equal(await runs(tenant), count)
  t.equal(other.done(), 0)
})

t.test('Deliveries count as documents', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant({ limits: { document_bytes: 1_500_000 } })
  await makeNotes(tenant)
  await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
  const rows = Array.from({ length: 500 }, (_, n) => ({ text: `note ${n}`.padEnd(500, 'x') }))
  const responses: number[] = []
  for (let n = 0; n < 5; n++)
    responses.push((await tenant.request('POST', '/rest/v1/notes', { as: 'ada', body: rows })).status)
  t.ok(responses.includes(413), `the statuses are ${responses.join(', ')}`)
})

t.test('The wait doubles with each attempt, varies by a quarter, and ends after the last attempt', async (t) => {
  t.same(
    Array.from({ length: maxAttempts }, (_, n) => waitAfter(n + 1, 0.5)),
    [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, undefined],
  )
  t.same([waitAfter(1, 0), waitAfter(1, 1)], [750, 1_250])
})
