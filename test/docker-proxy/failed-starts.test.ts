// The watchdog starts containers that the Engine failed to start. The Engine is a server of the test.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { engineSocket } from '#docker-proxy/engine-socket.ts'
import { watchContainers } from '#docker-proxy/watchdog.ts'
import { until } from '#test/support/until.ts'

const id = (digit: string) => digit.repeat(64)

type States = Map<string, { Running: boolean; Error: string }>

/** Watches an Engine with containers in these states. @param tryStart whether a start of a container succeeds */
async function openWatch(t: Test, states: States, graceMs: number, tryStart: (container: string) => boolean) {
  const filters: string[] = []
  const events: ServerResponse[] = []
  const engine = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://docker')
    const [, , , container = '', action] = pathname.split('/')
    const send = (status: number, body?: unknown) =>
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(body === undefined ? undefined : JSON.stringify(body))
    if (pathname.endsWith('/events')) {
      response.writeHead(200).flushHeaders()
      events.push(response)
    } else if (container === 'json') {
      filters.push(searchParams.get('filters') ?? '')
      send(
        200,
        [...states].filter(([, { Running }]) => !Running).map(([Id]) => ({ Id })),
      )
    } else if (action === 'json') send(200, { State: states.get(container) })
    else if (tryStart(container)) {
      states.set(container, { Running: true, Error: '' })
      send(204)
    } else send(500, { message: 'network tenantry-engines not found' })
  })
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-failed-starts-'))
  engine.listen(join(directory, 'engine.sock'))
  await once(engine, 'listening')
  const stopping = new AbortController()
  t.teardown(async () => {
    stopping.abort()
    engine.closeAllConnections()
    engine.close()
    await rm(directory, { recursive: true })
  })
  const log = { info: () => undefined, warn: () => undefined }
  const watch = watchContainers(
    {
      engine: engineSocket(join(directory, 'engine.sock')),
      project: 'tenantry',
      log,
      now: () => performance.now(),
      graceMs,
      checkMs: 1,
    },
    stopping.signal,
  )
  watch.catch(() => undefined)
  return { filters, events }
}

t.test('A container is started until its start succeeds, and a stopped one never', async (t) => {
  const states: States = new Map([
    [id('a'), { Running: false, Error: 'network tenantry-engines not found' }],
    [id('b'), { Running: false, Error: '' }],
    [id('c'), { Running: true, Error: '' }],
  ])
  const starts: string[] = []
  const { filters } = await openWatch(t, states, 3_600_000, (container) => starts.push(container) === 3)
  await until(async () => states.get(id('a'))?.Running === true, 'the start of the container')
  const checks = filters.length
  await until(async () => filters.length > checks + 3, 'further checks')
  t.same(starts, [id('a'), id('a'), id('a')])
  t.same(JSON.parse(filters[0] ?? ''), {
    label: ['com.docker.compose.project=tenantry', 'com.docker.compose.oneoff=False'],
    status: ['created', 'exited'],
  })
})

t.test('A container whose start failed does not count as killed: it is not started when it has no error', async (t) => {
  const states: States = new Map([
    [id('a'), { Running: false, Error: 'network tenantry-engines not found' }],
    [id('b'), { Running: false, Error: '' }],
  ])
  const starts: string[] = []
  const { events } = await openWatch(t, states, 0, (container) => {
    starts.push(container)
    if (container === id('a')) states.set(container, { Running: false, Error: '' })
    return container === id('b')
  })
  await until(async () => starts.length > 0 && events.length > 0, 'the failed start')
  // The containers that have ended are started in the order of their ends.
  events[0]?.write(`${JSON.stringify({ Action: 'die', Actor: { ID: id('b') } })}\n`)
  await until(async () => starts.includes(id('b')), 'the start of the killed container')
  t.same(starts, [id('a'), id('b')])
})
