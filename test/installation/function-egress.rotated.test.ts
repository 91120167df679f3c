// What functions send with http_fetch, from the run to the invoice: each byte that a host receives is billed once, although runs
// fail and time out, the runtime is killed, and the tenant attacks its records.
import { createServer, type ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { join } from 'node:path'
import t from 'tap'
import type { UpcomingBody } from '#control-plane/billing/invoice-body.ts'
import { compileSource } from '#examples/functions/compile.ts'
import { readAll } from '#test/functions/support/assemblyscript.ts'
import { deployFunction, type Requester } from '#test/functions/support/deployed.ts'
import { listen } from '#test/support/listen.ts'
import { createMovedClock } from '#test/support/moved-clock.ts'
import { startPlatform } from '#test/support/platform.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { first, textOf, type UsageResponse } from './support/billed-customers.ts'

const [minute, hour] = [60_000, 3_600_000]
/** The start of an hour, so that all runs of this test begin in one hour. */
const began = new Date(first.getTime() + 100 * hour)

/** A function that sends its input to the URL in its first line, and then traps if its second line is "trap". */
const source = `${readAll}
import { tryFetch } from './tenantry.as'
const lines = readAll().split('\\n')
const result = tryFetch('{"method":"POST","url":"' + lines[0] + '"}', String.UTF8.encode(lines[2]))
if (lines[1] == 'trap') unreachable()
process.stdout.write(result.text)
`

t.test('Each byte that functions send is billed once', { timeout: 240_000 }, async (t) => {
  /** Bytes that the host has received, and the responses of the requests that it does not end. */
  const host = { bytes: 0, requests: 0, open: [] as ServerResponse[] }
  const server = createServer((request, response) =>
    request.resume().once('end', () => {
      host.bytes += request.socket.bytesRead
      host.requests++
      if (request.url === '/open') host.open.push(response)
      else if (request.url === '/close') request.socket.destroy()
      else if (request.url === '/moved') response.writeHead(307, { location: '/' }).end()
      else response.end('thanks')
    }),
  )
  const url = `http://127.0.0.1:${await listen(t, server)}`

  const prices = {
    currency: 'EUR',
    seller: { name: 'Nordlicht Hosting GmbH', lines: ['Speicherstraße 12', '20457 Hamburg'] },
    number_prefix: 'NL-',
    price_lists: [
      {
        from: textOf(first),
        tax: { name: 'VAT', percent: '19' },
        plans: Object.fromEntries(
          ['Free', 'Pro', 'Enterprise'].map((plan) => [
            plan,
            { fee: '0', resources: { egress: { unit: 'MB', tiers: [{ price: '1' }] } } },
          ]),
        ),
      },
    ],
  }
  const folder = t.testdir({ 'prices.json': JSON.stringify(prices) })
  const clock = await createMovedClock(began)
  const platform = await startPlatform({
    clock,
    logLevel: 'error',
    control: { TENANTRY_PRICES_FILE: join(folder, 'prices.json') },
    runtime: { TENANTRY_FUNCTIONS_MAY_REACH: '127.0.0.0/8' },
  })
  t.teardown(async () => {
    await platform.stop()
    await clock.remove()
  })
  await platform.startControlPlane()
  const { body: tenant } = await platform.call(
    'POST',
    '/v1/tenants',
    { name: 'sender', plan: 'Enterprise', region: 'local' },
    { prefer: 'wait=30' },
  )
  const {
    tenant_id: id,
    database_url: databaseUrl,
    keys,
  } = tenant as Record<'tenant_id' | 'database_url', string> & {
    keys: { secret_key: string }
  }

  /** Bytes of the responses that the gateway has sent. */
  let responded = 0
  const client: Requester = {
    async request(method, path, { body, headers } = {}) {
      const response = await fetch(`${platform.gatewayUrl}/t/sender${path}`, {
        method,
        headers: { ...(headers as Record<string, string>), authorization: `Bearer ${keys.secret_key}` },
        body: body as Buffer<ArrayBuffer> | string,
      })
      const text = await response.text()
      responded += Buffer.byteLength(text)
      return {
        status: response.status,
        headers: response.headers,
        text,
        json: (): unknown => JSON.parse(text),
      } as never
    },
  }
  const http_hosts = [new URL(url).host]
  const wasm = await compileSource(source)
  await deployFunction(client, { name: 'send', wasm, config: { http_hosts } })
  await deployFunction(client, { name: 'short', wasm, config: { http_hosts, timeout: 1 } })
  const send = (path: string, bytes: number, { name = 'send', then = '' } = {}) =>
    client.request('POST', `/functions/v1/invoke/${name}`, {
      body: `${url}${path}\n${then}\n${'x'.repeat(bytes)}`,
      headers: { 'content-type': 'text/plain' },
    })

  for (const [what, status, response] of [
    ['a request', 200, send('/', 100_000)],
    ['a redirect, which sends the body twice', 200, send('/moved', 20_000)],
    ['a host that closes the connection', 200, send('/close', 3_000)],
    ['a run that traps after its request', 500, send('/', 400, { then: 'trap' })],
    ['a run that times out during its request', 504, send('/open', 50, { name: 'short' })],
  ] as const)
    t.equal((await response).status, status, what)
  t.equal(host.requests, 6)

  await t.test('also when the runtime is killed during a request', async (t) => {
    const before = host.requests
    const killed = send('/open', 70_000)
    await until(async () => host.requests === before + 1, 'the request of the run')
    await platform.restartRuntime()
    t.ok((await killed).status >= 500)
    t.equal((await send('/', 9_000)).status, 200)
    t.same(
      await query(
        platform.postgres.url(platform.homesDatabase),
        `select state, egress_bytes > 0 as has_sent, count(*)::int from "${id}".function_invocations group by 1, 2 order by 1`,
      ),
      [
        { state: 'ended', has_sent: true, count: 6 },
        { state: 'interrupted', has_sent: true, count: 1 },
      ],
    )
  })

  await t.test('and the tenant cannot change the records', async (t) => {
    for (const sql of [
      'update function_invocations set egress_bytes = 0',
      'delete from function_invocations',
      'alter table function_invocations disable trigger user',
      'alter table function_invocations drop column egress_bytes',
      'update usage_hours set value = 0',
      'delete from usage_hours',
    ])
      await t.rejects(query(databaseUrl, sql), { code: '42501' }, sql)
    // The records of a deleted function are deleted too, but not what they add to the usage.
    t.equal((await client.request('DELETE', '/functions/v1/short')).status, 204)
  })

  await clock.moveTo(new Date(began.getTime() + hour + 12 * minute))
  const usage = async () =>
    (await platform.call('GET', `/v1/tenants/${id}/usage`)).body as unknown as UsageResponse & {
      resources: { egress: { by_group: Record<string, number> } }
    }
  const upcoming = async () =>
    (await platform.call('GET', `/v1/tenants/${id}/invoices/upcoming`)).body as unknown as UpcomingBody
  await until(async () => {
    await clock.moveTo(new Date(clock.now().getTime() + minute))
    await wait(500)
    return Date.parse((await upcoming()).as_of) >= began.getTime() + hour
  }, 'the hour is closed')
  const { by_group: groups, bytes } = (await usage()).resources.egress
  t.equal(groups['http_fetch'], host.bytes, 'usage')
  t.equal(bytes, host.bytes + responded)
  const invoiced = (await upcoming()).lines
    .filter(({ resource }) => resource === 'egress')
    .reduce((sum, { quantity }) => sum + BigInt(quantity ?? 0), 0n)
  t.equal(invoiced, BigInt(bytes), 'the invoice')
  const own = await client.request('GET', '/usage/v1/?resource=egress')
  t.match(own.json(), { resources: { egress: { by_group: { http_fetch: host.bytes } } } }, "the tenant's own view")
  t.comment(`${host.bytes} bytes in ${host.requests} requests, ${responded} bytes of responses`)
})
