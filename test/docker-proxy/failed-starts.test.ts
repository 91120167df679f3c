// The watchdog starts containers that the Engine failed to start. The Engine is a server of the test.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { engineSocket } from '#docker-proxy/engine-socket.ts'
import { watchContainers } from '#docker-proxy/watchdog.ts'
import { until } from '#test/support/until.ts'

const id = (digit: string) => digit.repeat(64)

t.test('A container is started until its start succeeds, and a stopped one never', async (t) => {
  const states = new Map([
    [id('a'), { Running: false, Error: 'network tenantry-engines not found' }],
    [id('b'), { Running: false, Error: '' }],
    [id('c'), { Running: true, Error: '' }],
  ])
  const starts: string[] = []
  const filters: string[] = []
  const engine = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://docker')
    const [, , , container = '', action] = pathname.split('/')
    const send = (status: number, body?: unknown) =>
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(body === undefined ? undefined : JSON.stringify(body))
    if (pathname.endsWith('/events')) {
      response.writeHead(200).flushHeaders()
      return
    }
    if (container === 'json') {
      filters.push(searchParams.get('filters') ?? '')
      send(
        200,
        [...states].filter(([, { Running }]) => !Running).map(([Id]) => ({ Id })),
      )
      return
    }
    if (action === 'json') {
      send(200, { State: states.get(container) })
      return
    }
    starts.push(container)
    if (starts.length < 3) send(500, { message: 'network tenantry-engines not found' })
    else {
      states.set(container, { Running: true, Error: '' })
      send(204)
    }
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
      graceMs: 3_600_000,
      checkMs: 1,
    },
    stopping.signal,
  )
  watch.catch(() => undefined)
  await until(async () => states.get(id('a'))?.Running === true, 'the start of the container')
  const checks = filters.length
  await until(async () => filters.length > checks + 3, 'further checks')
  t.same(starts, [id('a'), id('a'), id('a')])
  t.same(JSON.parse(filters[0] ?? ''), {
    label: ['com.docker.compose.project=tenantry', 'com.docker.compose.oneoff=False'],
    status: ['created', 'exited'],
  })
})
