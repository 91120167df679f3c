// Operators' webhooks: each event reaches each endpoint that wants it, signed, at least once. Undelivered events are
// stored, listed and replayed, and no message reaches internal addresses of the operator's machine.
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { readNetworks } from '@tenantry/contract'
import t from 'tap'
import { systemClock } from '#control-plane/platform/clock.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { emitOperatorEvent } from '#control-plane/webhooks/store-events.ts'
import { createWebhookOutbox } from '#control-plane/webhooks/store-outbox.ts'
import { maxAttempts, verdictOf } from '#control-plane/webhooks/delivery-plan.ts'
import { createDispatcher } from '#control-plane/webhooks/jobs.ts'
import { createSend } from '#control-plane/webhooks/send-message.ts'
import { listen } from '#test/support/listen.ts'
import { isError, startApi } from '#test/support/control-plane/api.ts'
import { signatureOf, type Delivery, type Received, type Webhook } from './support/webhook.ts'

const api = await startApi(t, { control: false })
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())

const received: Received[] = []
/** The responses, by path. */
const responses = new Map<string, { status: number; location?: string } | 'silence'>()
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const path = request.url ?? ''
    received.push({ path, headers: request.headers, body: Buffer.concat(chunks).toString() })
    const result = responses.get(path) ?? { status: 204 }
    if (result === 'silence') return
    response.writeHead(result.status, result.location === undefined ? {} : { location: result.location })
    response.end()
  })
})
const port = await listen(t, server)

const time = { now: Date.now() }
const now = () => new Date(time.now)
const outbox = createWebhookOutbox(database, api.seal, now)
const deps = {
  outbox,
  clock: { ...systemClock, now },
  random: () => 0,
  measure: () => undefined,
  log: { info: () => undefined, warn: () => undefined },
  send: createSend({
    reachable: readNetworks(['127.0.0.0/8']),
    resolve: async () => ['127.0.0.1'],
    timeoutMilliseconds: 400,
  }),
}
const dispatcher = createDispatcher(deps)
const poll = () => dispatcher.poll(new AbortController().signal)

const register = async (path: string, more: object = {}): Promise<Webhook> => {
  const response = await api.call('POST', '/v1/webhooks', {
    body: { url: `http://receiver.invalid:${port}${path}`, ...more },
  })
  if (response.status !== 201) throw new Error(response.text)
  return response.body as Webhook
}
const tenantId = 't_00000000000000000001'
const emit = (type: 'quota.warning' | 'quota.reached' = 'quota.warning') =>
  emitOperatorEvent(
    database,
    {
      type,
      tenantId,
      data: {
        tenant_id: tenantId,
        resource: 'api_requests',
        percent: 80,
        used: '8000',
        limit: '10000',
        month: '2026-11',
        resets_at: null,
      },
    },
    now(),
  )
const deliveries = async ({ id }: Webhook, query = '') =>
  ((await api.call('GET', `/v1/webhooks/${id}/deliveries${query}`)).body as { deliveries: Delivery[] }).deliveries
const messagesTo = (path: string) => received.filter((message) => message.path === path)
const remove = async ({ id }: Webhook) => t.equal((await api.call('DELETE', `/v1/webhooks/${id}`)).status, 204)

