// The small parts: turns, answers, secrets, configuration.
import t from 'tap'
import { RuntimeError } from '../../tenant-runtime/src/errors.ts'
import { FairQueue } from '../../tenant-runtime/src/functions/executor/fair-queue.ts'
import { checkName, checkTrigger, defaultConfig, mergeConfig } from '../../tenant-runtime/src/functions/function.ts'
import { readAnswer } from '../../tenant-runtime/src/functions/invocations/function-answer.ts'
import { redact } from '../../tenant-runtime/src/functions/invocations/redact.ts'

t.test('turns: tenants alternate, and functions within a tenant', async (t) => {
  const queue = new FairQueue<string>()
  for (const item of ['1', '2', '3']) queue.add('loud', 'flood', `flood ${item}`)
  queue.add('loud', 'other', 'other 1')
  queue.add('quiet', 'only', 'only 1')
  t.equal(queue.length('loud', 'flood'), 3)
  const order: (string | undefined)[] = []
  for (let n = 0; n < 6; n++) order.push(queue.take(() => true)?.item)
  t.same(order, ['flood 1', 'only 1', 'other 1', 'flood 2', 'flood 3', undefined])
  queue.add('loud', 'flood', 'a')
  queue.add('quiet', 'only', 'b')
  t.equal(queue.take((tenant) => tenant === 'quiet')?.item, 'b', 'one that may not run is passed over')
})

t.test('answers', async (t) => {
  const of = (text: string) => {
    const { status, headers, body } = readAnswer(Buffer.from(text))
    return [status, headers['content-type'], body.toString()]
  }
  t.same(of('{"a":1}'), [200, 'application/json; charset=utf-8', '{"a":1}'])
  t.same(of(' [1]\n'), [200, 'application/json; charset=utf-8', ' [1]\n'])
  t.same(of('hello'), [200, 'text/plain; charset=utf-8', 'hello'])
  t.same(of(''), [200, 'text/plain; charset=utf-8', ''])
  t.same(of('{broken'), [200, 'text/plain; charset=utf-8', '{broken'])
  t.same(of('Status: 201 Created\r\nContent-Type: text/html\r\n\r\n<p>'), [201, 'text/html', '<p>'])
  t.same(of('status: 404\n\n{"no":1}'), [404, 'application/json; charset=utf-8', '{"no":1}'])
  t.same(of('Status of things: good'), [200, 'text/plain; charset=utf-8', 'Status of things: good'], 'a text that only looks like one')
  t.equal(readAnswer(Buffer.from('Status: 302\nLocation: /x\nX-Mine: 1\n\n')).headers['location'], '/x')
  for (const head of ['Status: 100', 'Status: 999', 'Status: 200\nSet-Cookie: a=b', 'Status: 200\nContent-Length: 1', 'Status: 200\nno header', 'Status: 200\nX-Tenantry-Tenant: t', 'Status: 200\nX-A: \u0001']) {
    t.throws(() => readAnswer(Buffer.from(`${head}\n\n`)), SyntaxError, head)
  }
})

t.test('secrets are taken out of texts', async (t) => {
  const environment = { KEY: 'sesame', LONG: 'sesame-open', SHORT: 'ab' }
  t.equal(redact('used sesame-open, then sesame, ab', environment), 'used [redacted], then [redacted], ab')
  t.equal(redact('a.b', { KEY: 'a.b.' }), 'a.b', 'as texts, not as patterns')
})

t.test('names and triggers', async (t) => {
  for (const name of ['a', 'a1', 'hello-world', 'hello_world', `a${'b'.repeat(63)}`]) t.equal(checkName(name), name)
  for (const name of ['', 'A', '1a', '-a', '_a', 'a b', 'ä', `a${'b'.repeat(64)}`, 'a/b', 'a\n']) t.throws(() => checkName(name), RuntimeError, JSON.stringify(name))
  const good = ['Http', { Database: { table: 'notes', operation: 'Insert' } }, { Schedule: { cron: '*/5 * * * *' } }, { Schedule: { cron: '0 */5 * * * *' } }, { Webhook: { secret: 's' } }]
  for (const trigger of good) t.same(checkTrigger(trigger, new Date()), trigger)
  const bad = ['http', null, {}, { Http: {} }, { Database: { table: 'x' } }, { Database: { table: 'x', operation: 'insert' } }, { Schedule: { cron: 'soon' } }, { Schedule: { cron: '61 * * * *' } }, { Webhook: {} }, { Webhook: { secret: 's', more: 1 } }, { Webhook: { secret: 's' }, Http: {} }]
  for (const trigger of bad) t.throws(() => checkTrigger(trigger, new Date()), RuntimeError, JSON.stringify(trigger))
})

t.test('configuration', async (t) => {
  t.same(defaultConfig, { timeout: 10, max_memory: 134_217_728, environment: {}, role: 'caller', http_hosts: [] }, "the specification's defaults, and as few rights as can be")
  t.same(mergeConfig(defaultConfig, { timeout: 1, environment: { A: '1' } }), { ...defaultConfig, timeout: 1, environment: { A: '1' } })
  const before = { ...defaultConfig, timeout: 5, max_memory: 16_777_216, environment: { A: '1', B: '2' } }
  t.same(mergeConfig(before, { environment: { A: null, C: '3' } }), { ...before, environment: { B: '2', C: '3' } }, 'a merge patch')
  for (const good of [{ timeout: 300 }, { max_memory: 16_777_216 }, { max_memory: 536_870_912 }]) t.match(mergeConfig(defaultConfig, good), good)
  for (const bad of [
    { timeout: 0 }, { timeout: 301 }, { timeout: 1.5 }, { timeout: '5' }, { max_memory: 16_777_215 }, { max_memory: 536_870_913 }, { memory: 1 }, [], null, 'x',
    { environment: [] }, { environment: { 'a b': '1' } }, { environment: { A: 1 } }, { environment: { A: 'a\0b' } }, { environment: { TENANTRY_ROLE: 'x' } }, { environment: { A: 'x'.repeat(33_000) } },
  ]) t.throws(() => mergeConfig(defaultConfig, bad), RuntimeError, JSON.stringify(bad).slice(0, 60))
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
})
