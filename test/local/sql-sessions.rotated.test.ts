// SQL sessions of tenants with `npm start`: they come through the gateway's Postgres proxy, the watchdog ends those over a
// limit, and the kernel would kill a backend of the homes' server before any other process.
import { readFile } from 'node:fs/promises'
import pg from 'pg'
import t from 'tap'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'

let installation = await startInstallation({ environment: { TENANTRY_SESSION_LIMITS: '*.idle_seconds=1' } })
t.teardown(() => removeInstallation(installation))

async function call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(`${installation.controlUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${installation.platformKey}`,
      prefer: 'wait=60',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  t.ok(response.ok, `${method} ${path} responds with ${response.status}`)
  const text = await response.text()
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
}

const createTenant = async (name: string) => {
  const { tenant_id: id, database_url: url } = await call('POST', '/v1/tenants', {
    name,
    plan: 'Free',
    region: 'local',
  })
  return { id: String(id), url: String(url) }
}

async function connect(url: string): Promise<{ client: pg.Client; ended: Promise<unknown> }> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  const ended = new Promise((resolve) => client.once('end', resolve))
  await client.connect()
  t.teardown(() => client.end().catch(() => undefined))
  return { client, ended }
}

t.test(
  'The watchdog, operators and a suspension end sessions that come through the proxy',
  { timeout: 240_000 },
  async (t) => {
    const { id, url } = await createTenant('watched')
    const idle = await connect(url)
    await idle.client.query('create table noted (id int); begin; insert into noted values (1)')
    await idle.ended

    const listed = await connect(url)
    await listed.client.query('select 1')
    const { sessions } = await call('GET', `/v1/tenants/${id}/sessions`)
    const own = (sessions as { pid: number; login: string }[]).filter(({ login }) => login === 'admin')
    t.equal(own.length, 1)
    await call('DELETE', `/v1/tenants/${id}/sessions/${own[0]?.pid ?? 0}`)
    await listed.ended

    const open = await connect(url)
    await call('PATCH', `/v1/tenants/${id}`, { suspended: true })
    await open.ended
    await t.rejects(connect(url), 'the login is closed')
    await call('PATCH', `/v1/tenants/${id}`, { suspended: false })
    await connect(url)
  },
)

t.test("Only the child processes of the homes' server are killed first", async (t) => {
  const score = async (pid: number | string) => Number(await readFile(`/proc/${pid}/oom_score_adj`, 'utf8'))
  const scores = async (service: string) => {
    const pid = await installation.pid(service)
    const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ')
    return { server: await score(pid), children: [...new Set(await Promise.all(children.map(score)))] }
  }
  const usual = await score('self')
  t.same(await scores('postgres'), { server: usual, children: [300] })
  t.same(await scores('control-database'), { server: usual, children: [usual] })
  t.equal(await score(await installation.pid('runtime-0')), usual)
})

t.test('An installation that was killed while a session executed a query starts again at once', async (t) => {
  const { id, url } = await createTenant('busy')
  const { client } = await connect(url)
  // The query continues after the gateway, its client, has been killed.
  await client.query('set client_connection_check_interval = 0')
  const query = client.query('select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b')
  query.catch(() => undefined)
  await until(async () => {
    const { sessions } = await call('GET', `/v1/tenants/${id}/sessions`)
    return (sessions as { login: string; state: string }[]).some(
      ({ login, state }) => login === 'admin' && state === 'active',
    )
  }, 'the session executes the query')
  await installation.killAll()
  installation = await startInstallation({ dataDirectory: installation.data })
  const again = await connect((await createTenant('after')).url)
  t.match(await again.client.query('select 1 as one'), { rows: [{ one: 1 }] })
})
