// Webhooks: a signed and fresh message runs its function once. Every other message is rejected with its error, and runs
// nothing.
import { createHmac, randomBytes } from 'node:crypto'
import t from 'tap'
import { compileSource } from '#examples/functions/compile.ts'
import { RuntimeError } from '#tenant-runtime/errors.ts'
import { checkTrigger } from '#tenant-runtime/functions/function.ts'
import { checkSignature, readWebhookHead } from '#tenant-runtime/functions/triggers/webhook-signature.ts'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { readAll } from './support/assemblyscript.ts'
import { deployFunction, invoke } from './support/deployed.ts'

const receiver = await compileSource(`${readAll}
const input = readAll()
if (input.startsWith('fail')) { process.stderr.write(input); process.exit(4) }
if (input == 'reject') process.stdout.write('Status: 422\\n\\nnot now')
else if (input == 'slow') { let n: i64 = 0; while (n < 1500000000) n++; process.stdout.write(n.toString()) }
else {
  const caller = process.env.get('TENANTRY_TRIGGER') + ' ' + process.env.get('TENANTRY_ROLE')
  const pushed = process.env.get('TENANTRY_HEADERS').includes('"x-event":"push"') ? ' pushed' : ''
  process.stdout.write(caller + ' ' + process.env.get('TENANTRY_WEBHOOK_ID') + ' ' + input + pushed)
}
`)

const secret = 'canary-a-webhooks-secret'
const key = randomBytes(24)
const encoded = `whsec_${key.toString('base64')}`

interface Message {
  id: string
  body: string | Buffer
  /** Seconds since 1970. */
  at: number
}

const signature = (key: string | Buffer, { id, body, at }: Message, encoding: 'hex' | 'base64') =>
  createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest(encoding)
const common = (message: Message, signWith: string | Buffer = key) => ({
  'webhook-id': message.id,
  'webhook-timestamp': String(message.at),
  'webhook-signature': `v1,${signature(signWith, message, 'base64')}`,
})
const ours = (message: Message, signWith: string | Buffer = secret) => ({
  'tenantry-id': message.id,
  'tenantry-timestamp': String(message.at),
  'tenantry-signature': `v1=${signature(signWith, message, 'hex')}`,
})

const send = (tenant: TestTenant, name: string, headers: Record<string, string>, body: string | Buffer) =>
  tenant.request('POST', `/functions/v1/webhook/${name}`, {
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })
const records = (tenant: TestTenant) =>
  tenant.rows(
    'select i.*, f.name from function_invocations i join functions f on f.id = i.function_id order by i.timestamp, i.id',
  )

const started = startRuntime(t)

async function open() {
  const runtime = await started
  const tenant = await runtime.addTenant()
  Object.assign(runtime.clock, { ahead: 0, stopped: undefined })
  const id = await deployFunction(tenant, {
    name: 'ours',
    wasm: receiver,
    config: { timeout: 60 },
    trigger: { Webhook: { secret } },
  })
  await deployFunction(tenant, { name: 'common', wasm: receiver, trigger: { Webhook: { secret: encoded } } })
  await deployFunction(tenant, { name: 'http', wasm: receiver })
  const { clock } = runtime
  const message = (body: string, id = `msg_${randomBytes(8).toString('hex')}`): Message => ({
    id,
    body,
    at: Math.floor(clock.now() / 1_000),
  })
  return { runtime, tenant, clock, message, id }
}

