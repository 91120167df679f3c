// The fleet: tenants by status and by reason for attention, the search, operations in reverse, and the stream of changes.
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import t from 'tap'
import { openDatabase } from '#control-plane/platform/database.ts'
import { startOfMonth } from '#control-plane/platform/months.ts'
import { createQuotaWatchStore } from '#control-plane/quotas/index.ts'
import { isError, startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'

const api = await startApi(t, { control: false })
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
const checkQuotas = () => createQuotaWatchStore(database, () => new Date()).refresh(startOfMonth(new Date()))

async function make(name: string): Promise<string> {
  const response = await api.call('POST', '/v1/tenants', { body: { name, plan: 'Free', region: 'local' } })
  if (response.status !== 201) throw new Error(response.text)
  return (response.body as { tenant_id: string }).tenant_id
}

interface InNeed {
  tenants: { tenant_id: string; name: string; reasons: { code: string; message: string; since: string | null }[] }[]
  next_cursor: string | null
}
const inNeed = async (query = '') => (await api.call('GET', `/v1/fleet/attention${query}`)).body as InNeed
const fleet = async () =>
  (await api.call('GET', '/v1/fleet')).body as {
    tenants: number
    by_status: Record<string, number>
    attention: Record<string, number>
  }
const noReason = { Failed: 0, Cluster: 0, Loss: 0, Disk: 0, Sql: 0, Drift: 0, ProofFailed: 0, NotProven: 0, Quota: 0 }

const ids = {
  calm: await make('calm'),
  failed: await make('failed-one'),
  drifting: await make('drifting'),
  full: await make('full-100'),
  unproven: await make('unproven'),
  lost: await make('lost'),
  gone: await make('gone'),
}

t.test('Without a reason, no tenant needs attention', async (t) => {
  t.same(await fleet(), { tenants: 7, by_status: { pending: 7 }, attention: noReason })
  t.same(await inNeed(), { tenants: [], next_cursor: null })
})

t.test('Each reason is found, counted, and stated with its time', async (t) => {
  const days = (count: number) => new Date(Date.now() - count * 86_400_000)
  const condition = (type: string, status: string, reason: string, at: Date) =>
    JSON.stringify([
      { type: 'Home', status: 'True', reason: 'Observed', message: '', observed_at: at.toISOString() },
      { type, status, reason, message: `${type} is ${status}.`, observed_at: at.toISOString() },
    ])
  const set = (id: string, columns: string, ...values: unknown[]) =>
    api.sql(`update tenants set ${columns} where id = $1`, [id, ...values])
  const at = days(1)
  await set(ids.calm, 'conditions = $2', condition('Runtime', 'False', 'Unhealthy', at))
  await set(
    ids.failed,
    `status = 'failed', reason = 'The volume is missing.', conditions = $2`,
    condition('Backup', 'False', 'ProofFailed', at),
  )
  await set(ids.drifting, 'conditions = $2', condition('Drift', 'True', 'Reported', at))
  t.same((await api.call('DELETE', `/v1/tenants/${ids.gone}`)).status, 202)
  await set(ids.gone, 'conditions = $2', condition('Drift', 'True', 'Reported', at))
  await set(ids.unproven, 'proof_seen_at = now(), proven_at = $2', days(9))
  await set(ids.lost, 'conditions = $2', condition('Loss', 'True', 'TablesRecreated', days(6)))
  await api.sql(
    `insert into home_readings (tenant_id, read_at, document_bytes, file_bytes, books, document_byte_seconds, file_byte_seconds)
     values ($1, now(), 1, 800000000, gen_random_uuid(), 0, 0)`,
    [ids.full],
  )
  await checkQuotas()
  const { tenants } = await inNeed()
  t.match(
    Object.fromEntries(tenants.map(({ name, reasons }) => [name, reasons])),
    {
      'failed-one': [
        { code: 'Failed', message: 'The volume is missing.', since: null },
        { code: 'ProofFailed', message: 'Backup is False.', since: at.toISOString() },
      ],
      drifting: [{ code: 'Drift', message: 'Drift is True.', since: at.toISOString() }],
      'full-100': [{ code: 'Quota', message: 'files: 800000000 of 1000000000 (80 %)', since: null }],
      unproven: [{ code: 'NotProven', message: 'The last verified backup is too old.', since: String }],
      lost: [{ code: 'Loss' }],
    },
    'neither a deleted tenant nor a condition of a component is a reason',
  )
  t.same(tenants.length, 5)
  t.same((await fleet()).attention, {
    ...noReason,
    Failed: 1,
    ProofFailed: 1,
    Drift: 1,
    Quota: 1,
    NotProven: 1,
    Loss: 1,
  })
  t.same(
    (await inNeed('?code=ProofFailed')).tenants.map(({ name }) => name),
    ['failed-one'],
  )
  const first = await inNeed('?limit=2')
  const second = await inNeed(`?limit=2&cursor=${first.next_cursor ?? ''}`)
  const third = await inNeed(`?limit=2&cursor=${second.next_cursor ?? ''}`)
  t.same(
    [first, second, third].flatMap((page) => page.tenants),
    tenants,
  )
  t.same(third.next_cursor, null)

  await set(ids.lost, 'conditions = $2', condition('Loss', 'True', 'TablesRecreated', days(8)))
  await api.sql('update home_readings set file_bytes = 799999999 where tenant_id = $1', [ids.full])
  await checkQuotas()
  t.match((await fleet()).attention, { Loss: 0, Quota: 0 }, 'an old loss, and less than 80 %')
  isError(
    t,
    await api.call('GET', '/v1/fleet/attention?code=Nothing'),
    400,
    'INVALID_PARAMETER',
    'code',
    'an unknown code',
  )
})

t.test('A search finds a part of a name, or an ID, and no pattern', async (t) => {
  const found = async (search: string, more = '') =>
    ((await api.call('GET', `/v1/tenants?search=${encodeURIComponent(search)}${more}`)).body as InNeed).tenants.map(
      ({ name }) => name,
    )
  t.same(await found('ne'), ['failed-one', 'gone'])
  t.same(await found('ne', '&status=failed'), ['failed-one'])
  t.same(await found(ids.full), ['full-100'])
  t.same(await found('100'), ['full-100'])
  for (const search of ['%', '_', '\\', "' or true --", ids.full.slice(0, 12), 'CALM'])
    t.same(await found(search), [], search)
  const page = (await api.call('GET', '/v1/tenants?search=ne&limit=1')).body as InNeed
  t.same(page.tenants.length, 1)
  const next = await api.call('GET', `/v1/tenants?search=ne&limit=1&cursor=${page.next_cursor ?? ''}`)
  t.match(next.body, { tenants: [{ name: 'gone' }], next_cursor: null })
  isError(t, await api.call('GET', '/v1/tenants?search='), 400, 'INVALID_PARAMETER', 'search', 'an empty search')
})

t.test('Operations are listed from the newest on request, page by page', async (t) => {
  const list = async (query: string) =>
    (await api.call('GET', `/v1/operations?${query}`)).body as {
      operations: { id: string }[]
      next_cursor: string | null
    }
  const all = (await list('limit=1000')).operations.map(({ id }) => id)
  const first = await list('order=newest&limit=4')
  const second = await list(`order=newest&limit=4&cursor=${first.next_cursor ?? ''}`)
  t.same(
    [...first.operations, ...second.operations].map(({ id }) => id),
    all.reverse(),
  )
  t.same(second.next_cursor, null)
})

t.test('The prices are those of the price file, or billing is off', async (t) => {
  isError(t, await api.call('GET', '/v1/prices'), 422, 'BILLING_OFF', 'TENANTRY_PRICES_FILE', 'no prices')
})

t.test('The stream of changes names changed tenants, all or one', async (t) => {
  const { port } = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 }))
  const open = async (query: string) => {
    const call = request({
      host: '127.0.0.1',
      port,
      path: `/v1/changes${query}`,
      headers: { authorization: `Bearer ${api.keys.read}` },
    })
    call.on('error', () => undefined)
    t.teardown(() => call.destroy())
    call.end()
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    t.match(response, {
      statusCode: 200,
      headers: { 'content-type': /^text\/event-stream/, 'x-content-type-options': 'nosniff' },
    })
    let text = ''
    response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    const seen = () =>
      [...text.matchAll(/^event: change\ndata: (.*)$/gm)].flatMap(
        ([, data]) => (JSON.parse(data ?? '') as { tenant_ids: string[] | null }).tenant_ids ?? [],
      )
    await until(() => text.startsWith('retry: '))
    return seen
  }
  const everything = await open('')
  const onlyCalm = await open(`?tenant_id=${ids.calm}`)
  for (const [id, name] of [
    [ids.calm, 'calm-2'],
    [ids.full, 'full-2'],
  ]) {
    await api.sql(`update operations set state = 'succeeded' where tenant_id = $1`, [id])
    t.same((await api.call('PATCH', `/v1/tenants/${id}`, { body: { name } })).status, 200)
  }
  await until(() => everything().includes(ids.calm) && everything().includes(ids.full) && onlyCalm().length > 0)
  t.same(new Set(onlyCalm()), new Set([ids.calm]))
})
