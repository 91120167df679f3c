// The watches of gateways and runtimes: the whole set, then every change and removal. A client that does not read is cut
// off.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { promisify } from 'node:util'
import {
  internalPaths,
  internalTokenHeader,
  isServed,
  tenantToken,
  type Route,
  type TenantManifest,
  type WatchLine,
} from '@tenantry/contract'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { internalRoutes } from '#control-plane/watch/routes.ts'
import { createRecordWrite } from '#control-plane/platform/recorded-write.ts'
import { createSeal } from '#control-plane/platform/seal.ts'
import { createTenantStore } from '#control-plane/tenants/store.ts'
import { createUsageLedger } from '#control-plane/usage/store-ledger.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { until } from '#test/support/until.ts'
import { internalToken, newName, startApi, type CreatedTenant } from '#test/support/control-plane/api.ts'
import { idOf, MemorySource, watchesOf } from './support/memory-source.ts'

type Line = WatchLine<Route | TenantManifest>

const api = await startApi(t)
const url = await api.app.listen({ host: '127.0.0.1', port: 0 })

/** Follows a watch over HTTP; `lines` grows. */
async function follow(t: Test, path: string, token = internalToken): Promise<Line[]> {
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const response = await fetch(new URL(path, url), { headers: { [internalTokenHeader]: token }, signal: stop.signal })
  if (response.status !== 200 || response.body === null) throw new Error(`the watch returned ${response.status}`)
  const lines: Line[] = []
  const read = async (body: NonNullable<Response['body']>) => {
    let rest = ''
    for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
      const parts = (rest + chunk).split('\n')
      rest = parts.pop() ?? ''
      lines.push(...parts.map((part) => JSON.parse(part) as Line))
    }
  }
  // The reading ends when it is aborted.
  read(response.body).catch(() => undefined)
  await until(() => lines.some(({ type }) => type === 'synced'), 'the whole set')
  return lines
}

const watchBoth = async (t: Test) => ({
  routes: await follow(t, internalPaths.watchRoutes),
  manifests: await follow(t, internalPaths.watchManifests),
})
const ofTenant = (lines: Line[], id: string) =>
  lines.filter((line) =>
    line.type === 'put' ? line.entry.tenant_id === id : line.type === 'remove' && line.tenant_id === id,
  )
const last = (lines: Line[], id: string) => ofTenant(lines, id).at(-1)

t.test('A watch sends the whole set, once each, and then what changes', async (t) => {
  const before = [await api.create(), await api.create(), await api.create()].map(({ tenant_id }) => tenant_id)
  const { routes, manifests } = await watchBoth(t)
  for (const lines of [routes, manifests]) {
    const synced = lines.findIndex(({ type }) => type === 'synced')
    t.same(
      lines
        .slice(0, synced)
        .map((line) => line.type === 'put' && line.entry.tenant_id)
        .sort(),
      before.toSorted(),
    )
    t.match(lines[0], { type: 'put', entry: { generation: 1 } })
  }

  api.region.agrees = false
  const made = (await api.call('POST', '/v1/tenants', { body: { name: newName(), plan: 'Free', region: 'local' } }))
    .body as CreatedTenant
  const id = made.tenant_id
  await until(
    () => last(manifests, id) !== undefined && (last(routes, id) as { entry?: Route }).entry?.phase === 'ready',
    'the new tenant',
  )
  t.match(
    ofTenant(routes, id)[0],
    { type: 'put', entry: { phase: 'pending' } },
    'gateways know the tenant before it is served',
  )
  const manifest = { name: made.name, generation: 1, home: { schema: id } }
  t.match(ofTenant(manifests, id)[0], { type: 'put', entry: manifest }, 'runtimes know it once it has a home')
  api.region.agrees = true
  await until(async () => (await api.tenant(id)).status === 'ready', 'readiness')

  const renamed = newName()
  await api.call('PATCH', `/v1/tenants/${id}`, {
    body: { name: renamed, suspended: true },
    headers: { prefer: 'wait=30' },
  })
  await until(() => (last(routes, id) as { entry?: Route }).entry?.phase === 'suspended', 'the suspension')
  t.match(last(routes, id), {
    entry: { name: renamed, generation: 2, reason: 'The operator has suspended the tenant.' },
  })
  t.match(last(manifests, id), { entry: { name: renamed, generation: 2 } })
  t.same(last(await follow(t, internalPaths.watchRoutes), id), last(routes, id), 'a later client gets the same')
})

t.test('A runtime of a region receives the tenants of that region only', async (t) => {
  const { tenant_id: id } = await api.create()
  const of = async (region: string) => ofTenant(await follow(t, `${internalPaths.watchManifests}?region=${region}`), id)
  t.match(await of('local'), [{ type: 'put' }])
  await t.rejects(follow(t, `${internalPaths.watchManifests}?region=nowhere`), 'an unknown region has no watch')
})

