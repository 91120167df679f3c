// Functions that run at planned times: once each, whichever runtimes serve the tenant, and across changes of clocks.
import { moveLeaseHolder } from '@tenantry/contract'
import t from 'tap'
import { compileSource } from '#examples/functions/compile.ts'
import { RuntimeError } from '#tenant-runtime/errors.ts'
import { checkTrigger } from '#tenant-runtime/functions/function.ts'
import { dueTime, nextRun, type Schedule } from '#tenant-runtime/functions/triggers/schedule.ts'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { readAll } from './support/assemblyscript.ts'
import { deployFunction, invoke } from './support/deployed.ts'
import { secondRuntime } from './support/second-runtime.ts'

const nightly = await compileSource(`${readAll}
const input = readAll()
if (process.env.has('SLOW')) { let n: i64 = 0; while (n < 2500000000) n++; process.stdout.write(n.toString()) }
process.stdout.write(input)
`)

const minute = 60_000
const hour = 60 * minute
const quick = { poll: 50, lease: 2_000, again: 50 }
const planned = (tenant: TestTenant) =>
  tenant.rows(
    `select f.name, r.planned_at, r.skipped, i.status, i.trigger from function_schedule_runs r
      join functions f on f.id = r.function_id left join function_invocations i on i.id = r.invocation_id
      order by r.planned_at, f.name`,
  )
const times = async (tenant: TestTenant) =>
  (await planned(tenant)).map((row) => [(row['planned_at'] as Date).toISOString(), row['skipped'] ?? row['status']])
const at = (text: string) => new Date(text)
const iso = (time: Date | undefined) => time?.toISOString()

/** Starts half an hour ahead: the clock only moves ahead of the database's clock, which sets when a schedule begins. */
async function open(t: Parameters<typeof startRuntime>[0]) {
  const runtime = await startRuntime(t, { dispatch: quick })
  const tenant = await runtime.addTenant()
  const { clock } = runtime
  clock.stopped = Date.now()
  const begin = Math.ceil(Date.now() / minute) * minute + 30 * minute
  const hourly = `${new Date(begin).getUTCMinutes()} * * * *`
  const goTo = (time: number) => {
    clock.stopped = time
    runtime.notify(tenant.id)
  }
  return { runtime, tenant, clock, begin, hourly, goTo }
}

t.test('nextRun returns planned times in a time zone, across changes of its clocks', async (t) => {
  const berlin: Schedule = { cron: '30 2 * * *', timezone: 'Europe/Berlin' }
  t.equal(iso(nextRun(berlin, at('2026-03-27T12:00:00Z'))), '2026-03-28T01:30:00.000Z')
  t.equal(
    iso(nextRun(berlin, at('2026-03-28T12:00:00Z'))),
    '2026-03-29T01:00:00.000Z',
    'half past two does not exist on this day; the run is when the clocks have gone forward',
  )
  t.equal(iso(nextRun(berlin, at('2026-03-29T12:00:00Z'))), '2026-03-30T00:30:00.000Z')
  t.equal(
    iso(nextRun(berlin, at('2026-10-24T12:00:00Z'))),
    '2026-10-25T00:30:00.000Z',
    'half past two exists twice, and the first counts',
  )
  t.equal(iso(nextRun(berlin, at('2026-10-25T00:30:00Z'))), '2026-10-26T01:30:00.000Z', 'the second does not count')
  const hourly: Schedule = { cron: '30 * * * *', timezone: 'Europe/Berlin' }
  const all: (string | undefined)[] = []
  for (let time = at('2026-10-24T23:00:00Z'); all.length < 4;) {
    time = nextRun(hourly, time) ?? at('')
    all.push(iso(time))
  }
  t.same(
    all,
    ['2026-10-24T23:30:00.000Z', '2026-10-25T00:30:00.000Z', '2026-10-25T01:30:00.000Z', '2026-10-25T02:30:00.000Z'],
    'an hourly schedule runs every hour',
  )
  t.equal(
    iso(nextRun({ cron: '15 0 3 * * *' }, at('2026-05-01T03:00:14.999Z'))),
    '2026-05-01T03:00:15.000Z',
    'UTC without a time zone, and seconds in the first of six fields',
  )
})