t.test('A signed message runs the function without a caller, with either form of headers', async (t) => {
  const { tenant, message } = await open()
  const one = message('{"is":"one"}')
  const first = await send(tenant, 'ours', ours(one), String(one.body))
  t.equal(first.status, 200)
  t.equal(first.text, `webhook anon ${one.id} {"is":"one"}`)
  t.equal(first.headers['x-invocation-id'], (await records(tenant))[0]?.['id'])
  const second = await send(tenant, 'common', common(one), String(one.body))
  t.equal(second.text, `webhook anon ${one.id} {"is":"one"}`, 'each function has its own message IDs')
  const several = {
    ...common(one),
    'webhook-id': 'other',
    'webhook-signature': `v1a,unknown v1,${'A'.repeat(43)}= v1,${signature(key, { ...one, id: 'other' }, 'base64')}`,
  }
  t.equal(
    (await send(tenant, 'common', several, String(one.body))).status,
    200,
    'one valid signature of several is sufficient',
  )
  t.match(
    (await send(tenant, 'ours', { ...ours(message('x', 'headers')), 'x-event': 'push' }, 'x')).text,
    / x pushed$/,
    'the function receives the headers',
  )
  const bytes = Buffer.from([0, 255, 10, 13, 128])
  const raw: Message = { ...message(''), body: bytes }
  t.equal(
    (await send(tenant, 'ours', { ...ours(raw), 'content-type': 'application/octet-stream' }, bytes)).status,
    200,
    'any bytes can be signed',
  )
  const empty = message('')
  t.equal((await send(tenant, 'ours', ours(empty), '')).status, 200)
  const swapped = await send(tenant, 'common', ours(message('x', 'in our form'.replaceAll(' ', '-')), key), 'x')
  t.equal(swapped.status, 200, 'the sender selects the form of the headers')
  t.same(
    (await records(tenant)).map(({ trigger, status, user_id }) => [trigger, status, user_id]),
    Array.from({ length: 7 }, () => ['http', 'success', null]),
  )
})

t.test(
  'A message that is unsigned, stale or for another function is rejected with its error, and runs nothing',
  async (t) => {
    const { tenant, message, clock } = await open()
    const one = message('{"is":"one"}')
    const good = ours(one)
    const rejected = async (
      headers: Record<string, string>,
      what: RegExp,
      body: string | Buffer = one.body,
      name = 'ours',
    ) => {
      const response = await send(tenant, name, headers, body)
      t.equal(response.status, 401, String(what))
      t.match(response.json(), { code: 'INVALID_WEBHOOK', message: what })
      t.notMatch(response.text, secret)
    }
    const without = (name: string) => Object.fromEntries(Object.entries(good).filter(([header]) => header !== name))
    await rejected(
      {},
      /not signed\. Send the headers webhook-id, webhook-timestamp and webhook-signature, or tenantry-id/,
    )
    for (const name of Object.keys(good)) await rejected(without(name), new RegExp(`Header "${name}" is missing`))
    await rejected({ ...good, 'tenantry-timestamp': 'now' }, /must be a time in seconds/)
    await rejected({ ...good, 'tenantry-timestamp': '-5' }, /must be a time in seconds/)
    await rejected({ ...good, 'tenantry-signature': signature(secret, one, 'hex') }, /no signature of version 1/)
    await rejected({ ...good, 'tenantry-signature': 'v1=abcd' }, /no signature of version 1/)
    await rejected({ ...good, 'tenantry-id': 'a b' }, /visible ASCII/)
    await rejected({ ...good, 'tenantry-id': 'a'.repeat(257) }, /256 visible/)
    await rejected({ ...good, 'tenantry-id': 'another' }, /No signature is valid/)
    await rejected({ ...good, 'tenantry-timestamp': String(one.at + 1) }, /No signature is valid/)
    await rejected(good, /No signature is valid/, '{"is":"two"}')
    await rejected(good, /No signature is valid/, '')
    await rejected(ours(one, 'another secret'), /No signature is valid/)
    await rejected(good, /No signature is valid/, one.body, 'common')
    await rejected(
      { ...good, authorization: `Bearer ${tenant.secretKey}`, 'tenantry-signature': `v1=${'0'.repeat(64)}` },
      /No signature is valid/,
    )
    for (const seconds of [301, -301]) {
      const late = { ...one, at: one.at + seconds }
      clock.stopped = one.at * 1_000
      await rejected(ours(late), new RegExp(`is ${late.at}, which differs by more than 300 s from the time ${one.at}`))
    }
    const statements = tenant.statements()
    await rejected({ ...good, 'tenantry-timestamp': String(one.at - 1_000) }, /differs by more than 300 s/)
    t.equal(tenant.statements(), statements, 'the database receives no query for a message that is too old')
    t.same(await records(tenant), [])
    t.same(await tenant.rows('select * from function_webhook_ids'), [])
    for (const seconds of [300, -300])
      t.equal(
        (
          await send(
            tenant,
            'ours',
            ours({ ...one, id: `at ${seconds}`.replace(' ', ''), at: one.at + seconds }),
            one.body,
          )
        ).status,
        200,
      )
  },
)

