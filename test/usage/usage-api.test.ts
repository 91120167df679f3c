// The usage API reports sums and series that agree, as JSON and as CSV, of one tenant and of all, and of deleted tenants too.
import { randomUUID } from 'node:crypto'
import type { Counter } from '@tenantry/contract'
import t from 'tap'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createLedgerClosing } from '#control-plane/usage/store-closing.ts'
import { createUsageLedger } from '#control-plane/usage/store-ledger.ts'
import { closeAll } from '#control-plane/usage/jobs-close-ledger.ts'
import { chainOf, chainStart } from '#control-plane/usage/hash-chain.ts'
import { noAmounts } from '#control-plane/usage/hour-bucket.ts'
import { isError, startApi } from '#test/support/control-plane/api.ts'
import { pushOf, requests } from './support/ledger.ts'

const api = await startApi(t, { deleteGraceSeconds: 0 })
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
// The test moves the API's clock, by which the month is over soon.
const month = new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + 1, 1))
const next = new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1))
const now = () => new Date(Date.now() + api.clock.ahead)
const setClock = (at: Date) => (api.clock.ahead = at.getTime() - Date.now())
const ledger = createUsageLedger(database, now)
const closing = createLedgerClosing(database, now)
const close = async () => {
  const [row] = await api.sql('select epoch from installation')
  await closeAll(closing, now(), BigInt(String(row?.['epoch'])))
}
const name = month.toISOString().slice(0, 7)
const hourBefore = (end: Date, hours: number) => new Date(end.getTime() - hours * 3_600_000).toISOString()
const boot = randomUUID()
const get = async (path: string, headers: Record<string, string> = {}) => {
  const response = await api.call('GET', path, { headers })
  t.equal(response.status, 200, path)
  return response
}
const cell = (
  tenant: string,
  hour: string,
  meter: Counter['meter'],
  value: number,
  more: Partial<Counter> = {},
): Counter => ({
  ...requests(tenant, hour, value),
  meter,
  group: '',
  method: '',
  status_class: '',
  ...more,
})

setClock(month)
const tenant = (await api.create()).tenant_id
setClock(new Date(next.getTime() - 90 * 60_000))
const [first, second] = [hourBefore(next, 30), hourBefore(next, 3)]
await ledger.record(
  pushOf(
    'g1',
    boot,
    [
      requests(tenant, first, 5),
      requests(tenant, second, 7, { method: 'POST', status_class: '4xx', group: 'storage' }),
      cell(tenant, second, 'refused_requests', 2, { group: 'rest' }),
      cell(tenant, second, 'egress_bytes', 900, { group: 'storage' }),
      cell(tenant, second, 'latency', 6, { group: 'rest', bucket: '10' }),
      cell(tenant, second, 'latency', 1, { group: 'rest', bucket: 'inf' }),
      cell(tenant, second, 'latency', 3, { group: 'rest', bucket: '5' }),
      cell(tenant, second, 'connections_peak', 4),
      cell(tenant, second, 'connection_milliseconds', 720_000),
    ],
    hourBefore(next, 2),
  ),
)
await ledger.recordHome({
  tenantId: tenant,
  boot,
  completeUntil: new Date(hourBefore(next, 2)),
  hours: [
    {
      hour: new Date(second),
      amounts: {
        egressBytes: 70n,
        documentByteSeconds: 3600n * 10n ** 15n,
        fileByteSeconds: 7200n,
        functionInvocations: 3n,
        functionMilliseconds: 40n,
        functionCpuMicroseconds: 30_500n,
        functionMemoryKibMilliseconds: 2_048_000n,
        realtimeMessages: 12n,
      },
    },
  ],
})
await ledger.record(pushOf('g2', boot, [requests(tenant, first, 1)], hourBefore(next, 4)))