t.test('dueTime returns the latest of the planned times that have passed', async (t) => {
  const schedule: Schedule = { cron: '0 * * * *' }
  const due = (since: string, now: string) => iso(dueTime(schedule, at(since), at(now)))
  t.equal(due('2026-05-01T08:00:00Z', '2026-05-01T08:59:59.999Z'), undefined)
  t.equal(due('2026-05-01T08:00:00Z', '2026-05-01T09:00:00.000Z'), '2026-05-01T09:00:00.000Z', 'at the exact moment')
  t.equal(due('2026-05-01T08:00:00Z', '2026-05-03T15:20:00Z'), '2026-05-03T15:00:00.000Z')
  t.equal(due('2026-05-01T09:00:00Z', '2026-05-01T09:00:30Z'), undefined, 'the time has run already')
  t.equal(
    iso(dueTime({ cron: '0 0 29 2 *' }, at('2024-01-01T00:00:00Z'), at('2027-01-01T00:00:00Z'))),
    '2024-02-29T00:00:00.000Z',
  )
})

t.test('dueTime returns every planned time once, whenever it is called', async (t) => {
  const schedule: Schedule = { cron: '*/7 3-5 * * *', timezone: 'America/New_York' }
  const end = at('2026-11-02T12:00:00Z')
  const wanted: string[] = []
  for (
    let time = nextRun(schedule, at('2026-10-31T12:00:00Z'));
    time !== undefined && time <= end;
    time = nextRun(schedule, time)
  )
    wanted.push(time.toISOString())
  const found: string[] = []
  let since = at('2026-10-31T12:00:00Z')
  // The interval between two calls is never longer than between two planned times.
  for (let now = since.getTime(); now <= end.getTime(); now += 53_000) {
    const due = dueTime(schedule, since, new Date(now))
    if (due === undefined) continue
    found.push(due.toISOString())
    since = due
  }
  t.same(found, wanted)
  t.equal(found.length, 54)
})

t.test('An invalid or too frequent schedule is rejected with its error', async (t) => {
  const check = (schedule: object) => checkTrigger({ Schedule: schedule }, at('2026-05-01T08:00:30Z'))
  for (const cron of [
    '* * * * *',
    '0 * * * * *',
    '30 */2 * * * *',
    '59 59 23 31 12 *',
    '@hourly',
    '0 0 1 JAN MON#1',
    '0 0 L * *',
    '0 9 * * MON-FRI',
  ])
    t.same(check({ cron }), { Schedule: { cron } }, cron)
  const rejected = (schedule: object, message: RegExp) =>
    t.throws(
      () => check(schedule),
      { constructor: RuntimeError, code: 'INVALID_FUNCTION', message },
      JSON.stringify(schedule),
    )
  for (const cron of [
    '* * * * * *',
    '*/30 * * * * *',
    '0,59 0 0 1 1 *',
    '0-1 0 0 29 2 *',
    '@secondly',
    '15,14 * * * * *',
  ])
    rejected(
      { cron },
      /has an interval of [\d.]+ s\. The shortest allowed interval is 60 s|not a valid cron expression/,
    )
  for (const cron of [
    'soon',
    '61 * * * *',
    '* * * *',
    '* * * * * * *',
    '2026-01-01T00:00:00',
    '',
    ' ',
    '* * * * x',
    '@never',
  ])
    rejected({ cron }, /cron/)
  for (const cron of ['0 0 30 2 *', '0 0 31 4,6 *']) rejected({ cron }, /has no planned time/)
  for (const timezone of ['Mars/Olympus', '+05:00', 'Europe', ''])
    rejected({ cron: '0 0 * * *', timezone }, /time zone|"trigger" must be/)
  rejected({ cron: '0 0 * * *', missed: 'always' }, /"missed"/)
  t.same(check({ cron: '0 0 * * *', timezone: 'Asia/Kathmandu', missed: 'skip' }), {
    Schedule: { cron: '0 0 * * *', timezone: 'Asia/Kathmandu', missed: 'skip' },
  })
})