t.test('checkSignature rejects a change of any bit', async (t) => {
  const at = 1_800_000_000
  const message: Message = { id: 'msg_1', body: '{"amount":100}', at }
  const check = ({ id, body, at: time }: Message, bytes: Buffer) =>
    checkSignature({ id, timestamp: String(time), signatures: [bytes] }, Buffer.from(body), secret)
  const right = Buffer.from(signature(secret, message, 'hex'), 'hex')
  t.doesNotThrow(() => check(message, right))
  for (let bit = 0; bit < right.length * 8; bit++) {
    const wrong = Buffer.from(right)
    wrong[bit >> 3] = (wrong[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    t.throws(() => check(message, wrong), { code: 'INVALID_WEBHOOK' }, `bit ${bit}`)
  }
  for (const length of [0, 31, 33])
    t.throws(() => check(message, Buffer.concat([right, right]).subarray(0, length)), RuntimeError)
  t.throws(() => check({ ...message, id: 'msg_1.18', at: 0 }, right), RuntimeError)
  t.throws(
    () =>
      readWebhookHead(
        { 'webhook-id': 'a', 'webhook-timestamp': '1e9', 'webhook-signature': `v1,${right.toString('base64')}` },
        at * 1_000,
      ),
    RuntimeError,
  )
})

t.test('A secret with the common prefix must be a key in base64', async (t) => {
  const check = (secret: string) => () => checkTrigger({ Webhook: { secret } }, new Date())
  t.doesNotThrow(check(encoded))
  t.doesNotThrow(check('anything else'))
  for (const wrong of ['whsec_', 'whsec_!!!', 'whsec_a b'])
    t.throws(check(wrong), { code: 'INVALID_FUNCTION', message: /base64/ }, wrong)
})

t.test('A message that is sent repeatedly runs once', async (t) => {
  const { tenant, message } = await open()
  const one = message('{"is":"one"}')
  const replays = effort({ small: 200, full: 1_000 })
  const responses: string[] = []
  let remaining = replays
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (remaining-- > 0) {
        const { status, text } = await send(tenant, 'ours', ours(one), one.body)
        responses.push(status === 200 ? text : String(status))
      }
    }),
  )
  t.equal(responses.length, replays)
  t.equal((await records(tenant)).length, 1, 'one run')
  const kinds = new Set(responses)
  t.ok(kinds.delete(`webhook anon ${one.id} {"is":"one"}`), 'the function returned one of the responses')
  t.ok(kinds.delete('{"duplicate":true}'))
  t.ok(
    [...kinds].every((kind) => kind === '409'),
    `and ${[...kinds].join(', ') || 'no other'} while it ran`,
  )
  t.same((await send(tenant, 'ours', ours(one), one.body)).json(), { duplicate: true })
})

t.test('While a message runs, another with its ID is rejected with 409', async (t) => {
  const { tenant, message } = await open()
  const slow = message('slow')
  const first = send(tenant, 'ours', ours(slow), slow.body)
  await until(async () => (await records(tenant)).length === 1)
  const second = await send(tenant, 'ours', ours(slow), slow.body)
  t.equal(second.status, 409)
  t.match(second.json(), { code: 'CONFLICT', message: /is being processed/ })
  t.equal((await first).status, 200)
  t.same((await send(tenant, 'ours', ours(slow), slow.body)).json(), { duplicate: true })
  t.equal((await records(tenant)).length, 1)
})

