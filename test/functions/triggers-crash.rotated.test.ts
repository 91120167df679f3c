// No change is lost, and a function receives changes in order, although the runtime is killed with SIGKILL and Postgres
// crashes meanwhile.
import pg from 'pg'
import t from 'tap'
import { compileSource } from '#examples/functions/compile.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { openControl, startProcess, type RuntimeProcess } from '#test/storage/support/runtime-process.ts'
import { openScene } from '#test/storage/support/scene.ts'
import { effort, seed } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { readAll } from './support/assemblyscript.ts'

/** Compiles a function that stores each number it receives. */
const compileRecorder = () =>
  compileSource(`${readAll}
import { query } from './tenantry.as'
query("insert into received (number) values (($1::jsonb -> 'record' ->> 'number')::integer)", '[' + readAll() + ']')
`)

async function deploy({ request: send }: RuntimeProcess, wasm: Uint8Array<ArrayBuffer>): Promise<void> {
  const form = new FormData()
  form.set('name', 'recorder')
  form.set('trigger', '{"Database":{"table":"source","operation":"Insert"}}')
  form.set('config', '{"role":"service_role"}')
  form.set('wasm', new Blob([wasm]), 'recorder.wasm')
  const request = new Request('http://runtime', { method: 'POST', body: form })
  const response = await send('POST', '/functions/v1/deploy', Buffer.from(await request.arrayBuffer()), {
    'content-type': request.headers.get('content-type') ?? '',
  })
  if (response.status !== 201) throw new Error(response.text)
}

t.test('A bulk insert is delivered in order while runtime and Postgres crash', { timeout: 3_600_000 }, async (t) => {
  const scene = await openScene(t)
  const control = await openControl(t, scene)
  const chance = chanceOf(seed)
  const wasm = await compileRecorder()
  await query(
    scene.home.adminUrl,
    `
    create table source (number integer primary key); alter table source enable row level security;
    create table received (seq bigint generated always as identity primary key, number integer not null);
    alter table received enable row level security; create policy all_of_it on received using (true) with check (true)`,
  )
  let runtime = await startProcess(t, scene, control, {})
  await deploy(runtime, wasm)
  const count = effort({ small: 400, full: 10_000 })
  const bulk = (from: number, to: number) =>
    query(scene.home.adminUrl, `insert into source select generate_series(${from}, ${to})`)
  const received = async () =>
    (await scene.rows('select number from received order by seq')).map(({ number }) => Number(number))

  // A statement that a crash rolls back delivers nothing.
  const writer = new pg.Client({ connectionString: scene.home.adminUrl })
  writer.on('error', () => undefined)
  await writer.connect()
  const cut = writer
    .query('insert into source select generate_series(1, 100) from (select pg_sleep(60)) s')
    .catch((error: unknown) => error)
  await until(
    async () =>
      (await scene.rows("select 1 from pg_stat_activity where query like '%pg_sleep(60)%' and pid <> pg_backend_pid()"))
        .length === 1,
  )
  await scene.postgres.crash()
  t.ok((await cut) instanceof Error)

  const half = Math.floor(count / 2)
  await Promise.all([bulk(1, half), runtime.kill()])
  t.same(
    await scene.rows('select count(*)::int as n from function_deliveries'),
    [{ n: half }],
    'the deliveries are stored although no runtime was there',
  )
  const crashes = effort({ small: 2, full: 12 })
  for (let crash = 1; crash <= crashes; crash++) {
    runtime = await startProcess(t, scene, control, {})
    if (crash === 1) await bulk(half + 1, count)
    const enough = Math.floor((crash * count) / (crashes + 1)) + chance.below(10)
    await until(async () => (await received()).length >= enough, `a delivery after crash ${crash - 1}`, 120_000)
    if (crash % 2 === 0) await scene.postgres.crash()
    await runtime.kill()
  }
  runtime = await startProcess(t, scene, control, {})
  await until(
    async () => (await scene.rows('select 1 from function_deliveries')).length === 0,
    'the last delivery',
    600_000,
  )
  const all = await received()
  t.same(
    [...new Set(all)],
    Array.from({ length: count }, (_, n) => n + 1),
    'every record was delivered, and first deliveries are in order',
  )
  t.ok(
    all.every((number, n) => n === 0 || number >= (all[n - 1] ?? 0)),
    'a repeated delivery follows at once',
  )
  const runs = await scene.rows(
    "select status, coalesce(error_message, '') as message, count(*)::int as n from function_invocations group by 1, 2",
  )
  const of = (wanted: string) =>
    runs.filter(({ status }) => status === wanted).reduce((sum, { n }) => sum + Number(n), 0)
  t.ok(of('success') >= count - crashes - 1, `${of('success')} runs were recorded as successful`)
  t.comment(
    `${count} records, ${crashes + 2} crashes, ${all.length} deliveries, runs ${JSON.stringify(runs)}, seed ${seed}`,
  )
  await runtime.stop()
  t.same(
    await scene.rows('select holder from function_dispatcher'),
    [],
    'a runtime that stops releases the deliveries at once',
  )
})
