// Operators list the SQL sessions of a tenant, and end one.
import pg from 'pg'
import t from 'tap'
import { psqlCommand, readOutput } from '#control-plane/sessions/operator-sessions.ts'
import { isError, startApi, type CreatedTenant } from '#test/support/control-plane/api.ts'

interface Listed {
  sessions: { pid: number; login: string; application_name: string; statement?: string }[]
}

const api = await startApi(t)
const [tenant, other] = [await api.create(), await api.create()]

async function connect(
  { database_url: url }: CreatedTenant,
  name: string,
): Promise<{ pid: number; ended: Promise<void> }> {
  const client = new pg.Client({ connectionString: url, application_name: name })
  client.on('error', () => undefined)
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve()))
  await client.connect()
  t.teardown(() => client.end().catch(() => undefined))
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid, 'personal data'")
  return { pid: rows[0]?.pid ?? 0, ended }
}
const path = ({ tenant_id: id }: CreatedTenant, more = '') => `/v1/tenants/${id}/sessions${more}`
const list = async (more = '', key?: string) =>
  (await api.call('GET', path(tenant, more), key === undefined ? {} : { key })).body as Listed

const own = await connect(tenant, 'own')
const foreign = await connect(other, 'foreign')

t.test("The list has the tenant's sessions, without their statements", async (t) => {
  const { sessions } = await list('', api.keys.read)
  t.match(sessions, [
    {
      pid: own.pid,
      login: 'admin',
      client_address: '127.0.0.1',
      application_name: 'own',
      state: 'idle',
      started_at: /^\d{4}-\d\d-\d\dT.*Z$/,
      transaction_started_at: null,
      wait: 'Client ClientRead',
      memory_bytes: Number,
      locks: 0,
    },
  ])
  t.equal(sessions.length, 1)
  t.notMatch(JSON.stringify(sessions), 'personal data')
})

t.test('Only an administrator sees statements', async (t) => {
  t.match((await list('?statements=true')).sessions, [{ statement: /personal data/ }])
  const denied = await api.call('GET', path(tenant, '?statements=true'), { key: api.keys.read })
  isError(t, denied, 403, 'WRONG_SCOPE', 'statements', 'statements with the scope read')
})

t.test('Only sessions of the tenant can be ended, and each end is in the audit log', async (t) => {
  for (const pid of [String(foreign.pid), '1', '0', '-1', 'x', '99999999999'])
    isError(t, await api.call('DELETE', path(tenant, `/${pid}`)), 404, 'SESSION_NOT_FOUND', 'no such session', pid)
  t.equal((await api.call('DELETE', path(tenant, `/${own.pid}`))).status, 204)
  await own.ended
  isError(t, await api.call('DELETE', path(tenant, `/${own.pid}`)), 404, 'SESSION_NOT_FOUND', 'no such', 'a repetition')
  t.same((await list()).sessions, [])
  const entries = await api.sql("select target, detail from audit_log where action = 'tenant.end_session'")
  t.same(entries, [{ target: tenant.tenant_id, detail: { pid: own.pid } }])
})

t.test("The output of psql in a tenant's own container is read", (t) => {
  t.same(readOutput({ code: 0, stdout: '[{"pid": 1}]\n', stderr: '' }), [{ pid: 1 }])
  t.throws(() => readOutput({ code: 2, stdout: '', stderr: 'no server' }), { code: 'UNAVAILABLE' })
  t.match(psqlCommand.join(' '), / -U postgres -f -$/)
  t.end()
})