t.test('A message that failed may be sent again with its ID', async (t) => {
  const { tenant, message } = await open()
  const failing = message('fail')
  for (let n = 0; n < 3; n++) t.equal((await send(tenant, 'ours', ours(failing), failing.body)).status, 500)
  t.same(
    (await records(tenant)).map(({ status }) => status),
    ['error', 'error', 'error'],
  )
  const rejected = message('reject')
  for (let n = 0; n < 2; n++)
    t.equal(
      (await send(tenant, 'ours', ours(rejected), rejected.body)).status,
      422,
      'as may a message that the function rejected',
    )
  t.equal((await records(tenant)).length, 5)
})

t.test('A message whose run was cut off may be sent again after the timeout', async (t) => {
  const { tenant, message, id } = await open()
  const one = message('{"is":"one"}')
  // This is the state after a kill.
  await tenant.rows("insert into function_invocations (id, function_id, trigger) values ('cut', $1, 'http')", [id])
  await tenant.rows(
    "insert into function_webhook_ids (function_id, message_id, invocation_id) values ($1, $2, 'cut')",
    [id, one.id],
  )
  t.equal((await send(tenant, 'ours', ours(one), one.body)).status, 409)
  await tenant.rows("update function_invocations set timestamp = now() - interval '61 seconds'")
  t.equal((await send(tenant, 'ours', ours(one), one.body)).status, 200)
  t.same((await send(tenant, 'ours', ours(one), one.body)).json(), { duplicate: true })
})

t.test('Only an enabled function with a webhook trigger receives messages', async (t) => {
  const { tenant, message } = await open()
  const one = message('{"is":"one"}')
  for (const name of ['missing', 'http', 'A', 'x'.repeat(300)])
    t.equal((await send(tenant, name, ours(one), one.body)).json()['code'], 'NO_SUCH_FUNCTION', name.slice(0, 10))
  await tenant.request('PATCH', '/functions/v1/ours', { as: 'service', body: { enabled: false } })
  t.equal((await send(tenant, 'ours', ours(one), one.body)).status, 404)
  await tenant.request('PATCH', '/functions/v1/ours', {
    as: 'service',
    body: { enabled: true, trigger: { Webhook: { secret: 'a new one' } } },
  })
  t.equal((await send(tenant, 'ours', ours(one), one.body)).status, 401, 'a changed secret applies at once')
  t.equal((await send(tenant, 'ours', ours(one, 'a new one'), one.body)).status, 200)
  t.equal((await tenant.request('GET', '/functions/v1/webhook/ours', { headers: ours(one) })).status, 404)
})

t.test('No error, record or log contains the secret', async (t) => {
  const { runtime, tenant, message } = await open()
  const failing = message(`fail with ${secret}`)
  const responses = [
    await send(tenant, 'ours', ours(failing), failing.body),
    await invoke(tenant, 'ours', `fail with ${secret}`),
    await invoke(tenant, 'common', `fail with ${encoded} and ${key.toString('base64')}`),
  ]
  t.same(
    responses.map(({ status }) => status),
    [500, 500, 500],
  )
  for (const { text } of responses) t.match(text, /fail with \[redacted\]/)
  const seen = JSON.stringify([responses.map(({ text }) => text), await records(tenant), runtime.errors])
  for (const text of [secret, encoded, key.toString('base64')]) t.notMatch(seen, text)
})

t.test('The runtime deletes message IDs that can no longer be replayed', async (t) => {
  const { tenant, message, clock } = await open()
  for (const id of ['old', 'young']) {
    const one = message('x', id)
    t.equal((await send(tenant, 'ours', ours(one), one.body)).status, 200)
  }
  await tenant.rows(
    "update function_webhook_ids set received_at = now() - interval '61 minutes' where message_id = 'old'",
  )
  clock.ahead = 11 * 60_000
  const next = message('x', 'next')
  t.equal((await send(tenant, 'ours', ours(next), next.body)).status, 200)
  await until(async () =>
    (await tenant.rows('select message_id from function_webhook_ids')).every(({ message_id }) => message_id !== 'old'),
  )
  t.same(
    (await tenant.rows('select message_id from function_webhook_ids order by 1')).map(({ message_id }) => message_id),
    ['next', 'young'],
  )
})
