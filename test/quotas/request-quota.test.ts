// The quota of requests over several gateways: as many are served as the plan allows, whatever happens to the gateways.
import t from 'tap'
import { effort } from '#test/support/effort.ts'
import { startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'
import { send, totalOf, leased, startQuotaSetting, type ReceivedResponse } from './support/gateways.ts'

const api = await startApi(t, { control: false })
const quota = effort({ small: 400, full: 10_000 })
await api.sql("update plans set requests_per_month = $1 where id = 'Free'", [quota])

/** Longer than a silent gateway is still waited for, in milliseconds. */
const silence = 6_000

/** Runs clients that send requests one after another, until each has had its rejections. @returns all responses */
async function storm(
  ports: readonly number[],
  path: string,
  connections: number,
  rejections = 2,
): Promise<ReceivedResponse[]> {
  const responses: ReceivedResponse[] = []
  await Promise.all(
    Array.from({ length: connections }, async (_, nth) => {
      for (let rejected = 0; rejected < rejections;) {
        const response = await send(ports[nth % ports.length] ?? 0, path)
        responses.push(response)
        if (response.status !== 200) rejected++
      }
    }),
  )
  return responses
}

const served = (responses: readonly ReceivedResponse[]) => responses.filter(({ status }) => status === 200).length

t.test('Four gateways and 64 connections serve exactly the quota', async (t) => {
  const { addTenant, gateways, upstream } = await startQuotaSetting(t, api, 4)
  const { name, tenant_id: id } = await addTenant('Free')
  const responses = await storm(
    gateways.map(({ gateway }) => gateway.port),
    `/t/${name}/status/200`,
    64,
  )
  t.same(served(responses), quota)
  t.same(upstream.seen.length, quota)
  const rejected = responses.filter(({ status }) => status !== 200)
  t.same(
    new Set(rejected.map(({ status, body }) => `${status} ${(JSON.parse(body) as { code: string }).code}`)),
    new Set(['429 QUOTA_REQUESTS']),
  )
  await until(
    async () =>
      (await totalOf(api, id, 'requests')) + (await totalOf(api, id, 'refused_requests')) === responses.length,
    'all counts',
  )
  t.same(await totalOf(api, id, 'requests'), quota, 'a rejected request does not count for the bill')
  await until(async () => (await leased(api, id)).used === quota, 'the last reports')
  t.same(await leased(api, id), { granted: quota, used: quota })
})

t.test('What one gateway holds and does not use goes to another that needs it', async (t) => {
  const {
    addTenant,
    gateways: [idle, busy],
  } = await startQuotaSetting(t, api, 2)
  if (idle === undefined || busy === undefined) throw new Error('there are two')
  const { name } = await addTenant('Free')
  t.same((await send(idle.gateway.port, `/t/${name}/status/200`)).status, 200)
  const responses = await storm([busy.gateway.port], `/t/${name}/status/200`, 8)
  t.same(served(responses), quota - 1)
})

t.test('A gateway that is cut off serves out its lease, and no other gateway gets that', async (t) => {
  const {
    addTenant,
    gateways: [cut, other],
  } = await startQuotaSetting(t, api, 2, {}, { leaseWait: 1_000 })
  if (cut === undefined || other === undefined) throw new Error('there are two')
  const { name, tenant_id: id } = await addTenant('Free')
  t.same((await send(cut.gateway.port, `/t/${name}/status/200`)).status, 200)
  cut.reachable = false
  const held = (await leased(api, id, cut.source)).granted
  t.ok(held > 1)
  const alone = await storm([cut.gateway.port], `/t/${name}/status/200`, 4)
  t.ok(served(alone) === held - 1, `${served(alone) + 1} of ${held}`)
  const rejected = alone.find(({ status }) => status !== 200)
  t.same(rejected?.status, 503, 'the month is not known to be used up')
  t.match(JSON.parse(rejected?.body ?? '{}'), { code: 'QUOTA_UNAVAILABLE' })
  t.same(rejected?.headers['retry-after'], '1')
  api.clock.ahead += silence
  const others = await storm([other.gateway.port], `/t/${name}/status/200`, 4, 1)
  t.same(served(others), quota - held)
  cut.reachable = true
  await until(async () => (await leased(api, id)).used === quota, 'its report afterwards')
  t.same((await send(cut.gateway.port, `/t/${name}/status/200`)).status, 429)
})

t.test('A gateway that stops releases what it has not used', async (t) => {
  const {
    addTenant,
    gateways: [first, second],
  } = await startQuotaSetting(t, api, 2)
  if (first === undefined || second === undefined) throw new Error('there are two')
  const { name, tenant_id: id } = await addTenant('Free')
  for (let nth = 0; nth < 3; nth++) await send(first.gateway.port, `/t/${name}/status/200`)
  await first.gateway.stop()
  t.same(await leased(api, id, first.source), { granted: 3, used: 3 })
  t.same(served(await storm([second.gateway.port], `/t/${name}/status/200`, 4)), quota - 3)
})

t.test(
  'The lease of a killed gateway is free again except for what was counted, once its counts are complete',
  async (t) => {
    const {
      addTenant,
      gateways: [killed, other],
    } = await startQuotaSetting(t, api, 2)
    if (killed === undefined || other === undefined) throw new Error('there are two')
    const { name, tenant_id: id } = await addTenant('Free')
    for (let nth = 0; nth < 5; nth++) await send(killed.gateway.port, `/t/${name}/status/200`)
    await until(async () => (await totalOf(api, id, 'requests')) === 5, 'its counts')
    await killed.kill()
    const held = (await leased(api, id, killed.source)).granted
    t.ok(held > 5)
    api.clock.ahead += silence
    t.same(
      served(await storm([other.gateway.port], `/t/${name}/status/200`, 4, 1)),
      quota - held,
      'its lease belongs to no other gateway while it is away',
    )
    killed.reachable = true
    await killed.start()
    await until(
      async () =>
        (
          await api.sql(
            'select 1 from request_leases join lease_holders using (source, boot) where tenant_id = $1 and ended and granted = 5',
            [id],
          )
        ).length === 1,
      'the end of its lease',
    )
    const rest = await storm([other.gateway.port, killed.gateway.port], `/t/${name}/status/200`, 8)
    t.same(served(rest), held - 5, 'nothing is lost, and nothing is served twice')
  },
)

t.test(
  'A gateway that is killed and restarted without a control plane continues with its lease, repeatedly',
  async (t) => {
    const {
      addTenant,
      gateways: [killed, other],
    } = await startQuotaSetting(t, api, 2, {}, { leaseWait: 1_000 })
    if (killed === undefined || other === undefined) throw new Error('there are two')
    const { name, tenant_id: id } = await addTenant('Free')
    const get = async () => (await send(killed.gateway.port, `/t/${name}/status/200`)).status
    for (let nth = 0; nth < 5; nth++) t.same(await get(), 200)
    await until(async () => (await totalOf(api, id, 'requests')) === 5, 'its counts')
    const held = (await leased(api, id, killed.source)).granted
    let alone = 0
    for (let nth = 0; nth < 2; nth++) {
      await killed.kill()
      await killed.start()
      t.same(await get(), 200, 'the gateway continues to serve')
      alone++
    }
    for (; (await get()) === 200; alone++);
    t.ok(alone + 5 <= held, `${alone + 5} of ${held}: never more`)
    t.ok(alone + 5 > held * 0.6, `${alone + 5} of ${held}: and not much less`)
    api.clock.ahead += silence
    const others = served(await storm([other.gateway.port], `/t/${name}/status/200`, 4, 1))
    t.same(others, quota - held)
    killed.reachable = true
    const rest = served(await storm([killed.gateway.port, other.gateway.port], `/t/${name}/status/200`, 8, 30))
    t.ok(5 + alone + others + rest <= quota, `${5 + alone + others + rest} of ${quota}`)
    await until(async () => (await leased(api, id)).used === (await leased(api, id)).granted, 'the last reports')
  },
)

t.test('Responses that are lost on their way cost nothing', async (t) => {
  const { addTenant, gateways } = await startQuotaSetting(t, api, 2)
  const { name } = await addTenant('Free')
  const [first] = gateways
  if (first === undefined) throw new Error('there are two')
  first.loseResponses = 3
  const early = await storm([first.gateway.port], `/t/${name}/status/200`, 2, 1)
  await until(() => first.loseResponses === 0, 'the lost responses')
  const late = await storm(
    gateways.map(({ gateway }) => gateway.port),
    `/t/${name}/status/200`,
    8,
    30,
  )
  t.same(served(early) + served(late), quota)
})

t.test('A plan without a quota needs no lease', async (t) => {
  const {
    addTenant,
    gateways: [only],
  } = await startQuotaSetting(t, api, 1)
  const { name, tenant_id: id } = await addTenant('Enterprise')
  for (let nth = 0; nth < 5; nth++) t.same((await send(only?.gateway.port ?? 0, `/t/${name}/status/200`)).status, 200)
  t.same(await leased(api, id), { granted: 0, used: 0 })
})

t.test(
  'A clock that is set past the end of the month ends earlier leases, though no gateway saw that end',
  async (t) => {
    const { addTenant, gateways } = await startQuotaSetting(t, api, 1)
    const { name, tenant_id: id } = await addTenant('Free')
    const port = gateways[0]?.gateway.port ?? 0
    const get = async () => t.equal((await send(port, `/t/${name}/status/200`)).status, 200)
    const of = async (month: Date) =>
      (
        await api.sql(
          `select coalesce(sum(granted), 0)::int as granted, coalesce(sum(used), 0)::int as used
            from request_leases where tenant_id = $1 and to_char(month, 'YYYY-MM') = $2`,
          [id, month.toISOString().slice(0, 7)],
        )
      )[0]
    const former = new Date(Date.now() + api.clock.ahead)
    const next = new Date(Date.UTC(former.getUTCFullYear(), former.getUTCMonth() + 1, 1, 0, 10))
    for (let n = 0; n < 3; n++) await get()
    const ahead = api.clock.ahead
    t.teardown(() => (api.clock.ahead = ahead))
    api.clock.ahead += next.getTime() - former.getTime()
    // The report of this request returns the new month.
    await get()
    await until(async () => (await of(former))?.['granted'] === 4, 'the release of the rest')
    for (let n = 0; n < 5; n++) await get()
    await until(async () => (await of(next))?.['used'] === 5, 'the lease of the new month')
    t.same(await of(former), { granted: 4, used: 4 })
  },
)