t.test('One of several runtimes receives the tenants of its share', async (t) => {
  const ids = [await api.create(), await api.create(), await api.create()].map(({ tenant_id: id }) => id)
  const received = async (query: string) => {
    const lines = await follow(t, `${internalPaths.watchManifests}?${query}`)
    return ids.filter((id) => last(lines, id) !== undefined)
  }
  const shares = [0, 1].map((number) => ids.filter((id) => isServed(id, { number, runtimes: 2 })))
  t.same(await received('region=local&runtime=0&runtimes=2'), shares[0])
  t.same(await received('runtime=1&runtimes=2'), shares[1])
  for (const all of ['', 'runtime=0', 'runtime=0&runtimes=0', 'runtime=x&runtimes=2', 'runtime=0&runtimes=1'])
    t.same(await received(all), ids, `all with "${all}"`)
})

t.test('A purged tenant is removed from both watches, first from that of the runtimes', async (t) => {
  const { tenant_id: id } = await api.create()
  const { routes, manifests } = await watchBoth(t)
  await api.call('DELETE', `/v1/tenants/${id}?purge=true`, { headers: { prefer: 'wait=30' } })
  await until(() => last(routes, id)?.type === 'remove' && last(manifests, id)?.type === 'remove', 'its removal')
  t.match(ofTenant(routes, id).at(-2), { type: 'put', entry: { phase: 'deleted' } })
  t.same(ofTenant(await follow(t, internalPaths.watchRoutes), id), [], 'a later client does not receive it')
})

t.test("A tenant's token watches only that tenant, and opens nothing else", async (t) => {
  const [own, other] = await Promise.all([api.create(), api.create()])
  const token = tenantToken(internalToken, own.tenant_id)
  const lines = await follow(t, internalPaths.watchManifests, token)
  t.same(lines, [{ type: 'synced' }], 'a tenant that shares the runtimes of its region has none of its own')
  const shared = await follow(t, internalPaths.watchManifests, internalToken)
  const headers = { prefer: 'wait=30' }
  await api.call('PATCH', `/v1/tenants/${other.tenant_id}`, { body: { plan: 'Pro' }, headers })
  const publish = (isolation: string) =>
    api.sql(
      `with moved as (update tenants set isolation = '${isolation}' where id = '${own.tenant_id}' returning id)
       insert into changes (kind, tenant_id, transaction_id)
       select 'published', id, pg_current_xact_id()::text::bigint from moved`,
    )
  await publish('database-per-tenant')
  await until(() => lines.some((line) => line.type === 'put' && line.entry.tenant_id === own.tenant_id), 'the manifest')
  const isOver = (all: typeof lines) => all.some((line) => line.type === 'remove' && line.tenant_id === own.tenant_id)
  await until(() => isOver(shared), 'the end for shared runtimes')
  await publish('schema-per-tenant')
  await until(() => isOver(lines), 'the end for its own runtime')
  t.notMatch(JSON.stringify(lines), other.tenant_id, 'nothing about the other tenant')

  const rejected: [string, string, string][] = [
    ['GET', internalPaths.watchRoutes, token],
    ['POST', internalPaths.usage, token],
    ['POST', internalPaths.wake(own.tenant_id), token],
    ['GET', internalPaths.watchManifests, `${other.tenant_id}.${token.split('.')[1] ?? ''}`],
    ['GET', internalPaths.watchManifests, token.slice(0, -1)],
    ['GET', internalPaths.watchManifests, tenantToken('another installation', own.tenant_id)],
  ]
  for (const [method, path, given] of rejected) {
    const response = await fetch(new URL(path, url), { method, headers: { [internalTokenHeader]: given } })
    t.same(response.status, 404, `${method} ${path}`)
    await response.body?.cancel()
  }
})

t.test('Changes that happen while the change feed is cut are sent afterwards', async (t) => {
  const { tenant_id: gone } = await api.create()
  const { tenant_id: changed } = await api.create()
  const { routes, manifests } = await watchBoth(t)
  await api.sql(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tenantry-change-feed'",
  )
  // There is no notification, as if it was sent without a listener.
  await api.sql('delete from tenants where id = $1', [gone])
  const name = newName('another')
  await api.sql('update tenants set name = $2 where id = $1', [changed, name])
  await until(() => last(routes, gone)?.type === 'remove' && last(manifests, gone)?.type === 'remove', 'the removal')
  await until(() => (last(routes, changed) as { entry?: Route }).entry?.name === name, 'the change')
  t.match((await api.tenant(changed)).tenant_id, changed)
})

t.test('A client that does not take a line receives nothing more, and the others do', async (t) => {
  const source = new MemorySource()
  const { tenants: hub } = watchesOf(source, (error) => t.fail(error.message))
  const slow: string[] = []
  const quick: string[] = []
  await hub.watch('route', (text) => {
    slow.push(text)
    return slow.length < 2
  })
  const leave = await hub.watch('route', (text) => quick.push(text) > 0)
  for (let nth = 1; nth <= 5; nth++) {
    source.put(idOf(1), nth)
    hub.onChange({ kind: 'wanted', subject: idOf(1) })
    await until(() => quick.length === nth + 1, `change ${nth}`)
  }
  t.same(slow.length, 2, 'the set, and the line that it did not take')
  leave()
  hub.ping()
  t.same(quick.length, 6, 'a client that has left receives nothing')
})