t.test('A function runs at its planned time, and shows the next one', async (t) => {
  const { tenant, begin, hourly, goTo } = await open(t)
  await deployFunction(tenant, { name: 'nightly', wasm: nightly, trigger: { Schedule: { cron: hourly } } })
  const shown = async () => (await tenant.request('GET', '/functions/v1/nightly', { as: 'service' })).json()['next_run']
  t.equal(await shown(), new Date(begin).toISOString())
  goTo(begin)
  await until(async () => (await times(tenant)).some(([, status]) => status === 'success'))
  t.equal(await shown(), new Date(begin + hour).toISOString())
  goTo(begin + hour + 10_000)
  await until(async () => (await times(tenant)).filter(([, status]) => status === 'success').length === 2)
  t.same(await times(tenant), [
    [new Date(begin).toISOString(), 'success'],
    [new Date(begin + hour).toISOString(), 'success'],
  ])
  t.same(
    (await planned(tenant)).map(({ trigger }) => trigger),
    ['schedule', 'schedule'],
  )
  const list = (await tenant.request('GET', '/functions/v1/nightly/schedule?limit=1', { as: 'service' })).json()
  t.match(list, {
    planned: [
      { planned_at: new Date(begin + hour).toISOString(), outcome: 'run', reason: null, invocation_id: String },
    ],
    next_cursor: new Date(begin + hour).toISOString(),
  })
  const rest = (
    await tenant.request('GET', `/functions/v1/nightly/schedule?cursor=${String(list['next_cursor'])}`, {
      as: 'service',
    })
  ).json()
  t.match(rest, { planned: [{ planned_at: new Date(begin).toISOString() }], next_cursor: null })
  t.equal((await tenant.request('GET', '/functions/v1/nightly/schedule', { as: 'ada' })).status, 403)
})

t.test('Of several missed times the latest runs once, or is skipped', async (t) => {
  const { tenant, begin, hourly, goTo } = await open(t)
  await deployFunction(tenant, { name: 'late', wasm: nightly, trigger: { Schedule: { cron: hourly } } })
  await deployFunction(tenant, {
    name: 'strict',
    wasm: nightly,
    trigger: { Schedule: { cron: hourly, missed: 'skip' } },
  })
  goTo(begin + 5 * hour + 20 * minute)
  await until(async () => (await times(tenant)).filter(([, status]) => status !== 'error').length === 2)
  const latest = new Date(begin + 5 * hour)
  t.match(await planned(tenant), [
    { name: 'late', planned_at: latest, skipped: null, status: 'success' },
    { name: 'strict', planned_at: latest, skipped: 'missed', status: null },
  ])
  goTo(begin + 6 * hour + 30_000)
  await until(async () => (await times(tenant)).filter(([, status]) => status === 'success').length === 3)
  t.match(
    (await planned(tenant)).slice(2),
    [
      { name: 'late', skipped: null },
      { name: 'strict', skipped: null, status: 'success' },
    ],
    'half a minute late is not missed',
  )
})

