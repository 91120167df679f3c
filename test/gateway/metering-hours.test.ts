// A gateway counts in the hours of the control plane, whatever its own clock shows. It reports an hour as complete only
// when no count of that hour can follow.
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
    `A gateway whose clock is ${skew / hour} hours off counts in the hours of the control plane, also after a restart`,
    async (t) => {
      const now = () => Date.now() + skew
      // This is the last hour of a month: a day more or less is another month.
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

t.test('A gateway whose clock is set while it runs continues to count in the same hour', async (t) => {
  let skew = 0
  const setting = await startSetting(t, { now: () => Date.now() + skew })
  // This is far from the end of the hour.
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

t.test('A gateway that starts before its control plane counts in its hours from the first request', async (t) => {
  const setting = await startSetting(t)
  const { control } = setting
  await control.stop()
  await rm(join(setting.data, 'control-clock.json'))
  // No push sends the time.
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
})

t.test('An hour is complete once all of its counts are acknowledged, also those of earlier starts', async (t) => {
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
  // The request counts in the 22nd hour. The control plane does not acknowledge it before the next start.
  control.pushResponse = () => 'rejected'
  await send(setting.gateway.port, { path: '/t/acme/rest/v1/x' })
  await setting.restart()
  t.equal(requests(setting), 1)
  later = 2 * hour
  control.pushResponse = () => 'stored'
  await until(() => lastReported() === '2026-03-31T23:00:00.000Z')
  t.equal(requests(setting), 2)
  // No later push contains a count of an hour that was reported as complete.
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
    'with the boot that counted it',
  )
})

t.test('The clock continues by itself, never goes back, and restores what it can read', async (t) => {
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
  t.equal(clock.now(), 1_000_000, "the gateway's own clock, as long as no other is known")
  time.elapsed += 100
  await clock.received(new Date(500_000).toISOString(), time.elapsed - 100)
  t.ok(clock.known)
  t.equal(clock.now(), 500_050, 'the response took half of the round trip')
  time.elapsed += 1_000
  time.wall -= 86_400_000
  t.equal(clock.now(), 501_050)
  await clock.received(new Date(400_000).toISOString(), time.elapsed)
  t.equal(clock.now(), 501_050, 'the clock waits instead of going back')
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
  t.same(errors, Array(2).fill("The stored difference to the control plane's clock cannot be read."))
})
