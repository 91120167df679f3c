// What the gateway of a whole installation does with channels: it rejects connections beyond the limits of the plan, and those of a
// tenant that is suspended or deleted end with the reason.
import { createClient } from '@supabase/supabase-js'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { WebSocket } from 'ws'
import { controlCall } from '#test/support/control-call.ts'
import { removeInstallation, startInstallation, type Installation } from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'
import { RawSocket } from './support/raw-socket.ts'

interface Tenant {
  id: string
  url: string
  publishableKey: string
}

let installation: Installation

async function createTenant(name: string, plan: 'Free' | 'Pro', more: object = {}): Promise<Tenant> {
  const { tenant_id: id, keys } = await controlCall<{ tenant_id: string; keys: { publishable_key: string } }>(
    installation,
    'POST',
    '/v1/tenants',
    { name, plan, region: 'local', ...more },
  )
  return { id, url: `${installation.gatewayUrl}/t/${name}`, publishableKey: keys.publishable_key }
}

/** Returns the response to a request for a WebSocket that is rejected. */
async function rejection({ url, publishableKey }: Tenant) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/realtime/v1/websocket?vsn=2.0.0&apikey=${publishableKey}`)
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
  let text = ''
  for await (const chunk of response) text += String(chunk)
  const { statusCode: status, headers } = response
  return { status, headers, body: JSON.parse(text) as Record<string, unknown> }
}

/** Subscribes an unmodified client to a channel, and records every status with its error, and what the server reports. */
function subscribe({ url, publishableKey }: Tenant) {
  const client = createClient(url, publishableKey)
  const statuses: string[] = []
  const errors: string[] = []
  const reports: unknown[] = []
  client
    .channel('room')
    .on('system', {}, (message: { status: string; message: string }) => reports.push([message.status, message.message]))
    .subscribe((status, error) => {
      statuses.push(status)
      if (error !== undefined) errors.push(error.message)
    })
  return {
    statuses,
    errors,
    reports,
    untilSubscribed: () => until(() => statuses.at(-1) === 'SUBSCRIBED', `a subscription, after ${String(statuses)}`),
    leave: () => client.realtime.disconnect(),
  }
}

t.test('Channels at the gateway', { timeout: 240_000 }, async (t) => {
  installation = await startInstallation({ runtimes: 1 })
  t.teardown(() => removeInstallation(installation))

  await t.test('A connection beyond those of the plan is rejected, until another one ends', async (t) => {
    const tenant = await createTenant('crowded', 'Free')
    const open = await Promise.all(Array.from({ length: 100 }, () => RawSocket.open(tenant)))
    t.teardown(() => {
      for (const raw of open) raw.leave()
    })
    const { status, headers, body } = await rejection(tenant)
    t.equal(status, 429)
    t.same(body, {
      statusCode: '429',
      error: 'too_many_requests',
      code: 'QUOTA_CONNECTIONS',
      message: "The plan's 100 long-lived connections are all open.",
      limit: 100,
      used: 100,
      resets_at: null,
    })
    t.match(headers, { 'retry-after': '5', 'content-type': /^application\/json/, 'x-request-id': /./ })
    const follower = subscribe(tenant)
    t.teardown(follower.leave)
    await until(() => follower.statuses.length > 0, 'the rejection')
    t.same(follower.statuses, ['CHANNEL_ERROR'])
    t.match(follower.errors, [/./])
    t.ok(
      open.every(({ closed }) => closed === undefined),
      'open connections continue',
    )
    open.pop()?.leave()
    await follower.untilSubscribed()
    t.match(await rejection(tenant), { status: 429, body: { code: 'QUOTA_CONNECTIONS' } })
  })

  await t.test(
    'Connections count towards the rate of requests, and the client connects when it allows that',
    async (t) => {
      const tenant = await createTenant('hasty', 'Pro', { rate_limit: { per_second: 1, burst: 2 } })
      const open = await Promise.all([RawSocket.open(tenant), RawSocket.open(tenant)])
      t.teardown(() => {
        for (const raw of open) raw.leave()
      })
      const { status, headers, body } = await rejection(tenant)
      t.equal(status, 429)
      t.match(body, {
        statusCode: '429',
        error: 'too_many_requests',
        code: 'RATE_LIMITED',
        message: 'The tenant allows 1 requests per second, in bursts of up to 2.',
        limit: 2,
        used: 2,
        resets_at: /^20/,
      })
      t.match(headers, {
        'retry-after': '1',
        'ratelimit-limit': '2',
        'ratelimit-remaining': '0',
        'ratelimit-reset': '1',
      })
      // Messages on open connections do not count as requests.
      const replies = await Promise.all([1, 2, 3, 4].map((n) => open[0].join(`realtime:${n}`)))
      for (const { reply } of replies) t.match(reply.payload, { status: 'ok' })
      const follower = subscribe(tenant)
      t.teardown(follower.leave)
      await follower.untilSubscribed()
    },
  )

  const unserved = async (tenant: Tenant) => {
    const follower = subscribe(tenant)
    await follower.untilSubscribed()
    const raw = await RawSocket.open(tenant)
    await raw.join('realtime:room')
    return { follower, raw }
  }

  for (const isolation of ['schema-per-tenant', 'database-per-tenant'])
    await t.test(
      `A suspension of a tenant with ${isolation} ends channels and connections with its reason, and clients return after it`,
      async (t) => {
        const tenant = await createTenant(`unpaid-${isolation.split('-')[0]}`, 'Pro', { isolation })
        const { follower, raw } = await unserved(tenant)
        t.teardown(follower.leave)
        const reason = `Invoice 2026-10 is not paid – ${'please call us. '.repeat(6)}`.trim()
        const before = performance.now()
        await controlCall(installation, 'PATCH', `/v1/tenants/${tenant.id}`, {
          suspended: true,
          suspend_reason: reason,
          payment_required: true,
        })
        const { code, reason: shown } = await raw.untilClosed()
        await until(() => follower.statuses.length > 1, 'the end of the channel')
        t.comment(`ended after ${(performance.now() - before).toFixed(0)} ms`)
        t.equal(code, 1008)
        t.ok(Buffer.byteLength(shown) > 119 && `TenantSuspended: ${reason}`.startsWith(shown), shown)
        const message = `TenantSuspended: ${reason}`
        t.match(
          raw.of('system').map(({ topic, payload }) => ({ topic, payload })),
          [{ topic: 'realtime:room', payload: { extension: 'system', status: 'error', message, channel: 'room' } }],
        )
        t.same(follower.reports, [['error', message]])
        t.equal(follower.statuses[1], 'CHANNEL_ERROR')
        t.equal(follower.errors[0], `socket closed: 1008 (${shown})`)
        t.match(await rejection(tenant), { status: 402, body: { code: 'PAYMENT_REQUIRED' } })
        t.notOk(follower.statuses.slice(1).includes('SUBSCRIBED'))
        await controlCall(installation, 'PATCH', `/v1/tenants/${tenant.id}`, { suspended: false })
        await follower.untilSubscribed()
      },
    )

  await t.test('The deletion of a tenant ends its channels and connections with the reason', async (t) => {
    const tenant = await createTenant('gone', 'Pro')
    const { follower, raw } = await unserved(tenant)
    t.teardown(follower.leave)
    await controlCall(installation, 'DELETE', `/v1/tenants/${tenant.id}`)
    const message = 'TenantGone: The tenant was deleted or is served elsewhere.'
    t.same(await raw.untilClosed(), { code: 1001, reason: message })
    await until(() => follower.statuses.length > 1, 'the end of the channel')
    t.same([follower.reports[0], follower.errors[0]], [['error', message], `socket closed: 1001 (${message})`])
    t.match(await rejection(tenant), { status: 404 })
  })
})