t.test('Planned times before the schedule was created or enabled do not run', async (t) => {
  const { tenant, begin, hourly, goTo } = await open(t)
  await deployFunction(tenant, { name: 'nightly', wasm: nightly, trigger: { Schedule: { cron: hourly } } })
  await tenant.request('PATCH', '/functions/v1/nightly', { as: 'service', body: { enabled: false } })
  t.equal((await tenant.request('GET', '/functions/v1/nightly', { as: 'service' })).json()['next_run'], null)
  await tenant.request('PATCH', '/functions/v1/nightly', { as: 'service', body: { enabled: true } })
  // The clock of the database sets when a schedule begins. The row is as if the function had been enabled just now.
  await tenant.rows('update functions set trigger_since = $1', [new Date(begin + 3 * hour + minute).toISOString()])
  await tenant.request('PATCH', '/functions/v1/nightly', { as: 'service', body: { config: { timeout: 20 } } })
  tenant.change({})
  goTo(begin + 4 * hour)
  const time = new Date(begin + 4 * hour).toISOString()
  await until(async () => (await times(tenant)).some(([planned, status]) => planned === time && status === 'success'))
  t.same(await times(tenant), [[time, 'success']])
})

t.test('A planned time during the previous run is skipped, and recorded', async (t) => {
  const { tenant, begin, goTo } = await open(t)
  await deployFunction(tenant, {
    name: 'slow',
    wasm: nightly,
    config: { timeout: 60, environment: { SLOW: 'yes' } },
    trigger: { Schedule: { cron: '* * * * *' } },
  })
  goTo(begin)
  await until(async () => (await planned(tenant)).length === 1)
  goTo(begin + minute)
  await until(async () => (await planned(tenant)).length === 2)
  t.equal((await planned(tenant))[1]?.['skipped'], 'overlap')
  t.match((await tenant.request('GET', '/functions/v1/slow/schedule', { as: 'service' })).json()['planned'], [
    { outcome: 'skipped', reason: 'overlap', invocation_id: null },
    { outcome: 'run' },
  ])
  // An invocation by a client can run at the same time.
  t.equal((await invoke(tenant, 'slow', '', 'ada')).status, 200)
  await until(async () => (await planned(tenant))[0]?.['status'] === 'success')
  goTo(begin + 2 * minute)
  await until(async () => (await planned(tenant))[2]?.['status'] === 'success')
})

t.test('A run that was cut off counts as running until its timeout', async (t) => {
  const { tenant, begin, goTo } = await open(t)
  const id = await deployFunction(tenant, {
    name: 'nightly',
    wasm: nightly,
    config: { timeout: 100 },
    trigger: { Schedule: { cron: '* * * * *' } },
  })
  const cutOff = async (planned: number, age: string) => {
    await tenant.rows(
      `insert into function_invocations (id, function_id, trigger, timestamp) values ($1, $2, 'schedule', now() - $3::interval)`,
      [`cut-${planned}`, id, age],
    )
    await tenant.rows(
      'insert into function_schedule_runs (function_id, planned_at, invocation_id) values ($1, $2, $3)',
      [id, new Date(planned).toISOString(), `cut-${planned}`],
    )
  }
  await cutOff(begin - 20 * minute, '50 seconds')
  goTo(begin)
  await until(async () => (await planned(tenant)).length === 2)
  t.equal((await planned(tenant))[1]?.['skipped'], 'overlap')
  await tenant.rows("update function_invocations set timestamp = now() - interval '101 seconds'")
  goTo(begin + minute)
  await until(async () => (await planned(tenant))[2]?.['status'] === 'success')
})

t.test('A planned time while the home moves runs once, after the move', async (t) => {
  const { runtime, tenant, begin, goTo } = await open(t)
  await deployFunction(tenant, { name: 'nightly', wasm: nightly, trigger: { Schedule: { cron: '* * * * *' } } })
  await tenant.rows(
    `insert into function_dispatcher (holder, until) values ($1, now() + interval '1 hour')
     on conflict (only_row) do update set holder = excluded.holder, until = excluded.until`,
    [moveLeaseHolder],
  )
  goTo(begin)
  const claims = () => [...tenant.statementTexts()].filter((text) => text.includes('skipped as (')).length
  await until(() => claims() > 0, 'an attempt to claim the time')
  t.same(await planned(tenant), [], 'it neither runs nor is skipped')
  await tenant.rows('delete from function_dispatcher')
  await until(async () => {
    runtime.notify(tenant.id)
    return (await planned(tenant))[0]?.['status'] === 'success'
  })
  t.match(await planned(tenant), [{ skipped: null }])
})

