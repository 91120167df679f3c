// Triggers on tables for listening functions: created, changed and removed, whatever happens to the table.
import { createHash } from 'node:crypto'
import t from 'tap'
import { planTriggers, type Listener, type TriggerState } from '#tenant-runtime/functions/triggers/table-trigger-sql.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { deployFunction } from './support/deployed.ts'
import { fields, listener, makeNotes, onNotes, open, reload, runs, status, waiting } from './support/listener.ts'

/** This runtime does not deliver, so that deliveries stay in the table. */
const undelivered = startRuntime(t)
const withoutDispatch = async () => ({ tenant: await (await undelivered).addTenant() })

t.test('A function waits for its table until a reload creates it, and schemas take effect only then', async (t) => {
  const { tenant } = await open(t)
  await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
  t.match(await status(tenant, 'listener'), {
    trigger_status: 'waiting',
    trigger_reason: /The table "notes" does not exist yet/,
  })
  await tenant.request('POST', '/rest/v1/schemas', {
    as: 'service',
    body: { name: 'notes', fields, rls_policy: { type: 'ownership', owner_field: 'owner_id' } },
  })
  await deployFunction(tenant, { name: 'another', wasm: listener, trigger: onNotes('Update') })
  t.same(
    await tenant.rows("select 1 as is_there from pg_tables where schemaname = $1 and tablename = 'notes'", [tenant.id]),
    [],
  )
  await reload(tenant)
  t.same(await status(tenant, 'listener'), { trigger_status: 'ready' })
  await tenant.request('POST', '/rest/v1/notes', { as: 'ada', body: { text: 'one' } })
  await until(async () => (await runs(tenant)) === 1)
})

t.test('A disabled, deleted or changed function receives nothing more, and fails no writer', async (t) => {
  const { tenant } = await withoutDispatch()
  await makeNotes(tenant)
  await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
  const triggers = async () =>
    (
      await tenant.rows(
        `select tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid
            where c.relnamespace = $1::regnamespace and tgname like 'functions\\_%' order by 1`,
        [tenant.id],
      )
    ).map(({ tgname }) => tgname)
  const insert = () => query(tenant.home.adminUrl, "insert into notes (text) values ('one')")
  t.same(await triggers(), ['functions_insert'])
  await tenant.request('PATCH', '/functions/v1/listener', { as: 'service', body: { enabled: false } })
  t.match(await status(tenant, 'listener'), { trigger_status: 'waiting', trigger_reason: /disabled/ })
  await insert()
  t.same(await waiting(tenant), [])
  t.same(await triggers(), [], 'writers of the table have no overhead')
  await tenant.request('PATCH', '/functions/v1/listener', {
    as: 'service',
    body: { enabled: true, trigger: onNotes('Update') },
  })
  await insert()
  t.same(await waiting(tenant), [])
  t.same(await triggers(), ['functions_update'])
  await query(tenant.home.adminUrl, "update notes set text = 'two'")
  t.equal((await waiting(tenant)).length, 2)
  t.equal((await tenant.request('DELETE', '/functions/v1/listener', { as: 'service' })).status, 204)
  t.same(await waiting(tenant), [], 'the deliveries are deleted with the function')
  await query(tenant.home.adminUrl, "update notes set text = 'three'")
  t.same(await waiting(tenant), [])
  t.same(
    await tenant.rows(
      "select proname from pg_proc where pronamespace = $1::regnamespace and proname like '%.functions'",
      [tenant.id],
    ),
    [],
    'nothing remains',
  )
})

t.test('Writers continue while a trigger is deployed, and after any change of the table', async (t) => {
  const { tenant } = await withoutDispatch()
  await makeNotes(tenant, [{ name: 'extra', type: 'string' }])
  await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
  const client = new (await import('pg')).default.Client({ connectionString: tenant.home.adminUrl })
  await client.connect()
  t.teardown(() => client.end())
  await client.query("begin; insert into notes (text) values ('open')")
  // A second listener of the same operation changes only the text of the trigger function.
  await deployFunction(tenant, { name: 'second', wasm: listener, trigger: onNotes('Insert') })
  t.same(await status(tenant, 'second'), { trigger_status: 'ready' })
  // A new trigger waits for open transactions that write to the table.
  await deployFunction(tenant, { name: 'third', wasm: listener, trigger: onNotes('Delete') })
  t.match(await status(tenant, 'third'), { trigger_status: 'waiting', trigger_reason: /in use/ })
  await client.query('commit')
  await reload(tenant)
  t.same(await status(tenant, 'third'), { trigger_status: 'ready' })
  await query(
    tenant.home.adminUrl,
    'alter table notes drop column extra, drop constraint "notes.primary"; alter table notes add column more integer default 5',
  )
  await query(tenant.home.adminUrl, "insert into notes (text) values ('after')")
  t.match((await waiting(tenant)).at(-1)?.['payload'], { record: { text: 'after', more: 5 } })
  await query(
    tenant.home.adminUrl,
    `insert into notes (text) values (repeat('x', 900000)); update notes set text = 'y'`,
  )
})