t.test('An event reaches each endpoint of its type once, signed with the secret of the endpoint', async (t) => {
  const [all, some] = [await register('/all'), await register('/some', { types: ['quota.reached', 'invoice.final'] })]
  await emit('quota.warning')
  await emit('quota.reached')
  await poll()
  await poll()
  t.same(
    messagesTo('/all')
      .map(({ body }) => (JSON.parse(body) as { type: string }).type)
      .sort(),
    ['quota.reached', 'quota.warning'],
  )
  t.equal(messagesTo('/some').length, 1)
  for (const [message, secret] of [
    ...messagesTo('/all').map((message) => [message, all.secret] as const),
    ...messagesTo('/some').map((message) => [message, some.secret] as const),
  ]) {
    t.equal(message.headers['webhook-signature'], signatureOf(secret, message))
    t.equal(message.headers['webhook-timestamp'], String(Math.floor(time.now / 1000)))
    t.match(JSON.parse(message.body), {
      type: /^quota/,
      timestamp: now().toISOString(),
      data: { tenant_id: tenantId, used: '8000' },
    })
  }
  t.match(await deliveries(all), [{ state: 'delivered', attempts: 1, last_status: 204 }, { state: 'delivered' }])
  t.equal(
    messagesTo('/all')[0]?.headers['webhook-id'],
    (await deliveries(all)).find(
      ({ type }) => type === (JSON.parse(messagesTo('/all')[0]?.body ?? '') as { type: string }).type,
    )?.event_id,
  )
  await remove(all)
  await remove(some)
  t.same(await api.sql('select * from webhook_deliveries'), [])
})

t.test(
  'A failed delivery is tried again, ever later, with the same ID and body; a dead one is listed and replayed',
  async (t) => {
    const webhook = await register('/broken')
    responses.set('/broken', { status: 503 })
    await emit()
    const pauses: number[] = []
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      await poll()
      t.equal(messagesTo('/broken').length, attempt)
      await poll()
      t.equal(messagesTo('/broken').length, attempt, 'not before its time')
      const [row] = await api.sql(
        'select extract(epoch from next_at - last_at)::int as pause from webhook_deliveries where endpoint_id = $1',
        [webhook.id],
      )
      pauses.push(Number(row?.['pause']))
      time.now += Number(row?.['pause']) * 1_000 + 1_000
    }
    t.same(
      pauses.slice(0, -1),
      [...pauses.slice(0, -1)].sort((a, b) => a - b),
    )
    t.ok(pauses.reduce((sum, pause) => sum + pause, 0) > 2 * 86_400, 'the attempts last longer than a weekend')
    t.equal(
      new Set(messagesTo('/broken').map(({ headers, body }) => `${String(headers['webhook-id'])} ${body}`)).size,
      1,
    )
    t.match(await deliveries(webhook, '?state=dead'), [
      { state: 'dead', attempts: maxAttempts, last_status: 503, last_error: 'The endpoint responded with 503.' },
    ])
    responses.delete('/broken')
    const [dead] = await deliveries(webhook, '?state=dead')
    t.match((await api.call('POST', `/v1/webhooks/${webhook.id}/deliveries/${dead?.id}/replay`)).body, {
      id: dead?.id,
      state: 'pending',
      attempts: 0,
    })
    await poll()
    t.equal(messagesTo('/broken').length, maxAttempts + 1)
    t.match(await deliveries(webhook), [{ state: 'delivered', attempts: 1, last_status: 204, last_error: null }])
    await api.sql("update webhook_deliveries set state = 'dead'")
    t.same((await api.call('POST', `/v1/webhooks/${webhook.id}/replay`)).body, { replayed: 1 })
    await poll()
    t.equal(messagesTo('/broken').length, maxAttempts + 2)
    await remove(webhook)
  },
)

t.test(
  'A leader killed before it records a response sends again with the same ID, and a stop does not count as an attempt',
  async (t) => {
    const webhook = await register('/twice')
    await emit()
    const killed = createDispatcher({
      ...deps,
      outbox: { ...outbox, record: () => Promise.reject(new Error('killed')) },
    })
    await t.rejects(killed.poll(new AbortController().signal), /killed/)
    await poll()
    const ids = messagesTo('/twice').map(({ headers }) => headers['webhook-id'])
    t.equal(ids.length, 2)
    t.equal(new Set(ids).size, 1)
    responses.set('/twice', 'silence')
    await emit()
    const stopping = new AbortController()
    const polling = dispatcher.poll(stopping.signal)
    while (messagesTo('/twice').length < 3) await new Promise((resolve) => setImmediate(resolve))
    stopping.abort()
    await polling
    t.match(await deliveries(webhook, '?state=pending'), [{ attempts: 0 }])
    await poll()
    t.match(await deliveries(webhook, '?state=pending'), [
      { attempts: 1, last_status: null, last_error: /did not respond within 0\.4 s/ },
    ])
    await remove(webhook)
  },
)

