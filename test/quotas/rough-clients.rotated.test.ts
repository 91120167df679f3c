// Clients that abort and pipeline, and operators who change plans under load: never more is served than the plan allows,
// and no request of the month is lost for good.
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Route } from '@tenantry/contract'
import t from 'tap'
import { chanceOf } from '#test/simulation/chance.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'
import { send, totalOf, leased, startQuotaSetting, type QuotaGateway } from './support/gateways.ts'

const api = await startApi(t, { control: false })
const quota = effort({ small: 300, full: 5_000 })
await api.sql(
  "update plans set requests_per_month = case id when 'Free' then $1::int when 'Pro' then $1::int * 2 end where id <> 'Enterprise'",
  [quota],
)
const random = chanceOf(seed).next
const below = (max: number) => Math.floor(random() * max)

/** Pipelines requests on one connection, and leaves after some responses. @returns how many requests were served */
async function pipeline(port: number, path: string, requests: number, responses: number): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  const closed = once(socket, 'close')
  let text = ''
  const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
    if (statuses().length >= responses) socket.destroy()
  })
  socket.write(Array.from({ length: requests }, () => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''), () => {
    if (responses === 0) socket.destroy()
  })
  await closed
  return statuses().filter((status) => status === '200').length
}

const portsOf = (gateways: readonly QuotaGateway[]) => gateways.map(({ gateway }) => gateway.port)

/** Sends complete requests until a gateway reports that the month is used up. @returns how many were served */
async function drain(ports: readonly number[], path: string, connections = 8): Promise<number> {
  let served = 0
  await Promise.all(
    Array.from({ length: connections }, async (_, nth) => {
      for (let rejected = 0; rejected < 3;) {
        const { status } = await send(ports[nth % ports.length] ?? 0, path)
        if (status === 200) served++
        else rejected++
      }
    }),
  )
  return served
}

/** @returns what all gateways together have used, once they have reported it and hold nothing */
async function settled(route: Route): Promise<number> {
  await until(async () => {
    const { granted, used } = await leased(api, route.tenant_id)
    return granted === used && (await totalOf(api, route.tenant_id, 'requests')) >= used
  }, 'the last reports')
  return (await leased(api, route.tenant_id)).used
}

t.comment(`seed ${seed}`)

t.test('Clients that leave at any moment and pipeline over three gateways use each request once', async (t) => {
  const { addTenant, gateways, upstream } = await startQuotaSetting(t, api, 3)
  const route = await addTenant('Free')
  const path = `/t/${route.name}/status/200`
  const ports = portsOf(gateways)
  const reads = await Promise.all(
    Array.from({ length: 12 }, async () => {
      let served = 0
      for (let n = 0; n < quota / 40; n++) {
        const requests = 1 + below(8)
        served += await pipeline(ports[below(3)] ?? 0, path, requests, below(requests + 1))
      }
      return served
    }),
  )
  t.ok(reads.reduce((sum, served) => sum + served, 0) <= upstream.seen.length)
  await drain(ports, path)
  t.ok(upstream.seen.length <= quota, `${upstream.seen.length} of ${quota} reached the runtime`)
  t.equal(await settled(route), quota, 'all of the month was available')
  t.equal(await totalOf(api, route.tenant_id, 'requests'), quota, 'each admitted request is counted, and nothing else')
})

