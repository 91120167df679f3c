// The hour in which a gateway counts is the control plane's, whatever the gateway's own clock says; and an hour is said to
// be complete only when nothing of it can still come.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Counter } from '@tenantry/contract'
import t from 'tap'
import { ControlClock } from '#gateway/meter/control-clock.ts'
import { until } from '#test/support/until.ts'
import { send, startSetting, type Setting } from './support/gateway.ts'

const hour = 3_600_000
const day = 24 * hour

const requests = ({ control }: Setting) => control.total(({ meter }) => meter === 'requests')
const hoursOf = ({ control }: Setting) =>
  [...new Set(control.pushes.flatMap(({ counters }) => counters.map((counter) => counter.hour)))].sort()

for (const skew of [-day, day, -40 * 60_000, 40 * 60_000]) {
  t.test(
    `a gateway whose clock is ${skew / hour} hours off counts in the control plane's hours, over a restart without it too`,
    async (t) => {
      const now = () => Date.now() + skew
      // The last hour of a month: a day more or less would be another month's.
      const start = Date.parse('2026-03-31T23:10:00.000Z') - Date.now()
      const setting = await startSetting(t, { now })
      setting.control.now = () => new Date(Date.now() + start)
      await setting.restart()
      await setting.add('acme')
      await send(setting.gateway.port, { path: '/t/acme/rest/v1/x' })
      await until(() => requests(setting) === 1)
      await setting.control.stop()
      await setting.restart()
      await send(setting.gateway.port, { path: '/t/acme/rest/v1/x' })
      await setting.control.start()
      await until(() => requests(setting) === 2)
      t.same(hoursOf(setting), ['2026-03-31T23:00:00.000Z'])
    },
  )
}

t.test('a gateway whose clock is set while it runs goes on in the same hour', async (t) => {
  let skew = 0
  const setting = await startSetting(t, { now: () => Date.now() + skew })
  // Far from the hour's end.
  const start = Date.parse('2026-03-31T23:10:00.000Z') - Date.now()
  setting.control.now = () => new Date(Date.now() + start)
  await setting.restart()
  await setting.add('acme')
  for (const next of [0, day, -day, 40 * day]) {
    skew = next
    await send(setting.gateway.port, { path: '/t/acme/rest/v1/x' })
  }
  await until(() => requests(setting) === 4)
  t.same(hoursOf(setting), ['2026-03-31T23:00:00.000Z'])
})

t.test(
  'a gateway that was there before its first control plane counts in its hours from the first request on',
  async (t) => {
    const setting = await startSetting(t)
    const { control } = setting
    await control.stop()
    await rm(join(setting.data, 'control-clock.json'))
    // No push tells it the time.
    await setting.restart({ clockWait: 1, pushInterval: day })
    const start = Date.parse('2026-03-31T23:10:00.000Z') - Date.now()
    control.now = () => new Date(Date.now() + start)
    control.pushes.length = 0
    await control.start()
    await setting.add('acme')
    await send(setting.gateway.port, { path: '/t/acme/rest/v1/x' })
    await setting.gateway.stop(0)
    t.equal(requests(setting), 1)
    t.same(hoursOf(setting), ['2026-03-31T23:00:00.000Z'])
  },
)

t.test('an hour is complete once all that was counted in it is acknowledged, of earlier starts too', async (t) => {
  const setting = await startSetting(t)
  const { control } = setting
  const start = Date.parse('2026-03-31T21:10:00.000Z') - Date.now()
  let later = 0
  control.now = () => new Date(Date.now() + start + later)
  await setting.restart()
  control.pushes.length = 0
  await setting.add('acme')
  const lastReported = () =>
    control.pushes.findLast(({ complete_until }) => complete_until !== undefined)?.complete_until
  await send(setting.gateway.port, { path: '/t/acme/rest/v1/x' })
  await until(() => requests(setting) === 1)
  await until(() => lastReported() === '2026-03-31T21:00:00.000Z')
  later = hour
  await until(() => lastReported() === '2026-03-31T22:00:00.000Z')
  // Counted in the 22nd hour, but never acknowledged by the control plane, and then by another start.
  control.pushResponse = () => 'refused'
  await send(setting.gateway.port, { path: '/t/acme/rest/v1/x' })
  await setting.restart()
  t.equal(requests(setting), 1)
  later = 2 * hour
  control.pushResponse = () => 'stored'
  await until(() => lastReported() === '2026-03-31T23:00:00.000Z')
  t.equal(requests(setting), 2)
  // Of every push: what a later one still brings lies in no hour that was said to be complete.
  const greatest = new Map<string, number>()
  let complete = ''
  for (const { boot, counters, complete_until = '' } of control.pushes) {
    for (const { value, ...key } of counters) {
      const name = JSON.stringify([boot, key])
      if (value > (greatest.get(name) ?? 0))
        t.ok(key.hour >= complete, `${key.meter} of ${key.hour} while all before ${complete} was complete`)
      greatest.set(name, Math.max(value, greatest.get(name) ?? 0))
    }
    if (complete_until > complete) complete = complete_until
  }
  const boots = (more: (counter: Counter) => boolean) =>
    new Set(control.pushes.filter(({ counters }) => counters.some(more)).map(({ boot }) => boot)).size
  t.equal(
    boots(({ hour: of, meter }) => meter === 'requests' && of === '2026-03-31T22:00:00.000Z'),
    1,
    'under the name of the start that counted it',
  )
})

t.test('the clock runs on by itself, never goes back, and forgets nothing that it can read', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-clock-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const file = join(directory, 'control-clock.json')
  const errors: string[] = []
  const time = { wall: 1_000_000, elapsed: 500 }
  const open = async () => {
    const clock = new ControlClock({
      now: () => time.wall,
      elapsed: () => time.elapsed,
      file,
      onError: ({ message }) => errors.push(message),
    })
    await clock.load()
    return clock
  }
  const clock = await open()
  t.notOk(clock.known)
  t.equal(clock.now(), 1_000_000, 'its own, as long as nothing else is known')
  time.elapsed += 100
  await clock.received(new Date(500_000).toISOString(), time.elapsed - 100)
  t.ok(clock.known)
  t.equal(clock.now(), 500_050, 'the answer was under way for half of the time')
  time.elapsed += 1_000
  time.wall -= 86_400_000
  t.equal(clock.now(), 501_050)
  await clock.received(new Date(400_000).toISOString(), time.elapsed)
  t.equal(clock.now(), 501_050, 'it waits rather than go back')
  time.wall = 2_000_000
  await clock.received(new Date(600_000).toISOString(), time.elapsed)
  t.equal(clock.now(), 600_000)
  time.wall += 5_000
  t.equal((await open()).now(), 605_000)
  await clock.received('yesterday', time.elapsed)
  t.equal(clock.now(), 600_000)
  await writeFile(file, '{"behind_milliseconds":"1"}')
  t.notOk((await open()).known)
  await writeFile(file, 'x')
  t.notOk((await open()).known)
  t.same(errors, Array(2).fill("what was kept of the control plane's clock can not be read"))
})
