// Small parts of functions: queue, responses, secrets, frames, logs, variables and configuration.
import fc from 'fast-check'
import t from 'tap'
import { RuntimeError } from '#tenant-runtime/errors.ts'
import { FrameReader, encodeFrame, type Reply } from '#tenant-runtime/functions/executor/protocol.ts'
import { RunLog } from '#tenant-runtime/functions/executor/run-log.ts'
import { FairQueue } from '#tenant-runtime/functions/executor/fair-queue.ts'
import { checkName, checkTrigger, defaultConfig, mergeConfig } from '#tenant-runtime/functions/function.ts'
import { readResponse } from '#tenant-runtime/functions/invocations/function-response.ts'
import { Secrets, redact } from '#tenant-runtime/functions/invocations/redact.ts'
import { requestVariables } from '#tenant-runtime/functions/invocations/request-variables.ts'
import { effort, seed } from '#test/support/effort.ts'

t.test('FairQueue alternates between tenants, and between the functions of a tenant', async (t) => {
  const queue = new FairQueue<string>()
  for (const item of ['1', '2', '3']) queue.add('loud', 'flood', `flood ${item}`, 0)
  queue.add('loud', 'other', 'other 1', 0)
  queue.add('quiet', 'only', 'only 1', 0)
  t.equal(queue.length('loud', 'flood'), 3)
  const order: (string | undefined)[] = []
  for (let n = 0; n < 6; n++) order.push(queue.take(() => true)?.item)
  t.same(order, ['flood 1', 'only 1', 'other 1', 'flood 2', 'flood 3', undefined])
  queue.add('loud', 'flood', 'a', 0)
  queue.add('quiet', 'only', 'b', 0)
  t.equal(queue.take((tenant) => tenant === 'quiet')?.item, 'b', 'a tenant that may not run is skipped')
})

t.test("readResponse reads status, headers and body from a function's output", async (t) => {
  const of = (text: string) => {
    const { status, headers, body } = readResponse(Buffer.from(text))
    return [status, headers['content-type'], body.toString()]
  }
  t.same(of('{"a":1}'), [200, 'application/json; charset=utf-8', '{"a":1}'])
  t.same(of(' [1]\n'), [200, 'application/json; charset=utf-8', ' [1]\n'])
  t.same(of('hello'), [200, 'text/plain; charset=utf-8', 'hello'])
  t.same(of(''), [200, 'text/plain; charset=utf-8', ''])
  t.same(of('{broken'), [200, 'text/plain; charset=utf-8', '{broken'])
  t.same(of('Status: 201 Created\r\nContent-Type: text/html\r\n\r\n<p>'), [201, 'text/html', '<p>'])
  t.same(of('status: 404\n\n{"no":1}'), [404, 'application/json; charset=utf-8', '{"no":1}'])
  t.same(
    of('Status of things: good'),
    [200, 'text/plain; charset=utf-8', 'Status of things: good'],
    'a text that only resembles a header',
  )
  t.equal(readResponse(Buffer.from('Status: 302\nLocation: /x\nX-Mine: 1\n\n')).headers['location'], '/x')
  for (const head of [
    'Status: 100',
    'Status: 999',
    'Status: 200\nSet-Cookie: a=b',
    'Status: 200\nContent-Length: 1',
    'Status: 200\nno header',
    'Status: 200\nX-Tenantry-Tenant: t',
    'Status: 200\nX-A: \u0001',
  ]) {
    t.throws(() => readResponse(Buffer.from(`${head}\n\n`)), SyntaxError, head)
  }
})