t.test('the current month shows what is not closed yet, and the sources that are missing', async (t) => {
  await close()
  const { body } = await get(`/v1/tenants/${tenant}/usage`)
  t.match(body, {
    tenant_id: tenant,
    month: name,
    incomplete: true,
    missing_sources: ['g2'],
    resources: {
      api_requests: {
        count: 13,
        limit: 10_000,
        refused: 2,
        by_group: { rest: 6, storage: 7 },
        by_method: { GET: 6, POST: 7 },
        by_status: { '2xx': 6, '4xx': 7 },
        endpoints: [
          { group: 'rest', method: 'GET', status: '2xx', count: 6 },
          { group: 'storage', method: 'POST', status: '4xx', count: 7 },
        ],
      },
      storage: { documents_bytes: 11, files_bytes: 7, documents_byte_hours: 10 ** 15, files_byte_hours: 2 },
      egress: { bytes: 970, by_group: { storage: 900, http_fetch: 70 } },
      realtime_connections: { peak: 4, limit: 100 },
      realtime_messages: { count: 12 },
      functions: { invocations: 3, duration_ms: 40, cpu_ms: 30, memory_mib_seconds: 2 },
    },
    corrections: [],
  })
  const { resources } = body as {
    resources: { api_requests: { latency_ms: object }; realtime_connections: { average: number } }
  }
  t.same(Object.entries(resources.api_requests.latency_ms), [['rest', { 5: 3, 10: 6, inf: 1 }]])
  const elapsed = now().getTime() - month.getTime()
  t.ok(
    Math.abs(resources.realtime_connections.average - 720_000 / elapsed) < 0.0001,
    'the average is over the elapsed time, not over the hours with counts',
  )
  const series = (await get(`/v1/tenants/${tenant}/usage?granularity=hour`)).body
  t.match(series, {
    parts: [
      { start: first, closed: true, amounts: { requests: '6' } },
      { start: second, closed: false, amounts: { requests: '7', document_byte_seconds: '3600000000000000000' } },
    ],
  })
})

t.test(
  'a closed month lists hours in a verifiable hash chain, days, one resource, and the same figures as CSV',
  async (t) => {
    await ledger.record(pushOf('g2', boot, [], next.toISOString()))
    await ledger.record(pushOf('g1', boot, [], next.toISOString()))
    await ledger.recordHome({ tenantId: tenant, boot, completeUntil: next, hours: [] })
    setClock(new Date(next.getTime() + 30 * 60_000))
    await close()
    const late = await api.sql('select * from usage_counters where dirty')
    t.same(late, [])
    const path = `/v1/tenants/${tenant}/usage/${name}`
    t.match((await get(path)).body, {
      incomplete: false,
      missing_sources: [],
      resources: { api_requests: { count: 13 }, storage: { documents_bytes: null } },
    })
    const hours = (await get(`${path}?granularity=hour`)).body as {
      parts: { start: string; amounts: Record<string, string>; previous_hash: string; hash: string }[]
    }
    t.equal(hours.parts.length, 2)
    const bucket = (index: number, amounts: Partial<ReturnType<typeof noAmounts>>) => ({
      tenantId: tenant,
      hour: new Date(hours.parts[index]?.start ?? 0),
      amounts: { ...noAmounts(), ...amounts },
    })
    const whole = [
      bucket(0, { requests: 6n }),
      bucket(1, {
        requests: 7n,
        egressBytes: 970n,
        documentByteSeconds: 3600n * 10n ** 15n,
        fileByteSeconds: 7200n,
        connectionsPeak: 4n,
        connectionMilliseconds: 720_000n,
        functionInvocations: 3n,
        functionMilliseconds: 40n,
        functionCpuMicroseconds: 30_500n,
        functionMemoryKibMilliseconds: 2_048_000n,
        realtimeMessages: 12n,
      }),
    ]
    t.equal(hours.parts[0]?.previous_hash, chainStart)
    t.equal(hours.parts[0]?.hash, hours.parts[1]?.previous_hash)
    t.equal(hours.parts[1]?.hash, chainOf(chainStart, whole))

    const days = (await get(`${path}?granularity=day&resource=api_requests`)).body
    t.match(days, {
      granularity: 'day',
      parts: [
        { start: `${first.slice(0, 10)}T00:00:00.000Z`, amounts: { requests: '6' } },
        { amounts: { requests: '7' } },
      ],
    })
    t.notMatch(days, { parts: [{ amounts: { egress_bytes: /./ } }] })
    t.same(
      Object.keys((await get(`${path}?resource=egress`)).body as object).length > 0 &&
        ((await get(`${path}?resource=egress`)).body as { resources: object }).resources,
      { egress: { bytes: 970, by_group: { storage: 900, http_fetch: 70 } } },
    )

    const text = await get(`${path}?granularity=hour`, { accept: 'text/csv' })
    t.match(text.headers['content-type'], /^text\/csv/)
    const [header, ...lines] = text.text.trimEnd().split('\r\n')
    t.equal(
      header,
      'tenant_id,kind,start,closed,requests,egress_bytes,document_byte_seconds,file_byte_seconds,connections_peak,' +
        'connection_milliseconds,function_invocations,function_milliseconds,function_cpu_microseconds,' +
        'function_memory_kib_milliseconds,realtime_messages,number,billed_month,previous_hash,hash',
    )
    t.same(
      lines.map((line) => line.split(',').slice(1, 6)),
      [
        ['hour', first, 'true', '6', '0'],
        ['hour', second, 'true', '7', '970'],
      ],
    )
    t.same(
      lines.map((line) => line.split(',').at(-1)),
      hours.parts.map(({ hash }) => hash),
    )
    const sums = (await get(`${path}?resource=api_requests`, { accept: 'text/csv' })).text.split('\r\n')
    t.ok(sums.includes(`${tenant},${name},false,api_requests,count,13`))
    t.ok(sums.includes(`${tenant},${name},false,api_requests,endpoints.storage.POST.4xx,7`))
    isError(
      t,
      await api.call('GET', path, { headers: { accept: 'image/png' } }),
      406,
      'NOT_ACCEPTABLE',
      'text/csv',
      'an image type',
    )
    for (const query of ['granularity=week', 'resource=air', 'granularity=hour&granularity=day']) {
      isError(
        t,
        await api.call('GET', `${path}?${query}`),
        400,
        'INVALID_PARAMETER',
        query.slice(0, query.indexOf('=')),
        query,
      )
    }
  },
)

