// The reading side of a watch: whole sets, changes, a lost connection, and the copy on disk.
import { createServer, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { Route, WatchedTable, internalTokenHeader } from '@tenantry/contract'
import { until } from '#test/support/until.ts'

const id = (n: number) => `t_${String(n).padStart(20, '0')}`
const route = (n: number, generation = 1): Route => ({
  tenant_id: id(n),
  name: `name-${n}`,
  generation,
  phase: 'ready',
  runtimes: ['http://127.0.0.1:1'],
  dedicated: false,
})

/** Starts the watch of a control plane whose lines the test writes. */
async function watchSource() {
  const open = new Set<ServerResponse>()
  const tokens: unknown[] = []
  let whole: Route[] = []
  const write = (response: ServerResponse, line: object) => response.write(`${JSON.stringify(line)}\n`)
  const server = createServer((request, response) => {
    tokens.push(request.headers[internalTokenHeader])
    response.writeHead(200)
    for (const entry of whole) write(response, { type: 'put', entry })
    write(response, { type: 'synced' })
    open.add(response)
    response.on('close', () => open.delete(response))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/watch`,
    tokens,
    set: (routes: Route[]) => (whole = routes),
    send: (line: object) => open.forEach((response) => write(response, line)),
    raw: (text: string) => open.forEach((response) => response.write(text)),
    cut: () => open.forEach((response) => response.destroy()),
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

t.test('A watched table', async (t) => {
  const scratch = await mkdtemp(join(tmpdir(), 'tenantry-watch-'))
  t.teardown(() => rm(scratch, { recursive: true, force: true }))
  const source = await watchSource()
  t.teardown(() => source.close())
  const file = join(scratch, 'deep', 'routes.ndjson')
  const errors: string[] = []
  const changes: string[] = []
  const open = () =>
    new WatchedTable<Route>({
      url: source.url,
      internalToken: 'secret',
      schema: Route,
      key: 'tenant_id',
      file,
      fetch,
      onChange: (tenantId, entry) =>
        changes.push(`${tenantId === id(1) ? 1 : tenantId} ${entry?.generation ?? 'gone'}`),
      onError: (error) => errors.push(error.message),
    })
  const table = open()
  const stop = new AbortController()
  const running = table.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await running
  })

  t.test('The table reads the whole set with the internal token', async (t) => {
    source.set([route(1), route(2)])
    source.cut()
    await until(() => table.size === 2 && table.synced)
    t.equal(source.tokens[0], 'secret')
    t.same(table.get(id(1)), route(1))
  })

  t.test('The table applies changes, but never an older generation', async (t) => {
    source.send({ type: 'put', entry: route(1, 5) })
    await until(() => table.get(id(1))?.generation === 5)
    source.send({ type: 'put', entry: route(1, 4) })
    source.send({ type: 'put', entry: route(3) })
    await until(() => table.get(id(3)) !== undefined)
    t.equal(table.get(id(1))?.generation, 5)
    source.send({ type: 'remove', tenant_id: id(3) })
    await until(() => table.get(id(3)) === undefined)
  })

  t.test('The table joins the chunks of a line, and skips an unknown line', async (t) => {
    const text = `${JSON.stringify({ type: 'put', entry: route(4) })}\n`
    source.raw(`${JSON.stringify({ type: 'notice', from: 'a newer version' })}\n${text.slice(0, 25)}`)
    source.raw(text.slice(25))
    await until(() => table.get(id(4)) !== undefined)
    t.ok(errors.some((error) => error.includes('unknown form')))
  })

  t.test('The table removes entries that the next whole set lacks', async (t) => {
    source.set([route(1, 6)])
    source.cut()
    await until(() => table.size === 1)
    t.equal(table.get(id(1))?.generation, 6)
    t.ok(changes.includes(`${id(2)} gone`))
  })

  t.test('The copy on disk is readable only by its owner, and serves a start without a control plane', async (t) => {
    await until(async () => (await readFile(file, 'utf8').catch(() => '')) === JSON.stringify(route(1, 6)))
    t.equal((await stat(file)).mode & 0o777, 0o600)
    const again = open()
    await again.load()
    t.same([...again.values()], [route(1, 6)])
    t.notOk(again.synced)
  })

  t.test('Entries that are sent again unchanged are no change', async (t) => {
    const before = changes.length
    source.set([route(1, 6), route(5)])
    source.cut()
    await until(() => table.get(id(5)) !== undefined)
    t.same(changes.slice(before), [`${id(5)} 1`])
  })

  t.test('A damaged copy on disk is ignored and reported', async (t) => {
    const torn = join(scratch, 'torn.ndjson')
    await writeFile(torn, `${JSON.stringify(route(1))}\n{"tenant_id":`)
    const reported: string[] = []
    const table = new WatchedTable<Route>({
      url: source.url,
      internalToken: 'secret',
      schema: Route,
      key: 'tenant_id',
      file: torn,
      fetch,
      onError: (error) => reported.push(error.message),
    })
    await table.load()
    t.equal(reported.length, 1)
  })
})

t.test('A copy that could not be saved is saved later, without another change', async (t) => {
  const scratch = await mkdtemp(join(tmpdir(), 'tenantry-watch-'))
  t.teardown(() => rm(scratch, { recursive: true, force: true }))
  const source = await watchSource()
  t.teardown(() => source.close())
  source.set([route(1)])
  const directory = join(scratch, 'copy')
  await writeFile(directory, 'in the way')
  const errors: Error[] = []
  const table = new WatchedTable<Route>({
    url: source.url,
    internalToken: 'token',
    schema: Route,
    key: 'tenant_id',
    file: join(directory, 'routes.ndjson'),
    fetch: globalThis.fetch,
    onError: (error) => errors.push(error),
  })
  const stop = new AbortController()
  const running = table.run(stop.signal)
  await until(() => errors.length > 0)
  t.match(errors[0]?.message, /could not be saved/)
  await rm(directory)
  source.send({ type: 'ping' })
  await until(async () => (await readFile(join(directory, 'routes.ndjson'), 'utf8').catch(() => '')).includes(id(1)))
  stop.abort()
  await running

  t.test('A table with a share of the entries ignores all others, and reads its own from all copies', async (t) => {
    source.set([route(1, 6), route(2, 3), route(3)])
    const [own, other] = [join(scratch, 'own.ndjson'), join(scratch, 'other.ndjson')]
    const lines = (...routes: Route[]) => routes.map((entry) => JSON.stringify(entry)).join('\n')
    await writeFile(own, lines(route(1), route(2, 2)))
    await writeFile(other, lines(route(1, 5), route(2)))
    const seen: string[] = []
    let synced = 0
    const table = new WatchedTable<Route>({
      url: source.url,
      internalToken: 'secret',
      schema: Route,
      key: 'tenant_id',
      file: own,
      otherFiles: async () => [other],
      isOwn: (tenantId) => tenantId !== id(1),
      fetch,
      onChange: (tenantId) => seen.push(tenantId),
      onSynced: () => synced++,
    })
    await table.load()
    t.same([...table.values()], [route(2, 2)], 'the newest generation')
    const stop = new AbortController()
    const running = table.run(stop.signal)
    await until(() => synced === 1)
    source.send({ type: 'put', entry: route(1, 7) })
    source.send({ type: 'remove', tenant_id: id(1) })
    source.send({ type: 'put', entry: route(3, 2) })
    await until(() => table.get(id(3))?.generation === 2)
    await until(async () => (await readFile(own, 'utf8')) === lines(route(2, 3), route(3, 2)))
    t.notOk(seen.includes(id(1)), 'no change of a foreign entry')
    stop.abort()
    await running
  })
})
