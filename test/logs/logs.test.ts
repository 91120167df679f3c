// Logs of a tenant's own services: their end at once, or line by line as they come, from where a reader stopped.
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { logTime } from '#control-plane/logs/log-times.ts'
import { until } from '#test/support/until.ts'
import { isError, newName, startApi } from '#test/support/control-plane/api.ts'

const api = await startApi(t, { cloud: true })
const url = await api.app.listen({ host: '127.0.0.1', port: 0 })
const { tenant_id: id } = await api.create(newName(), { plan: 'Pro', region: 'cloud' })
const at = (second: number, nano = 0) =>
  `2026-01-01T00:00:${String(second).padStart(2, '0')}.${String(nano).padStart(9, '0')}Z`
const path = (query: string) => `/v1/tenants/${id}/logs?component=runtime${query}`
const logs = (query = '') => api.call('GET', path(query))
for (let second = 0; second < 10; second++) api.engine.write(at(second), `line ${second}`)

interface Event {
  event?: string
  id?: string
  data?: string
}

/** Follows a log. `events` grows, and contains comments without a name. */
async function follow(t: Test, query = '', headers: Record<string, string> = {}, key = api.keys.read) {
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const response = await fetch(new URL(path(`&follow=true${query}`), url), {
    headers: { authorization: `Bearer ${key}`, ...headers },
    signal: stop.signal,
  })
  const events: Event[] = []
  const reading = (async () => {
    let rest = ''
    for await (const chunk of (response.body ?? new ReadableStream<Uint8Array>()).pipeThrough(
      new TextDecoderStream(),
    )) {
      const blocks = (rest + chunk).split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks)
        events.push(Object.fromEntries(block.split('\n').map((line) => line.split(/: ?(.*)/s, 2))) as Event)
    }
  })().catch(() => undefined)
  const lines = () =>
    events.filter(({ event }) => event === 'log').map(({ data = '{}' }) => (JSON.parse(data) as { text: string }).text)
  return { response, events, lines, reading, stop }
}

t.test('The end of a log has as many lines as requested', async (t) => {
  t.match(await logs(), {
    status: 200,
    body: { truncated: false, lines: [{ at: at(0), stream: 'stdout', text: 'line 0' }] },
  })
  const texts = async (query: string) =>
    ((await logs(query)).body as { lines: { text: string }[] }).lines.map(({ text }) => text)
  t.same(await texts('&tail=2'), ['line 8', 'line 9'])
  t.same(await texts('&tail=0'), [])
  t.same(await texts(`&since=${at(8)}`), ['line 8', 'line 9'])
  t.same(await texts('&since=2026-01-01T00:00:07Z&tail=1'), ['line 9'])
  t.same((await api.call('HEAD', path('&follow=true'))).status, 200)
  t.same(api.engine.followed, 0)
})

t.test('An invalid parameter, or a missing service, is rejected with its error', async (t) => {
  const rejected: [string, number, string, string][] = [
    ['&tail=1001', 400, 'INVALID_PARAMETER', '"tail"'],
    ['&tail=-1', 400, 'INVALID_PARAMETER', '"tail"'],
    ['&since=yesterday', 400, 'INVALID_PARAMETER', '"since"'],
    ['&since=2026-02-30T99:00:00Z', 400, 'INVALID_PARAMETER', '"since"'],
    ['&follow=yes', 400, 'INVALID_PARAMETER', '"follow"'],
    ['&lines=5', 400, 'UNKNOWN_PARAMETER', '"lines"'],
  ]
  for (const [query, status, code, names] of rejected) isError(t, await logs(query), status, code, names, query)
  isError(t, await api.call('GET', `/v1/tenants/${id}/logs`), 400, 'INVALID_PARAMETER', '"component"', 'no component')
  isError(
    t,
    await api.call('GET', `/v1/tenants/${id}/logs?component=gateway`),
    400,
    'INVALID_PARAMETER',
    '"component"',
    'another component',
  )
  isError(
    t,
    await api.call('GET', path(''), { headers: { 'last-event-id': 'seven' } }),
    400,
    'INVALID_HEADER',
    'Last-Event-ID',
    'not a time',
  )
  api.engine.isReachable = false
  const unreachable = [await logs(), await logs('&follow=true')]
  api.engine.isReachable = true
  for (const response of unreachable)
    isError(t, response, 503, 'ENGINE_UNREACHABLE', 'cannot be reached', 'without an engine')
  const stack = api.engine.stacks.get(id)
  api.engine.stacks.set(id, { containers: [], networks: [], volumes: [], unlabelledVolumes: [] })
  const absent = await logs('&follow=true')
  if (stack !== undefined) api.engine.stacks.set(id, stack)
  isError(t, absent, 404, 'SERVICE_NOT_FOUND', 'no runtime', 'without a container')
})

t.test('Lines come once each, with their times as IDs, and a reader that leaves is removed', async (t) => {
  const { response, events, lines, stop, reading } = await follow(t, '&tail=1')
  t.match(
    [response.status, response.headers.get('content-type'), response.headers.get('cache-control')],
    [200, /^text\/event-stream/, 'no-store'],
  )
  await until(() => lines().length === 1, 'the first line')
  api.engine.write(at(20, 7), 'a line\nof two\r\n\nor more, und 🦊')
  api.engine.write(at(21), '')
  await until(() => lines().length === 3, 'the next two')
  t.same(lines(), ['line 9', 'a line\nof two\r\n\nor more, und 🦊', ''])
  t.same(
    events.filter(({ event }) => event === 'log').map((event) => event.id),
    [at(9), at(20, 7), at(21)],
  )
  t.same(api.engine.followed, 1)
  stop.abort()
  await reading
  await until(() => api.engine.followed === 0, 'the end of the follower')
})