t.test('redact removes secrets from texts', async (t) => {
  const environment = { KEY: 'sesame', LONG: 'sesame-open', SHORT: 'ab' }
  t.equal(redact('used sesame-open, then sesame, ab', environment), 'used [redacted], then [redacted], ab')
  t.equal(redact('a.b', { KEY: 'a.b.' }), 'a.b', 'secrets are texts, not patterns')
  t.equal(
    redact('one two\n three', { KEY: 'two three', PEM: 'x\r\nyzw' }),
    'one [redacted]\n[redacted]',
    'split by a line break',
  )
  t.equal(redact('-x\nyz\r\nw-', { PEM: 'x\r\nyzw' }), '-[redacted]\n[redacted]\n[redacted]-')
  const cut = new Secrets({ KEY: 'canary-bird' })
  t.same(
    [cut.redact('a canary-', true), cut.redact('a canary-'), cut.redact('a can', true)],
    ['a [redacted]', 'a canary-', 'a can'],
  )
  t.equal(redact('', { KEY: 'sesame' }), '')
})

t.test('redact finds nested and overlapping secrets like a search for each', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 4, maxLength: 7 }), { maxLength: 6 }),
      fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 60 }),
      (secrets, text) => {
        const isSecret = new Uint8Array(text.length)
        for (const secret of secrets)
          for (let at = text.indexOf(secret); at >= 0; at = text.indexOf(secret, at + 1))
            isSecret.fill(1, at, at + secret.length)
        const rest = text.replaceAll(/./g, (character, n: number) => (isSecret[n] === 0 ? character : ''))
        return redact(text, Object.fromEntries(secrets.entries())).replaceAll('[redacted]', '') === rest
      },
    ),
    { seed, numRuns: effort({ small: 500, full: 50_000 }) },
  )
})

t.test('FrameReader returns whole frames from chunks of any size', async (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 12 }),
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
      (bodies, sizes) => {
        const all = Buffer.concat(bodies.map((body) => encodeFrame({ kind: 'log', level: 'info' }, body)))
        const reader = new FrameReader<Reply>(1_000)
        const read: string[] = []
        for (let at = 0, n = 0; at < all.length; n++) {
          const size = sizes[n % sizes.length] ?? 1
          for (const { head, bytes } of reader.push(all.subarray(at, at + size)))
            read.push(`${head.kind} ${bytes.toString('hex')}`)
          at += size
        }
        return JSON.stringify(read) === JSON.stringify(bodies.map((body) => `log ${Buffer.from(body).toString('hex')}`))
      },
    ),
    { seed, numRuns: effort({ small: 200, full: 20_000 }) },
  )
  t.throws(
    () => [...new FrameReader<Reply>(10).push(encodeFrame({ kind: 'log', level: 'info' }))],
    /The frame has \d+ bytes/,
  )
})

t.test('RunLog joins many small writes into few chunks, complete and in order', async (t) => {
  const sent: [string, string][] = []
  const log = new RunLog(10_000, (level, text) => sent.push([level, Buffer.from(text).toString()]))
  const chunk = Buffer.from('x')
  for (let n = 0; n < 9_990; n++) {
    chunk[0] = 97 + (n % 26)
    log.write(n === 5_000 ? 'warn' : 'info', chunk)
  }
  log.write('info', Buffer.from('0123456789abc'))
  log.end()
  t.ok(sent.length < 300, `${sent.length} chunks`)
  const expected = Array.from({ length: 9_990 }, (_, n) => String.fromCharCode(97 + (n % 26))).join('') + '0123456789'
  t.equal(sent.map(([, text]) => text).join(''), expected)
  t.same(
    sent.filter(([level]) => level === 'warn').map(([, text]) => text),
    [expected[5_000]],
  )
  t.equal(log.cut, 3)
})

