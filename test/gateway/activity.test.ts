// The activity that the gateway reports. The control plane pauses idle tenants by it.
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { Activity } from '@tenantry/contract'
import t from 'tap'
import { Value } from 'typebox/value'
import { WebSocket } from 'ws'
import { until } from '#test/support/until.ts'
import { send, startSetting, token, type Setting } from './support/gateway.ts'

async function whole({ gateway }: Setting): Promise<Activity> {
  const { status, body } = await send(gateway.internalPort, {
    path: '/internal/v1/activity',
    headers: { 'x-tenantry-internal': token },
  })
  const response: unknown = JSON.parse(body)
  if (status !== 200 || !Value.Check(Activity, response)) throw new Error(`activity is ${status} ${body}`)
  return response
}

async function activity(setting: Setting): Promise<Activity['tenants']> {
  return (await whole(setting)).tenants
}

t.test('The activity is the number of open requests, and the time when one last began or ended', async (t) => {
  let now = Date.parse('2026-05-01T10:00:00.000Z')
  const setting = await startSetting(t, { now: () => now })
  const { port } = setting.gateway
  const { tenant_id } = await setting.add('acme')
  await setting.add('unused')
  t.same(await activity(setting), {})
  await send(port, { path: '/t/acme/x' })
  await until(async () => (await activity(setting))[tenant_id]?.open === 0)
  t.same(await activity(setting), { [tenant_id]: { last_request_at: '2026-05-01T10:00:00.000Z', open: 0 } })
  now += 60_000
  const hanging = httpRequest({ agent: false, host: '127.0.0.1', port, path: '/t/acme/hang' })
    .on('error', () => undefined)
    .end()
  await until(() => setting.upstream.open === 1)
  const events = httpRequest({ agent: false, host: '127.0.0.1', port, path: '/t/acme/events' })
    .on('error', () => undefined)
    .end()
  await once(events, 'response')
  const socket = new WebSocket(`ws://127.0.0.1:${port}/t/acme/ws`)
  await once(socket, 'open')
  t.same(await activity(setting), { [tenant_id]: { last_request_at: '2026-05-01T10:01:00.000Z', open: 3 } })
  now += 60_000
  for (const client of [hanging, events]) client.destroy()
  socket.terminate()
  await until(async () => (await activity(setting))[tenant_id]?.open === 0)
  t.equal((await activity(setting))[tenant_id]?.last_request_at, '2026-05-01T10:02:00.000Z', 'the end counts as well')
})

t.test('The activity states since when it is known: the start of the gateway', async (t) => {
  let now = Date.parse('2026-05-01T10:00:00.000Z')
  const setting = await startSetting(t, { now: () => now })
  await setting.add('acme')
  now += 60_000
  await send(setting.gateway.port, { path: '/t/acme/x' })
  t.equal((await whole(setting)).since, '2026-05-01T10:00:00.000Z')
  await setting.restart()
  t.same(await whole(setting), { since: '2026-05-01T10:01:00.000Z', tenants: {} })
})

t.test('Rejected and broken requests leave nothing open, and a deleted tenant is not listed', async (t) => {
  const setting = await startSetting(t)
  const { port } = setting.gateway
  const route = await setting.add('acme')
  for (const path of ['/t/acme/internal/v1/x', '/t/acme/half/100', '/t/acme/close', '/t/acme/status/204']) {
    await send(port, { path }).catch(() => undefined)
  }
  await send(port, { path: '/t/acme/early', method: 'PUT', body: Buffer.alloc(100_000) })
  await until(async () => (await activity(setting))[route.tenant_id]?.open === 0)
  setting.control.routes.remove(route.tenant_id)
  await until(async () => !(route.tenant_id in (await activity(setting))))
  t.equal((await send(port, { path: '/t/acme/x' })).status, 404)
})