t.test('An endpoint that returns 410 is disabled, and receives later events once it is enabled again', async (t) => {
  const webhook = await register('/gone')
  responses.set('/gone', { status: 410 })
  await emit()
  await poll()
  t.match((await api.call('GET', `/v1/webhooks/${webhook.id}`)).body, { enabled: false, disabled_reason: 'gone' })
  await emit()
  await poll()
  t.equal(messagesTo('/gone').length, 1)
  responses.delete('/gone')
  t.match((await api.call('PATCH', `/v1/webhooks/${webhook.id}`, { body: { enabled: true } })).body, {
    enabled: true,
    disabled_reason: null,
  })
  await emit()
  await poll()
  t.equal(messagesTo('/gone').length, 2)
  await remove(webhook)
})

t.test('A rotated secret signs at once, and the former one for the requested overlap', async (t) => {
  const webhook = await register('/rotated')
  api.clock.ahead = time.now - Date.now()
  const rotated = (await api.call('POST', `/v1/webhooks/${webhook.id}/rotate`, { body: { overlap_seconds: 60 } }))
    .body as Webhook
  await emit()
  await poll()
  time.now += 61_000
  await emit()
  await poll()
  const [both, one] = messagesTo('/rotated')
  if (both === undefined || one === undefined) throw new Error('no message arrived')
  t.equal(
    both.headers['webhook-signature'],
    `${signatureOf(rotated.secret, both)} ${signatureOf(webhook.secret, both)}`,
  )
  t.equal(one.headers['webhook-signature'], signatureOf(rotated.secret, one))
  await remove(webhook)
})

t.test('No message goes to an internal network, in any notation, nor to the target of a redirect', async (t) => {
  const send = (url: string, addresses: string[] = []) =>
    createSend({ reachable: readNetworks([]), resolve: async () => addresses, timeoutMilliseconds: 400 })(
      url,
      '{}',
      {},
      new AbortController().signal,
    )
  for (const url of [
    'http://127.0.0.1/',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://169.254.169.254/',
    'http://[fe80::1]/',
    'http://10.0.0.1/',
    'http://0.0.0.0/',
    'http://[64:ff9b::7f00:1]/',
  ]) {
    t.match(await send(url), { status: undefined, error: /may not be sent to/ }, url)
  }
  t.match(await send('http://inner.example/', ['127.0.0.1']), { error: /may not be sent to/ })
  t.match(
    await send('http://mixed.example/', ['93.184.216.34', '10.0.0.1']),
    { error: /may not be sent to/ },
    'one forbidden address of several',
  )
  t.match(await send('http://nothing.example/', []), { error: 'The host name has no address.' })
  responses.set('/redirect', { status: 307, location: `http://127.0.0.1:${port}/secret` })
  t.same(await deps.send(`http://receiver.invalid:${port}/redirect`, '{}', {}, new AbortController().signal), {
    status: 307,
    error: 'The endpoint responded with 307.',
  })
  t.same(messagesTo('/secret'), [])
  t.same(verdictOf({ status: 307, error: undefined }, 1, 0), { state: 'pending', afterMilliseconds: 5_000 })
})

t.test('A silent endpoint delays no other', async (t) => {
  const [silent, well] = [await register('/silent'), await register('/well')]
  responses.set('/silent', 'silence')
  for (let n = 0; n < 12; n++) await emit()
  await poll()
  t.equal(messagesTo('/well').length, 4)
  await poll()
  await poll()
  t.equal(messagesTo('/well').length, 12)
  await remove(silent)
  await remove(well)
})