t.test('a late count for the closed month appears as a correction, and changes no figure of the month', async (t) => {
  const path = `/v1/tenants/${tenant}/usage/${name}`
  const before = (await get(path)).body as object
  await ledger.record(pushOf('g1', boot, [requests(tenant, second, 3)], next.toISOString()))
  t.same((await get(path)).body, before, 'before the count is posted')
  await close()
  const after = (await get(path)).body as { corrections: unknown[] }
  t.same({ ...after, corrections: [] }, before)
  t.match(after.corrections, [
    { number: 1, hour: second, amounts: { requests: '3' }, billed_month: next.toISOString().slice(0, 7) },
  ])
  t.match(
    (await get(`${path}?granularity=hour`, { accept: 'text/csv' })).text,
    new RegExp(`\r\n${tenant},correction,${second},true,3,0,.*,1,${next.toISOString().slice(0, 7)},${chainStart},`),
  )
})

t.test('the usage of a month before the tenant existed is complete and zero', async (t) => {
  t.match((await get(`/v1/tenants/${tenant}/usage/2020-02`)).body, {
    incomplete: false,
    missing_sources: [],
    resources: { api_requests: { count: 0, limit: 10_000 }, storage: { documents_bytes: null } },
  })
})

t.test('the pages of all tenants’ usage list each tenant once', async (t) => {
  const others = [(await api.create()).tenant_id, (await api.create()).tenant_id]
  const current = startOf(now())
  await ledger.record(pushOf('g1', boot, [requests(others[0] ?? '', current.toISOString(), 9)]))
  const seen: { tenant_id: string; amounts: Record<string, string>; incomplete: boolean }[] = []
  for (let cursor = ''; ;) {
    const { body } = await get(`/v1/usage?limit=2${cursor}`)
    const page = body as { tenants: typeof seen; next_cursor: string | null; month: string }
    t.equal(page.month, next.toISOString().slice(0, 7))
    seen.push(...page.tenants)
    if (page.next_cursor === null) break
    cursor = `&cursor=${page.next_cursor}`
  }
  t.same(
    seen.map(({ tenant_id: id }) => id),
    [tenant, ...others].sort(),
  )
  t.match(
    seen.find(({ tenant_id: id }) => id === others[0]),
    { incomplete: true, amounts: { requests: '9' } },
  )
  t.match((await get(`/v1/usage?month=${name}`)).body, {
    tenants: [{ tenant_id: tenant, incomplete: false, amounts: { requests: '13', function_invocations: '3' } }],
    next_cursor: null,
  })
  const text = await get('/v1/usage?limit=1', { accept: 'text/csv' })
  t.equal(text.text.trimEnd().split('\r\n').length, 2)
  t.match(text.headers['link'], /^<\/v1\/usage\?month=.*cursor=.*>; rel="next"$/)
  for (const [query, code, word] of [
    ['month=2026-13', 'INVALID_MONTH', '2026-13'],
    ['month=9999-12', 'FUTURE_MONTH', '9999-12'],
    ['cursor=x', 'INVALID_PARAMETER', 'cursor'],
    ['limit=0', 'INVALID_PARAMETER', 'limit'],
  ] as const) {
    isError(t, await api.call('GET', `/v1/usage?${query}`), 400, code, word, query)
  }
})

t.test('the usage of a deleted tenant can still be read', async (t) => {
  t.equal(
    (await api.call('DELETE', `/v1/tenants/${tenant}?purge=true`, { headers: { prefer: 'wait=30' } })).status,
    202,
  )
  t.same(await api.sql('select 1 from tenants where id = $1', [tenant]), [])
  t.match((await get(`/v1/tenants/${tenant}/usage/${name}`)).body, {
    incomplete: false,
    resources: { api_requests: { count: 13, limit: 10_000 } },
  })
  t.match((await get(`/v1/usage?month=${name}`)).body, { tenants: [{ tenant_id: tenant, name: null }] })
})

function startOf(at: Date): Date {
  return new Date(Math.floor(at.getTime() / 3_600_000) * 3_600_000)
}
