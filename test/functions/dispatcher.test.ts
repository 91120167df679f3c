// The order in which the triggers of many tenants are read after a start of the runtime.
import { once } from 'node:events'
import t from 'tap'
import { defaultDispatchPace } from '#tenant-runtime/functions/triggers/dispatch.ts'
import { Dispatcher } from '#tenant-runtime/functions/triggers/dispatcher.ts'
import type { Tenant } from '#tenant-runtime/tenancy/tenant.ts'
import { until } from '#test/support/until.ts'

t.test('Tenants are read one by one, and one whose database does not respond does not stop the others', async (t) => {
  const stop = new AbortController()
  const silent = 't3'
  const read: string[] = []
  let reading = 0
  let maxReading = 0
  const tenantOf = (id: string) => ({
    id,
    database: {
      async read() {
        read.push(id)
        if (id === silent) return once(stop.signal, 'abort').then(() => [])
        maxReading = Math.max(maxReading, ++reading)
        await new Promise((resolve) => setTimeout(resolve, 30))
        reading--
        return [{ rows: [] }, { rows: [] }, { rows: [{ state: '{"tables":[],"routines":[]}' }] }]
      },
    },
  })
  const tenants = Array.from({ length: 8 }, (_, n) => tenantOf(`t${n}`) as unknown as Tenant)
  const errors: Error[] = []
  const dispatcher = new Dispatcher({
    tenants: () => tenants,
    tenantOf: (id) => tenants.find((tenant) => tenant.id === id),
    recheckMilliseconds: undefined,
    invoke: () => Promise.reject(new Error('no function is invoked')),
    now: () => new Date(),
    random: () => 0.5,
    elapsed: () => performance.now(),
    pace: defaultDispatchPace,
    onError: (error) => errors.push(error),
  })
  const ended = dispatcher.run(stop.signal)
  await until(() => read.length === tenants.length, 'all tenants are read')
  t.same(
    read,
    tenants.map(({ id }) => id),
  )
  t.equal(maxReading, 1)
  t.same(errors, [])
  stop.abort()
  await ended
})
