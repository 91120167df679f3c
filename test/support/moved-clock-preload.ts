// Node loads this file before a service's own program. It moves the wall clock by the offset in a file, and sleeps follow the
// moved clock. The monotonic clock stays the machine's.
import { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'

const file = process.env['TENANTRY_TEST_CLOCK']
if (file === undefined) throw new Error('TENANTRY_TEST_CLOCK names no file')

/** Milliseconds for which an offset that was read is valid; also the interval at which a sleep reads the clock. */
const freshMilliseconds = 20

const MachineDate = Date
let ahead = 0
let readAt = -Infinity

function now(): number {
  const at = performance.now()
  if (at - readAt >= freshMilliseconds) {
    ahead = Number(readFileSync(String(file), 'utf8'))
    readAt = at
  }
  return MachineDate.now() + ahead
}

globalThis.Date = new Proxy(MachineDate, {
  construct: (target, given, made) => Reflect.construct(target, given.length === 0 ? [now()] : given, made) as object,
  apply: () => new MachineDate(now()).toString(),
  get: (target, name, receiver): unknown => (name === 'now' ? now : Reflect.get(target, name, receiver)),
})

const sleep = timers.setTimeout
timers.setTimeout = async <T>(milliseconds = 1, value?: T, options?: Parameters<typeof sleep>[2]): Promise<T> => {
  const due = now() + milliseconds
  for (let remaining = milliseconds; remaining > 0; remaining = due - now())
    await sleep(Math.min(remaining, freshMilliseconds), undefined, options)
  return value as T
}
syncBuiltinESMExports()