t.test('A secret is shown once, and stored sealed', async (t) => {
  const webhook = await register('/secret-stored')
  t.match(webhook.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  t.notOk(JSON.stringify((await api.call('GET', '/v1/webhooks')).body).includes(webhook.secret))
  for (const table of Object.keys(await api.counts()))
    t.same(await api.sql(`select 1 from "${table}" t where position($1 in t::text) > 0`, [webhook.secret]), [], table)
  t.notOk(api.log.join('\n').includes(webhook.secret))
  await remove(webhook)
})

t.test('An invalid request is rejected with its error, and creates nothing', async (t) => {
  const before = await api.counts()
  for (const [body, code, names] of [
    [{}, 'MISSING_FIELD', '"url"'],
    [{ url: 'ftp://example.com/' }, 'INVALID_FIELD', '"url"'],
    [{ url: 'no url' }, 'INVALID_FIELD', '"url"'],
    [{ url: 'https://user:secret@example.com/' }, 'INVALID_FIELD', '"url"'],
    [{ url: 'https://example.com/#part' }, 'INVALID_FIELD', '"url"'],
    [{ url: 'https://example.com/', types: ['tenant.exploded'] }, 'INVALID_FIELD', '"types'],
    [{ url: 'https://example.com/', secret: 'mine' }, 'UNKNOWN_FIELD', '"secret"'],
  ] as const) {
    isError(t, await api.call('POST', '/v1/webhooks', { body }), 400, code, names, JSON.stringify(body))
  }
  for (const id of ['x', randomUUID()]) {
    isError(t, await api.call('GET', `/v1/webhooks/${id}`), 404, 'WEBHOOK_NOT_FOUND', 'no such webhook', id)
    isError(
      t,
      await api.call('PATCH', `/v1/webhooks/${id}`, { body: {} }),
      404,
      'WEBHOOK_NOT_FOUND',
      'no such webhook',
      id,
    )
    isError(t, await api.call('DELETE', `/v1/webhooks/${id}`), 404, 'WEBHOOK_NOT_FOUND', 'no such webhook', id)
  }
  t.same(await api.counts(), before)
  const webhook = await register('/checked')
  isError(
    t,
    await api.call('POST', `/v1/webhooks/${webhook.id}/deliveries/${randomUUID()}/replay`),
    404,
    'DELIVERY_NOT_FOUND',
    'no such delivery',
    'unknown',
  )
  isError(
    t,
    await api.call('GET', `/v1/webhooks/${webhook.id}/deliveries?state=lost`),
    400,
    'INVALID_PARAMETER',
    '"state"',
    'state',
  )
  await remove(webhook)
})

t.test('A URL with a forbidden address is rejected when it is set', async (t) => {
  const before = await api.counts()
  for (const [url, names] of [
    ['http://127.0.0.1:4400/', 'host "127.0.0.1"'],
    ['http://2130706433/', 'host "127.0.0.1"'],
    ['https://[::1]/', 'host "[::1]"'],
    ['https://[::ffff:10.0.0.1]/', 'host "[::ffff:a00:1]"'],
    ['http://169.254.169.254/latest/meta-data', 'host "169.254.169.254"'],
    ['https://private.test/hooks', 'host "private.test", which resolves to 10.0.0.5'],
  ] as const) {
    isError(t, await api.call('POST', '/v1/webhooks', { body: { url } }), 422, 'FORBIDDEN_ADDRESS', names, url)
  }
  t.same(await api.counts(), before)
  const webhook = await register('/moved')
  isError(
    t,
    await api.call('PATCH', `/v1/webhooks/${webhook.id}`, { body: { url: 'http://10.0.0.5/' } }),
    422,
    'FORBIDDEN_ADDRESS',
    '"url"',
    'a change',
  )
  for (const url of ['https://public.test/hooks', 'http://10.20.0.5/', 'https://not-yet-in-the-dns.test/']) {
    t.match(await api.call('PATCH', `/v1/webhooks/${webhook.id}`, { body: { url } }), { status: 200, body: { url } })
  }
  await remove(webhook)
})

t.test('Events are deleted after 90 days', async (t) => {
  time.now += 91 * 86_400_000
  await poll()
  t.same(await api.sql('select * from operator_events'), [])
})