t.test('A trigger that was broken with SQL does nothing, and does not affect the others', async (t) => {
  const { tenant } = await open(t)
  await makeNotes(tenant)
  const broken = [
    '{"Database"',
    '{"Database":{"table":7}}',
    '{"Database":{"table":"function_deliveries","operation":"Insert"}}',
    '{"Schedule":{"cron":"* * * * * *"}}',
    '{"Schedule":{"cron":"never"}}',
  ]
  for (const [n, trigger] of broken.entries()) {
    await deployFunction(tenant, { name: `broken${n}`, wasm: listener })
    await tenant.rows('update functions set trigger_type = $1 where name = $2', [trigger, `broken${n}`])
  }
  await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
  await reload(tenant)
  await query(tenant.home.adminUrl, "insert into notes (text) values ('one')")
  await until(async () => (await runs(tenant)) === 1 && (await waiting(tenant)).length === 0)
  t.same(await tenant.rows('select * from function_schedule_runs'), [])
  t.same(
    await tenant.rows(
      `select 1 from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where c.relnamespace = $1::regnamespace and c.relname = 'function_deliveries'`,
      [tenant.id],
    ),
    [],
  )
})

t.test('A missing trigger is created when the runtime checks again', async (t) => {
  const { tenant } = await open(t)
  await makeNotes(tenant)
  await deployFunction(tenant, { name: 'listener', wasm: listener, trigger: onNotes('Insert') })
  await query(tenant.home.adminUrl, 'drop trigger functions_insert on notes')
  tenant.change({})
  await until(async () => (await status(tenant, 'listener'))['trigger_status'] === 'ready')
})

t.test('A deployment rejects a trigger on a system table', async (t) => {
  const { tenant } = await withoutDispatch()
  for (const table of ['functions', 'storage_objects', 'function_deliveries', 'event_log']) {
    await t.rejects(
      deployFunction(tenant, {
        name: 'listener',
        wasm: listener,
        trigger: { Database: { table, operation: 'Insert' } },
      }),
      { message: /INVALID_FUNCTION/ },
    )
  }
})

t.test('planTriggers returns the steps that create and remove triggers', async (t) => {
  const id = '00000000-0000-4000-8000-000000000001'
  const listeners: Listener[] = [{ functionId: id, table: 'notes', operation: 'Insert' }]
  const table = { name: 'notes', key: ['id'], triggers: [] as string[] }
  const before: TriggerState = { tables: [table], routines: [] }
  const steps = planTriggers(before, listeners)
  t.match(
    steps.map(({ sql }) => sql),
    [/^create or replace function "notes\.functions"/, /^create trigger functions_insert after insert on "notes"/],
  )
  const body =
    /as E?('.*')$/s
      .exec(steps[0]?.sql ?? 'no step is repeated')?.[1]
      ?.slice(1, -1)
      .replaceAll("''", "'") ?? ''
  const after: TriggerState = {
    tables: [{ ...table, triggers: ['functions_insert'] }],
    routines: [{ name: 'notes.functions', hash: createHash('md5').update(body).digest('hex') }],
  }
  t.same(planTriggers(after, listeners), [], 'nothing is done twice')
  t.match(
    planTriggers(after, []).map(({ sql, canWait }) => [sql.slice(0, 30), canWait]),
    [
      ['create or replace function "no', false],
      ['drop trigger if exists functio', true],
      ['drop function if exists "notes', true],
    ],
  )
  t.same(
    planTriggers({ tables: [], routines: after.routines }, listeners).map(({ sql }) => sql),
    ['drop function if exists "notes.functions"()'],
    'for a table that does not exist',
  )
  t.same(planTriggers({ tables: [table], routines: [] }, []), [], 'tables without listeners are unchanged')
})