t.test(
  'Under changes of plan, suspensions and resumptions, plans with a quota admit no more than the larger one',
  async (t) => {
    const { addTenant, put, gateways, upstream } = await startQuotaSetting(t, api, 2)
    const route = await addTenant('Free')
    const path = `/t/${route.name}/status/200`
    const ports = portsOf(gateways)
    let isOver = false
    const clients = Array.from({ length: 8 }, async (_, nth) => {
      while (!isOver) {
        if (nth % 2 === 0) await send(ports[nth % 2] ?? 0, path)
        else await pipeline(ports[below(2)] ?? 0, path, 4, below(5))
      }
    })
    let generation = 1
    const change = async (plan: string, requests: number, phase: Route['phase'] = 'ready') => {
      generation++
      await api.sql('update tenants set plan_id = $2, updated_at = now() where id = $1', [route.tenant_id, plan])
      await put({
        ...route,
        generation,
        phase,
        limits: { connections: null, rate: null, requests_per_month: requests },
      })
    }
    for (let n = 0; n < effort({ small: 12, full: 200 }); n++) {
      const isPro = below(2) === 1
      await change(isPro ? 'Pro' : 'Free', isPro ? 2 * quota : quota, below(4) === 0 ? 'suspended' : 'ready')
      // Some changes see admitted requests, others see none.
      for (let count = below(10); count > 0; count--) await send(ports[count % 2] ?? 0, path)
    }
    await change('Free', quota)
    isOver = true
    await Promise.all(clients)
    t.ok(upstream.seen.length <= 2 * quota)
    await change('Pro', 2 * quota)
    await drain(ports, path)
    t.ok(upstream.seen.length <= 2 * quota, `${upstream.seen.length} of ${2 * quota} reached the runtime`)
    t.equal(await settled(route), 2 * quota, 'all of the larger plan was available')
    const before = upstream.seen.length
    await change('Free', quota)
    t.equal((await send(ports[0] ?? 0, path)).status, 429, 'a smaller plan that is used up admits nothing')
    t.equal(upstream.seen.length, before)
  },
)

t.test('A tenant with the name of a deleted one has its own month, and each bill goes to its tenant', async (t) => {
  const { addTenant, put, routes, gateways } = await startQuotaSetting(t, api, 2)
  const ports = portsOf(gateways)
  const first = await addTenant('Free')
  const path = `/t/${first.name}/status/200`
  t.equal(await drain(ports, path), quota)
  const second = await addTenant('Free')
  routes.routes.remove(first.tenant_id)
  await put({ ...second, generation: 2, name: first.name })
  const whose = async () => {
    const [a, b] = await Promise.all([first, second].map(({ tenant_id: id }) => totalOf(api, id, 'requests')))
    return [a, b]
  }
  t.equal(await drain(ports, path), quota)
  await until(async () => (await leased(api, second.tenant_id)).used === quota, 'the last reports')
  await until(async () => (await whose()).every((requests) => requests === quota), 'the counts')
  t.same(await leased(api, first.tenant_id), { granted: quota, used: quota })
})

t.test('A connection that is rejected because too many are open takes nothing of the month', async (t) => {
  const { addTenant, gateways } = await startQuotaSetting(t, api, 1)
  const route = await addTenant('Free', { connections: 1 })
  const [port = 0] = portsOf(gateways)
  const upgrade = `GET /t/${route.name}/raw HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n`
  const stream = `GET /t/${route.name}/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`
  const open = async (text: string) => {
    const socket = connect(port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.write(text)
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    return /^HTTP\/1\.1 (\d+)/.exec(chunk.toString('latin1'))?.[1]
  }
  t.equal(await open(upgrade), '101')
  for (let n = 0; n < 20; n++) t.equal(await open(n % 2 === 0 ? upgrade : stream), '429')
  t.equal(await drain([port], `/t/${route.name}/status/200`), quota - 1)
  await until(async () => (await totalOf(api, route.tenant_id, 'requests')) === quota, 'the counts')
  t.equal(await settled(route), quota)
})

t.test('A new month gives the whole number again, and the rest of the old one is void', async (t) => {
  const { addTenant, gateways } = await startQuotaSetting(t, api, 2)
  const ports = portsOf(gateways)
  const used = await addTenant('Free')
  const path = `/t/${used.name}/status/200`
  t.equal(await drain(ports, path), quota)
  const now = new Date(Date.now() + api.clock.ahead)
  api.clock.ahead += Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1) - now.getTime()
  await until(async () => (await send(ports[0] ?? 0, path)).status === 200, 'the new month')
  t.equal(await drain(ports, path), quota - 1)
})