t.test('Two runtimes that serve a tenant run every planned time once', async (t) => {
  const { runtime, tenant, begin, clock } = await open(t)
  for (const name of ['one', 'two'])
    await deployFunction(tenant, { name, wasm: nightly, trigger: { Schedule: { cron: '* * * * *' } } })
  const other = secondRuntime(t, tenant, { now: () => new Date(clock.now()), dispatch: quick })
  const rounds = effort({ small: 15, full: 300 })
  for (let round = 0; round < rounds; round++) {
    clock.stopped = begin + round * minute
    // Both runtimes see the planned time, or one of them does.
    await until(async () => {
      if (round % 3 !== 1) runtime.notify(tenant.id)
      if (round % 3 !== 2) other.notify()
      return (await planned(tenant)).filter(({ status }) => status === 'success').length === 2 * (round + 1)
    })
  }
  const all = await planned(tenant)
  t.equal(all.length, 2 * rounds)
  t.same(
    all.filter(({ skipped }) => skipped !== null),
    [],
    'no time was skipped',
  )
  t.same(
    await tenant.rows("select count(*)::int as n from function_invocations where trigger = 'schedule'"),
    [{ n: 2 * rounds }],
    'nothing else ran',
  )
  // A check of the round before may end late, and take a time of which only the other runtime was notified.
  t.ok(
    other.done() >= Math.floor(rounds / 3) && other.done() < 2 * rounds,
    `the other runtime took ${other.done()} of ${2 * rounds}`,
  )
})

t.test('A runtime learns of functions that another one has deployed, changed or disabled', async (t) => {
  // The runtime that serves requests starts nothing by itself.
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  let now = Date.now()
  const other = secondRuntime(t, tenant, { now: () => new Date(now), dispatch: quick, recheckMilliseconds: 50 })
  // None of the planned times below lies between now and `begin`.
  const begin = Math.ceil(now / minute) * minute + 10 * minute
  const hourlyAt = (time: number) => ({ Schedule: { cron: `${new Date(time).getUTCMinutes()} * * * *` } })
  await deployFunction(tenant, { name: 'nightly', wasm: nightly, trigger: hourlyAt(begin) })
  const comeTo = async (time: number, holds: () => Promise<boolean>) => {
    now = time
    await until(async () => {
      other.notify()
      return holds()
    })
  }
  await comeTo(begin, async () => (await times(tenant)).some(([, status]) => status === 'success'))
  await tenant.request('PATCH', '/functions/v1/nightly', {
    as: 'service',
    body: { trigger: hourlyAt(begin + 30 * minute) },
  })
  await tenant.rows('update functions set trigger_since = $1', [new Date(begin).toISOString()])
  // The old time does not run, whether the runtime knows of the change or not.
  await comeTo(begin + hour + minute, async () => (await times(tenant)).length === 2)
  t.same(
    (await times(tenant)).map(([time]) => time),
    [begin, begin + 30 * minute].map((time) => new Date(time).toISOString()),
  )
  await tenant.request('PATCH', '/functions/v1/nightly', { as: 'service', body: { enabled: false } })
  await deployFunction(tenant, { name: 'second', wasm: nightly, trigger: hourlyAt(begin + 45 * minute) })
  await comeTo(begin + 2 * hour, async () =>
    (await planned(tenant)).some(({ name, status }) => name === 'second' && status === 'success'),
  )
  const runs = await planned(tenant)
  t.equal(runs.filter(({ name }) => name !== 'second').length, 2, 'a disabled function does not run')
})
