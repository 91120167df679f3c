// Loaded before a service's own program: its wall clock is off by what a file says, and its sleeps end by that clock. The
// monotonic clock is the machine's.
import { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'

const file = process.env['TENANTRY_TEST_CLOCK']
if (file === undefined) throw new Error('TENANTRY_TEST_CLOCK names no file')

/** Milliseconds for which what was read holds, and for which a sleep does not look. */
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
  for (let left = milliseconds; left > 0; left = due - now())
    await sleep(Math.min(left, freshMilliseconds), undefined, options)
  return value as T
}
syncBuiltinESMExports()
