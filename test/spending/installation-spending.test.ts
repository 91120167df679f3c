// A whole platform with prices: a limit that is reached rejects the tenant's requests, and a higher one admits them again.
import { join } from 'node:path'
import t from 'tap'
import { pricesFile } from '#test/billing/support/prices.ts'
import { startPlatform } from '#test/support/platform.ts'
import { until } from '#test/support/until.ts'
import { startWebhookReceiver } from '#test/support/webhook-receiver.ts'

const folder = t.testdir({ 'prices.json': JSON.stringify(pricesFile) })
const receiver = await startWebhookReceiver(t)
const platform = await startPlatform({
  logLevel: 'error',
  control: { TENANTRY_PRICES_FILE: join(folder, 'prices.json'), TENANTRY_WEBHOOKS_MAY_REACH: '127.0.0.0/8' },
})
t.teardown(() => platform.stop())
await platform.startControlPlane()

t.test('A spending limit reaches gateways and webhooks within seconds, and so does its end', async (t) => {
  const webhook = await platform.call('POST', '/v1/webhooks', { url: receiver.url, types: ['spending.reached'] })
  receiver.secret = String(webhook.body['secret'])
  const { body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name: 'acme', plan: 'Free', region: 'local' },
    { prefer: 'wait=30' },
  )
  const { secret_key: key } = body['keys'] as { secret_key: string }
  const id = String(body['tenant_id'])
  const path = `/v1/tenants/${id}/spending-limit`
  const request = () => platform.tenantCall('acme', 'GET', '/storage/v1/bucket', { key })
  const statusIs = (status: number) =>
    until(async () => (await request()).status === status, `the gateway responds with ${status}`)
  await statusIs(200)

  await platform.call('POST', `/v1/tenants/${id}/adjustments`, { description: 'setup', amount: '50' })
  const set = await platform.call('PUT', path, { amount: '5' })
  t.match(set, { status: 200, body: { amount: '5.00', percent: Number, rejects_until: String } })
  await statusIs(402)
  t.match(await (await request()).json(), { code: 'SPENDING_LIMIT_REACHED', resets_at: set.body['rejects_until'] })
  await until(() => receiver.messages.length === 1, 'the webhook receives the message')
  t.match(receiver.messages[0], {
    type: 'spending.reached',
    data: {
      tenant_id: id,
      percent: 100,
      limit: '5.00',
      currency: 'EUR',
      action: 'reject',
      upcoming: set.body['upcoming'],
    },
  })

  t.match(await platform.call('PUT', path, { amount: '1000' }), { status: 200, body: { rejects_until: null } })
  await statusIs(200)
  t.match(await platform.call('PUT', path, { amount: '5', action: 'notify' }), { body: { rejects_until: null } })
  t.equal((await request()).status, 200)
  await platform.call('PUT', path, { amount: '5' })
  await statusIs(402)
  t.equal((await platform.call('DELETE', path)).status, 204)
  await statusIs(200)
})
