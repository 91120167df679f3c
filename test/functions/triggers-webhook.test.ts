// Webhooks: what is signed and fresh runs, once; everything else is told what is wrong with it, and runs nothing.
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
const told = readAll()
if (told.startsWith('fail')) { process.stderr.write(told); process.exit(4) }
if (told == 'refuse') process.stdout.write('Status: 422\\n\\nnot now')
else if (told == 'slow') { let n: i64 = 0; while (n < 1500000000) n++; process.stdout.write(n.toString()) }
else {
  const caller = process.env.get('TENANTRY_TRIGGER') + ' ' + process.env.get('TENANTRY_ROLE')
  const pushed = process.env.get('TENANTRY_HEADERS').includes('"x-event":"push"') ? ' pushed' : ''
  process.stdout.write(caller + ' ' + process.env.get('TENANTRY_WEBHOOK_ID') + ' ' + told + pushed)
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

t.test('a message that is signed runs the function, in both forms of headers, without a caller', async (t) => {
  const { tenant, message } = await open()
  const one = message('{"is":"one"}')
  const first = await send(tenant, 'ours', ours(one), String(one.body))
  t.equal(first.status, 200)
  t.equal(first.text, `webhook anon ${one.id} {"is":"one"}`)
  t.equal(first.headers['x-invocation-id'], (await records(tenant))[0]?.['id'])
  const second = await send(tenant, 'common', common(one), String(one.body))
  t.equal(second.text, `webhook anon ${one.id} {"is":"one"}`, 'each function has ids of its own')
  const several = {
    ...common(one),
    'webhook-id': 'other',
    'webhook-signature': `v1a,unknown v1,${'A'.repeat(43)}= v1,${signature(key, { ...one, id: 'other' }, 'base64')}`,
  }
  t.equal((await send(tenant, 'common', several, String(one.body))).status, 200, 'any of several signatures will do')
  t.match(
    (await send(tenant, 'ours', { ...ours(message('x', 'told')), 'x-event': 'push' }, 'x')).text,
    / x pushed$/,
    'the function is told of the headers',
  )
  const bytes = Buffer.from([0, 255, 10, 13, 128])
  const raw: Message = { ...message(''), body: bytes }
  t.equal(
    (await send(tenant, 'ours', { ...ours(raw), 'content-type': 'application/octet-stream' }, bytes)).status,
    200,
    'the bytes count, whatever they are',
  )
  const empty = message('')
  t.equal((await send(tenant, 'ours', ours(empty), '')).status, 200)
  const swapped = await send(tenant, 'common', ours(message('x', 'in our form'.replaceAll(' ', '-')), key), 'x')
  t.equal(swapped.status, 200, "the form of the headers is the sender's choice")
  t.same(
    (await records(tenant)).map(({ trigger, status, user_id }) => [trigger, status, user_id]),
    Array.from({ length: 7 }, () => ['http', 'success', null]),
  )
})

t.test(
  'what is not signed, not fresh or not for this function is refused, with what is wrong, and runs nothing',
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
    await rejected({}, /not signed: send webhook-id, webhook-timestamp and webhook-signature, or tenantry-id/)
    for (const name of Object.keys(good)) await rejected(without(name), new RegExp(`the header "${name}" is missing`))
    await rejected({ ...good, 'tenantry-timestamp': 'now' }, /must be a time in seconds/)
    await rejected({ ...good, 'tenantry-timestamp': '-5' }, /must be a time in seconds/)
    await rejected({ ...good, 'tenantry-signature': signature(secret, one, 'hex') }, /no signature of version 1/)
    await rejected({ ...good, 'tenantry-signature': 'v1=abcd' }, /no signature of version 1/)
    await rejected({ ...good, 'tenantry-id': 'a b' }, /visible ASCII/)
    await rejected({ ...good, 'tenantry-id': 'a'.repeat(257) }, /256 visible/)
    await rejected({ ...good, 'tenantry-id': 'another' }, /no signature fits/)
    await rejected({ ...good, 'tenantry-timestamp': String(one.at + 1) }, /no signature fits/)
    await rejected(good, /no signature fits/, '{"is":"two"}')
    await rejected(good, /no signature fits/, '')
    await rejected(ours(one, 'another secret'), /no signature fits/)
    await rejected(good, /no signature fits/, one.body, 'common')
    await rejected(
      { ...good, authorization: `Bearer ${tenant.secretKey}`, 'tenantry-signature': `v1=${'0'.repeat(64)}` },
      /no signature fits/,
    )
    for (const seconds of [301, -301]) {
      const late = { ...one, at: one.at + seconds }
      clock.stopped = one.at * 1_000
      await rejected(ours(late), new RegExp(`is ${late.at}, but here it is ${one.at}: more than 300 s apart`))
    }
    const statements = tenant.statements()
    await rejected({ ...good, 'tenantry-timestamp': String(one.at - 1_000) }, /more than 300 s apart/)
    t.equal(tenant.statements(), statements, 'the database is not asked for a message that is too old')
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

t.test('every bit of a message counts', async (t) => {
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

t.test('a secret with the common prefix is a key in base64, or refused', async (t) => {
  const check = (secret: string) => () => checkTrigger({ Webhook: { secret } }, new Date())
  t.doesNotThrow(check(encoded))
  t.doesNotThrow(check('anything else'))
  for (const wrong of ['whsec_', 'whsec_!!!', 'whsec_a b'])
    t.throws(check(wrong), { code: 'INVALID_FUNCTION', message: /base64/ }, wrong)
})

t.test('a message that is sent again and again runs once', async (t) => {
  const { tenant, message } = await open()
  const one = message('{"is":"one"}')
  const replays = effort({ small: 200, full: 1_000 })
  const responses: string[] = []
  let left = replays
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (left-- > 0) {
        const { status, text } = await send(tenant, 'ours', ours(one), one.body)
        responses.push(status === 200 ? text : String(status))
      }
    }),
  )
  t.equal(responses.length, replays)
  t.equal((await records(tenant)).length, 1, 'one run')
  const kinds = new Set(responses)
  t.ok(kinds.delete(`webhook anon ${one.id} {"is":"one"}`), 'one of them was answered by the function')
  t.ok(kinds.delete('{"duplicate":true}'))
  t.ok(
    [...kinds].every((kind) => kind === '409'),
    `and ${[...kinds].join(', ') || 'no other'} while it ran`,
  )
  t.same((await send(tenant, 'ours', ours(one), one.body)).json(), { duplicate: true })
})

t.test('while a message is being taken, another of its id is told so', async (t) => {
  const { tenant, message } = await open()
  const slow = message('slow')
  const first = send(tenant, 'ours', ours(slow), slow.body)
  await until(async () => (await records(tenant)).length === 1)
  const second = await send(tenant, 'ours', ours(slow), slow.body)
  t.equal(second.status, 409)
  t.match(second.json(), { code: 'CONFLICT', message: /being taken already/ })
  t.equal((await first).status, 200)
  t.same((await send(tenant, 'ours', ours(slow), slow.body)).json(), { duplicate: true })
  t.equal((await records(tenant)).length, 1)
})

t.test('a message that failed may be sent again under its id', async (t) => {
  const { tenant, message } = await open()
  const failing = message('fail')
  for (let n = 0; n < 3; n++) t.equal((await send(tenant, 'ours', ours(failing), failing.body)).status, 500)
  t.same(
    (await records(tenant)).map(({ status }) => status),
    ['error', 'error', 'error'],
  )
  const rejected = message('refuse')
  for (let n = 0; n < 2; n++)
    t.equal(
      (await send(tenant, 'ours', ours(rejected), rejected.body)).status,
      422,
      'so may one that the function refused',
    )
  t.equal((await records(tenant)).length, 5)
})

t.test('a message whose run was cut off may be sent again once its time is over', async (t) => {
  const { tenant, message, id } = await open()
  const one = message('{"is":"one"}')
  // As a kill leaves it.
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

t.test('only an enabled function with this trigger can be reached so', async (t) => {
  const { tenant, message } = await open()
  const one = message('{"is":"one"}')
  for (const name of ['nobody', 'http', 'A', 'x'.repeat(300)])
    t.equal((await send(tenant, name, ours(one), one.body)).json()['code'], 'NO_SUCH_FUNCTION', name.slice(0, 10))
  await tenant.request('PATCH', '/functions/v1/ours', { as: 'service', body: { enabled: false } })
  t.equal((await send(tenant, 'ours', ours(one), one.body)).status, 404)
  await tenant.request('PATCH', '/functions/v1/ours', {
    as: 'service',
    body: { enabled: true, trigger: { Webhook: { secret: 'a new one' } } },
  })
  t.equal((await send(tenant, 'ours', ours(one), one.body)).status, 401, 'a secret that was changed is changed at once')
  t.equal((await send(tenant, 'ours', ours(one, 'a new one'), one.body)).status, 200)
  t.equal((await tenant.request('GET', '/functions/v1/webhook/ours', { headers: ours(one) })).status, 404)
})

t.test('the secret shows in no error, record or log', async (t) => {
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
  const seen = JSON.stringify([responses.map(({ text }) => text), await records(tenant), runtime.problems])
  for (const text of [secret, encoded, key.toString('base64')]) t.notMatch(seen, text)
})

t.test('what can not be a replay any more is forgotten', async (t) => {
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
