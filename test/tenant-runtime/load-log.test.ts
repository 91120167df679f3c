// How the log reports requests that fail because of their tenant's own load.
import t from 'tap'
import { EventReader } from '#test/support/event-reader.ts'
import { startRuntime } from '#test/support/runtime.ts'

t.test('The log names a tenant whose requests fail under load once, however many they are', async (t) => {
  const runtime = await startRuntime(t, { maxSubscribers: 1, logLevel: 'warn' })
  const tenants = [await runtime.addTenant(), await runtime.addTenant()]
  for (const tenant of tenants) {
    const reader = await EventReader.open(tenant, '/events/v1', tenant.as('service'))
    for (let n = 0; n < 10; n++) {
      const { status, text } = await tenant.request('GET', '/events/v1', { as: 'service' })
      t.equal(status, 503)
      t.match(JSON.parse(text), { code: 'TOO_MANY_SUBSCRIBERS' })
    }
    reader.leave()
  }
  t.match(
    runtime.errors.map((line) => JSON.parse(line) as unknown),
    tenants.map(({ id }) => ({ level: 40, tenant: id, code: 'TOO_MANY_SUBSCRIBERS' })),
  )
  t.equal(runtime.errors.length, 2)
})