t.test('requestVariables describes the request without its credentials', async (t) => {
  const headers = {
    'content-type': 'text/plain',
    'x-github-event': 'push',
    accept: 'a/b',
    'set-cookie': ['a', 'b'],
    host: 'acme',
    'content-length': '4',
    authorization: 'Bearer canary',
    apikey: 'canary',
    cookie: 'canary',
    'proxy-authorization': 'canary',
    'x-tenantry-token': 'canary',
    'x-tenantry-tenant': 'canary',
  }
  const variables = requestVariables({ method: 'PUT', url: '/functions/v1/invoke/a?b=c%20d&b=e?', headers })
  t.same(
    { ...variables, TENANTRY_HEADERS: JSON.parse(variables['TENANTRY_HEADERS'] ?? '') as unknown },
    {
      TENANTRY_METHOD: 'PUT',
      TENANTRY_QUERY: 'b=c%20d&b=e?',
      TENANTRY_CONTENT_TYPE: 'text/plain',
      TENANTRY_HEADERS: { 'content-type': 'text/plain', 'x-github-event': 'push', accept: 'a/b', 'set-cookie': 'a, b' },
    },
  )
  t.same(requestVariables({ method: 'GET', url: '/functions/v1/invoke/a', headers: {} }), {
    TENANTRY_METHOD: 'GET',
    TENANTRY_QUERY: '',
    TENANTRY_CONTENT_TYPE: undefined,
    TENANTRY_HEADERS: '{}',
  })
})

t.test('checkName and checkTrigger accept only valid values', async (t) => {
  for (const name of ['a', 'a1', 'hello-world', 'hello_world', `a${'b'.repeat(63)}`]) t.equal(checkName(name), name)
  for (const name of ['', 'A', '1a', '-a', '_a', 'a b', 'ä', `a${'b'.repeat(64)}`, 'a/b', 'a\n'])
    t.throws(() => checkName(name), RuntimeError, JSON.stringify(name))
  const good = [
    'Http',
    { Database: { table: 'notes', operation: 'Insert' } },
    { Schedule: { cron: '*/5 * * * *' } },
    { Schedule: { cron: '0 */5 * * * *' } },
    { Webhook: { secret: 's' } },
  ]
  for (const trigger of good) t.same(checkTrigger(trigger, new Date()), trigger)
  const bad = [
    'http',
    null,
    {},
    { Http: {} },
    { Database: { table: 'x' } },
    { Database: { table: 'x', operation: 'insert' } },
    { Schedule: { cron: 'soon' } },
    { Schedule: { cron: '61 * * * *' } },
    { Webhook: {} },
    { Webhook: { secret: 's', more: 1 } },
    { Webhook: { secret: 's' }, Http: {} },
  ]
  for (const trigger of bad) t.throws(() => checkTrigger(trigger, new Date()), RuntimeError, JSON.stringify(trigger))
})

t.test('mergeConfig applies valid changes and rejects others', async (t) => {
  t.same(
    defaultConfig,
    { timeout: 10, max_memory: 134_217_728, environment: {}, role: 'caller', http_hosts: [] },
    "the specification's defaults, with the fewest rights",
  )
  t.same(mergeConfig(defaultConfig, { timeout: 1, environment: { A: '1' } }), {
    ...defaultConfig,
    timeout: 1,
    environment: { A: '1' },
  })
  const before = { ...defaultConfig, timeout: 5, max_memory: 16_777_216, environment: { A: '1', B: '2' } }
  t.same(
    mergeConfig(before, { environment: { A: null, C: '3' } }),
    { ...before, environment: { B: '2', C: '3' } },
    'a merge patch',
  )
  for (const good of [{ timeout: 300 }, { max_memory: 16_777_216 }, { max_memory: 536_870_912 }])
    t.match(mergeConfig(defaultConfig, good), good)
  for (const bad of [
    { timeout: 0 },
    { timeout: 301 },
    { timeout: 1.5 },
    { timeout: '5' },
    { max_memory: 16_777_215 },
    { max_memory: 536_870_913 },
    { memory: 1 },
    [],
    null,
    'x',
    { environment: [] },
    { environment: { 'a b': '1' } },
    { environment: { A: 1 } },
    { environment: { A: 'a\0b' } },
    { environment: { TENANTRY_ROLE: 'x' } },
    { environment: { A: 'x'.repeat(33_000) } },
  ])
    t.throws(() => mergeConfig(defaultConfig, bad), RuntimeError, JSON.stringify(bad).slice(0, 60))
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
})