t.test('Last-Event-ID continues right after its line', async (t) => {
  const { lines } = await follow(t, '&tail=1', { 'last-event-id': at(8) })
  await until(() => lines().length === 3, 'what came since')
  t.same(lines()[0], 'line 9')
})

t.test('An engine that goes away ends the stream with an error', async (t) => {
  const { events, reading, lines } = await follow(t)
  await until(() => lines().length > 0, 'a line')
  api.engine.isReachable = false
  api.engine.stir()
  await reading
  api.engine.isReachable = true
  t.match(events.at(-1), { event: 'end', data: /cannot be reached/ })
})

t.test('A reader that reads nothing is cut off, and nothing more is read for it', async (t) => {
  api.clock.timeout = 300
  t.teardown(() => (api.clock.timeout = Infinity))
  const { port } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.on('error', () => undefined)
  socket.pause()
  const closed = new Promise((resolve) => socket.once('close', resolve))
  const before = api.engine.lines.length
  const text = 'x'.repeat(200_000)
  for (let nth = 0; nth < 500; nth++) api.engine.write(at(30, nth), text)
  socket.write(
    `GET ${path('&follow=true&tail=500')} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${api.keys.read}\r\n\r\n`,
  )
  await until(() => api.engine.followed === 1, 'the beginning')
  await until(() => api.engine.followed === 0, 'the end')
  let bytes = 0
  socket.on('data', (chunk: Buffer) => (bytes += chunk.length)).resume()
  await closed
  t.ok(bytes < 50_000_000, `only ${bytes} of 100,000,000 bytes were read for it`)
  const { lines, truncated } = (await logs('&tail=500')).body as { lines: unknown[]; truncated: boolean }
  t.ok(truncated, 'no more than 4 MiB are returned at once')
  t.same(lines.length, Math.floor((4 * 2 ** 20) / 200_000))
  api.engine.lines.splice(before)
})

t.test('A reader of a silent log receives comments', async (t) => {
  api.clock.timeout = 100
  t.teardown(() => (api.clock.timeout = Infinity))
  const { events, lines } = await follow(t, '&tail=0')
  await until(() => events.filter((event) => '' in event).length > 2, 'comments')
  t.same(lines(), [])
})

t.test('A stream ends when its key is revoked, and states that', async (t) => {
  api.clock.timeout = 100
  t.teardown(() => (api.clock.timeout = Infinity))
  const [revoked, valid] = [await api.newKey('read'), await api.newKey('read')]
  const [one, other] = await Promise.all([revoked, valid].map(({ key }) => follow(t, '&tail=1', {}, key)))
  await until(() => one?.lines().length === 1 && other?.lines().length === 1, 'both logs')
  t.same((await api.call('DELETE', `/v1/keys/${revoked.id}`)).status, 200)
  await one?.reading
  t.match(one?.events.at(-1), { event: 'end', data: /The platform key was revoked/ })
  t.same((await follow(t, '', {}, revoked.key)).response.status, 401)
  api.engine.write(at(40), 'not for the revoked key')
  await until(() => other?.lines().length === 2, 'the other log continues')
  t.notOk(one?.lines().includes('not for the revoked key'))
})

t.test('A stream ends after its maximum time, and continues after its last ID, also if it had no line', async (t) => {
  const before = api.engine.lines.at(-1)?.at ?? ''
  api.clock.later = 200
  t.teardown(() => (api.clock.later = Infinity))
  const { events, lines, reading } = await follow(t, '&tail=0')
  await reading
  t.same(lines(), [])
  t.same(
    events.flatMap(({ id }) => id ?? []),
    [before],
    'the ID of the last line before',
  )
  api.engine.write(at(41), 'between two streams')
  const next = await follow(t, '&tail=0', { 'last-event-id': before })
  await next.reading
  t.same(next.lines(), ['between two streams'])
})

t.test('The number of followers is limited', async (t) => {
  const followers = await Promise.all(Array.from({ length: 64 }, () => follow(t, '&tail=0')))
  await until(() => api.engine.followed === 64, '64 followers')
  const one = await follow(t)
  t.same(one.response.status, 503)
  for (const { stop } of followers) stop.abort()
  await until(() => api.engine.followed === 0, 'their end')
  const next = await follow(t)
  t.same(next.response.status, 200)
})

t.test('Times are compared by their value', (t) => {
  t.same(logTime('2026-01-01T00:00:00Z'), at(0))
  t.same(logTime('2026-01-01T00:00:00.5Z'), at(0, 500_000_000))
  t.same(logTime('2026-01-01T00:00:00.000000007+00:00'), at(0, 7))
  for (const text of [
    '',
    'now',
    '2026-01-01',
    '2026-13-01T00:00:00Z',
    '2026-01-01T00:00:00+01:00',
    '2026-01-01T00:00:00.1234567891Z',
  ])
    t.same(logTime(text), undefined, text)
  t.end()
})
