// Tables that a tenant fills with SQL count: far above the quota, its SQL login closes, until there is room again.
import pg from 'pg'
import t from 'tap'
import { documentsCondition, isOverDocuments } from '#control-plane/sessions/judge-documents.ts'
import { startApi } from '#test/support/control-plane/api.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

t.test('The login closes above 120 % of the quota, and opens below 110 %', (t) => {
  const tenant = { id: 'a', database: 'homes', limitBytes: 100, isFull: false }
  t.same(
    [100, 120, 121].map((bytes) => isOverDocuments(tenant, bytes)),
    [false, false, true],
  )
  t.same(
    [109, 110, 111].map((bytes) => isOverDocuments({ ...tenant, isFull: true }, bytes)),
    [false, false, true],
  )
  t.equal(isOverDocuments({ ...tenant, limitBytes: undefined, isFull: true }, 1e15), false)
  t.match(documentsCondition(6e6, 5e6, new Date(0)).message, 'The documents take 6 MB of disk; the plan allows 5 MB.')
  t.end()
})

t.test('A tenant that fills tables with SQL cannot log in until there is room', { timeout: 120_000 }, async (t) => {
  const api = await startApi(t, { jobs: true })
  await api.sql("update plans set document_bytes = 5000000 where id = 'Free'")
  const [attacker, neighbour] = [await api.create(), await api.create()]
  const id = attacker.tenant_id
  const connect = async (url: string) => {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => undefined)
    await client.connect()
    t.teardown(() => client.end().catch(() => undefined))
    return client
  }
  const condition = async () => (await api.tenant(id)).conditions.find(({ type }) => type === 'Sql')
  const opens = () =>
    connect(attacker.database_url).then(
      () => true,
      () => false,
    )
  const other = await connect(neighbour.database_url)

  const client = await connect(attacker.database_url)
  const ended = new Promise((resolve) => client.once('end', resolve))
  const fill = (name: string) =>
    `create table ${name} as select repeat(md5(g::text), 30) as text from generate_series(1, 10000) g`
  await client.query(fill('filled'))
  await client.query('begin; insert into filled values (null)')
  await ended
  await until(async () => (await condition())?.status === 'False')
  t.match(await condition(), {
    reason: 'DocumentsExceeded',
    message: /^The documents take \d+ MB of disk; the plan allows 5 MB\./,
  })
  await until(async () => !(await opens()))
  const events = await api.sql("select data from operator_events where type = 'tenant.sql_limited'")
  t.match(events, [{ data: { action: 'closed', reason: 'DocumentsExceeded', closed_until: null } }])
  await t.resolves(other.query('select 1'), 'the neighbour continues')

  await query(api.postgres.url('tenantry_homes_1'), `drop table ${id}.filled`)
  await until(opens)
  await until(async () => (await condition()) === undefined)

  // A table of an open transaction is not in the catalog that others see.
  const hidden = await connect(attacker.database_url)
  const hiddenEnded = new Promise((resolve) => hidden.once('end', resolve))
  await hidden.query(`begin; ${fill('hidden')}`)
  await hiddenEnded
  await until(async () => (await condition())?.reason === 'DocumentsExceeded')
})
