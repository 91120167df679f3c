// Connections of the superuser while its password changes in the server and in the list of possible ones, in either order.
import pg from 'pg'
import t from 'tap'
import { connected } from '#control-plane/platform/single-connection.ts'
import { SuperuserPool, SuperuserUrl } from '#control-plane/platform/superuser-url.ts'
import { query, startPostgres } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

const postgres = await startPostgres()
t.teardown(() => postgres.stop())
const session = new pg.Client({ connectionString: postgres.url('postgres') })
await session.connect()
t.teardown(() => session.end())
const set = (password: string) => session.query(`alter role postgres password '${password}'`)

const passwords: string[] = []
const servers = (first: string) =>
  new SuperuserUrl(Object.assign(new URL(postgres.url('postgres')), { password: first }).href, () => [...passwords])
const userOf = (url: SuperuserUrl) =>
  connected(
    { connectionString: url },
    async (client) => (await client.query<{ d: string }>('select current_database() as d')).rows,
  )

t.test('A connection uses the other password when the server has rejected one', async (t) => {
  passwords.splice(0, Infinity, 'new', 'old')
  await set('old')
  const url = servers('old')
  t.same(await userOf(url.in('control')), [{ d: 'control' }])
  await set('new')
  t.same(await userOf(url.in('control')), [{ d: 'control' }])
  t.equal(url.password, 'new', 'all URLs of the server use it from then on')
  await set('old')
  await userOf(url)
  t.equal(url.password, 'old')
})

t.test('The password is replaced between two attempts', async (t) => {
  let reads = 0
  await set('old')
  // The new one is rejected, then set, and then the old one is rejected.
  const url = new SuperuserUrl(servers('new').href, async () => {
    if (reads++ === 0) await set('new')
    return ['new', 'old']
  })
  await userOf(url)
  t.same([url.password, reads], ['new', 2])
})

t.test('Without a valid password, the rejection of the server is the error', async (t) => {
  passwords.splice(0, Infinity, 'wrong', 'false')
  await set('new')
  await t.rejects(userOf(servers('wrong')), { code: '28P01' })
  await t.rejects(
    connected({ connectionString: servers('wrong').href }, () => Promise.resolve()),
    { code: '28P01' },
  )
  passwords.splice(0)
  await t.rejects(userOf(servers('wrong')), { code: '28P01' })
})

t.test('A pool connects with either password, and its queries do not fail', async (t) => {
  passwords.splice(0, Infinity, 'new', 'old')
  await set('old')
  const pool = new SuperuserPool(servers('new'), { max: 8, idleTimeoutMillis: 1 })
  pool.on('error', () => undefined)
  t.teardown(() => pool.end())
  let sent = 0
  const changes = { ended: false }
  const clients = Array.from({ length: 8 }, async () => {
    while (!changes.ended) {
      t.same((await pool.query('select $1::int as n', [sent])).rows.length, 1)
      sent++
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })
  const before = await loginsOf()
  for (let change = 0; change < 20; change++) {
    await set(change % 2 === 0 ? 'new' : 'old')
    const queries = sent
    await until(() => sent > queries + 20, 'the clients go on')
  }
  changes.ended = true
  await Promise.all(clients)
  t.ok((await loginsOf()) > before, 'new connections were opened meanwhile')
  const client = await pool.connect()
  t.same((await client.query('select 1 as one')).rows, [{ one: 1 }])
  client.release()
})

async function loginsOf(): Promise<number> {
  await session.query('select pg_stat_clear_snapshot()')
  const { rows } = await session.query<{ sessions: string }>(
    "select sessions from pg_stat_database where datname = 'postgres'",
  )
  return Number(rows[0]?.sessions)
}

t.test('The URL of an operator stays as it is', async (t) => {
  await set('test-only')
  t.same(await query(postgres.url('postgres'), 'select 1 as one'), [{ one: 1 }])
})