t.test('While the database is away the known set is sent, and missed changes follow once it is back', async (t) => {
  const source = new MemorySource()
  const errors: string[] = []
  const { tenants: hub } = watchesOf(source, (error) => errors.push(error.message))
  source.put(idOf(1), 1)
  source.put(idOf(2), 1)
  const lines: string[] = []
  await hub.watch('route', (text) => lines.push(text) > 0)
  source.broken = true
  source.entries.delete(idOf(1))
  source.put(idOf(2), 2)
  hub.onChange({ kind: 'published', subject: idOf(1) })
  await until(() => errors.length > 0, 'the error')
  let later = ''
  await hub.watch('route', (text) => (later += text) !== '')
  t.ok(later.includes(idOf(1)) && later.includes(idOf(2)) && later.endsWith('{"type":"synced"}\n'), 'the known set')
  source.broken = false
  hub.onChange('resync')
  await until(() => lines.join('').includes(`{"type":"remove","tenant_id":"${idOf(1)}"}`), 'the removal')
  t.match(lines.join(''), /"generation":2/)
})

t.test('A connection that leaves too much unread is cut off, and one that reads gets everything', async (t) => {
  const source = new MemorySource()
  const watches = watchesOf(source, (error) => t.fail(error.message))
  const database = openDatabase(api.controlUrl)
  const app = Fastify({ forceCloseConnections: true })
  await app.register(
    internalRoutes({
      watches,
      ledger: createUsageLedger(database, () => new Date()),
      tenants: createTenantStore({ database, seal: createSeal(randomBytes(32)), now: () => new Date() }),
      record: createRecordWrite(database, () => new Date()),
      now: () => new Date(),
    }),
  )
  await app.listen({ host: '127.0.0.1', port: 0 })
  const address = app.server.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  const open = async () => {
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET ${internalPaths.watchRoutes} HTTP/1.1\r\nhost: x\r\n\r\n`)
    await once(socket, 'readable')
    return socket
  }
  const count = (socket: Socket) => {
    let bytes = 0
    socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
    return () => bytes
  }
  const slow = await open()
  const quick = await open()
  const received = count(quick)
  t.teardown(async () => {
    slow.destroy()
    quick.destroy()
    await app.close()
    await database.$disconnect()
  })
  const connections = () => promisify(app.server.getConnections.bind(app.server))()
  t.same(await connections(), 2)
  const size = 1_000_000
  const rounds = 40
  for (let nth = 1; nth <= rounds; nth++) {
    source.put(idOf(1), nth, 'x'.repeat(size))
    watches.onChange({ kind: 'wanted', subject: idOf(1) })
    await until(() => received() > nth * size, `change ${nth} at the client that reads`)
  }
  await until(async () => (await connections()) === 1, 'the end of the other connection')
  t.ok(received() > rounds * size)
  const taken = count(slow)
  await once(slow, 'close')
  t.ok(taken() < rounds * size, 'it has not received all, as the end of the connection shows')
})

t.test('A control plane that could not read the set yet sends no part of it', async (t) => {
  const source = new MemorySource()
  source.put(idOf(1), 1)
  source.broken = true
  const { tenants: hub } = watchesOf(source, () => undefined)
  await t.rejects(
    hub.watch('route', () => true),
    /are not available/,
  )
  source.broken = false
  const lines: string[] = []
  await hub.watch('route', (text) => lines.push(text) > 0)
  t.match(lines.join(''), new RegExp(`${idOf(1)}.*\\n.*synced`, 's'))
})

t.test('A tenant that moves to another region leaves the watch of its former one', async (t) => {
  const source = new MemorySource()
  const regions = ['local', 'other']
  const { tenants: hub } = watchesOf(source, (error) => t.fail(error.message), regions)
  const received = new Map(regions.map((region) => [region, '']))
  for (const region of regions)
    await hub.watch(`manifest of ${region}`, (text) => {
      received.set(region, `${received.get(region)}${text}`)
      return true
    })
  const typesOf = (region: string) =>
    (received.get(region) ?? '').split('\n').flatMap((text) => (text === '' ? [] : [(JSON.parse(text) as Line).type]))
  source.put(idOf(1), 1)
  let isFirst = true
  for (const region of [...regions, 'local']) {
    for (const one of regions) received.set(one, '')
    const entry = source.entries.get(idOf(1))
    if (entry === undefined) throw new Error('the entry is missing')
    source.entries.set(idOf(1), { ...entry, region, manifest: { tenant_id: idOf(1) } as TenantManifest })
    hub.onChange({ kind: 'published', subject: idOf(1) })
    await until(() => typesOf(region).includes('put'), 'the manifest')
    const former = regions.filter((one) => one !== region).flatMap(typesOf)
    t.same(former, isFirst ? [] : ['remove'])
    isFirst = false
  }
})
