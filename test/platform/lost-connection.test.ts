// The errors of lost connections to a real Postgres are distinguished from those of statements.
import pg from 'pg'
import t from 'tap'
import { isLostConnection } from '#control-plane/platform/lost-connection.ts'
import { freePort, startPostgres } from '#test/support/postgres.ts'
import { openTcpLink } from '#test/support/tcp-link.ts'

t.test('an error of a connection, and of a statement', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const link = await openTcpLink(postgres.port)
  t.teardown(() => link.stop())
  const through = (port: number) => postgres.url('postgres').replace(`:${postgres.port}/`, `:${port}/`)
  const open = async (settings: pg.ClientConfig = {}) => {
    const client = new pg.Client({ connectionString: through(link.port), ...settings })
    client.on('error', () => undefined)
    t.teardown(() => client.end().catch(() => undefined))
    await client.connect()
    return client
  }
  const errorOf = (work: Promise<unknown>) =>
    work.then(
      () => t.fail('it must fail'),
      (error: unknown) => error,
    )

  const client = await open()
  t.notOk(isLostConnection(await errorOf(client.query('select 1 +'))), 'a statement with a mistake')
  t.notOk(isLostConnection(await errorOf(client.query('select 1/0'))), 'a statement that cannot be computed')
  t.notOk(isLostConnection('a text'))
  const sleeping = errorOf(client.query('select pg_sleep(60)'))
  link.cut()
  t.ok(isLostConnection(await sleeping), 'a connection that is cut during a statement')
  t.ok(isLostConnection(await errorOf(client.query('select 1'))), 'and afterwards')

  const ended = await open()
  t.ok(
    isLostConnection(await errorOf(ended.query('select pg_terminate_backend(pg_backend_pid())'))),
    'a session that Postgres ends',
  )
  const limited = await open({ query_timeout: 200 })
  link.silence()
  t.ok(isLostConnection(await errorOf(limited.query('select 1'))), 'a connection that is silent')
  t.ok(isLostConnection(await errorOf(open({ connectionTimeoutMillis: 200 }))), 'a new one')
  link.restore()
  const refused = new pg.Client({ connectionString: through(await freePort()) })
  t.ok(isLostConnection(await errorOf(refused.connect())), 'a port without a server')
})
