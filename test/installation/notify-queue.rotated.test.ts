// A tenant fills the NOTIFY queue of its shared server and keeps it full. All writes continue, and the control plane ends the
// session that blocks the queue.
import pg from 'pg'
import t, { type Test } from 'tap'
import { freePort, query } from '#test/support/postgres.ts'
import { startPlatform, type Platform } from '#test/support/platform.ts'
import { until } from '#test/support/until.ts'

/** The smallest queue that Postgres allows, so that it is full within seconds. */
const smallestQueue = { max_notify_queue_pages: '64' }

interface CreatedTenant {
  id: string
  name: string
  databaseUrl: string
  secretKey: string
}

async function create(t: Test, platform: Platform, name: string): Promise<CreatedTenant> {
  const { status, body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name, plan: 'Free', region: 'local' },
    { prefer: 'wait=20' },
  )
  t.equal(status, 201, JSON.stringify(body))
  t.equal(body['status'], 'ready')
  const keys = body['keys'] as { secret_key: string }
  return { id: String(body['tenant_id']), name, databaseUrl: String(body['database_url']), secretKey: keys.secret_key }
}

async function connect(t: Test, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  // The control plane may end the session.
  client.on('error', () => undefined)
  await client.connect()
  t.teardown(() => client.end().catch(() => undefined))
  return client
}

/** Sends notifications until Postgres rejects them because the queue is full. */
async function fill(client: pg.Client): Promise<void> {
  const payload = 'x'.repeat(7_900)
  for (;;) {
    const rejected = await client
      .query(`select pg_notify('full', n || '${payload}') from generate_series(1, 20) as n`)
      .then(
        () => false,
        (error: unknown) => {
          if (error instanceof pg.DatabaseError && error.message.startsWith('too many notifications')) return true
          throw error
        },
      )
    if (rejected) return
  }
}

/** Opens a session that listens and stays in a transaction, so that later notifications stay in the queue. */
async function hold(t: Test, url: string): Promise<pg.Client> {
  const client = await connect(t, url)
  // The session listens after this commit; inside the next transaction it takes nothing from the queue.
  await client.query('listen held')
  await client.query('begin; select 1')
  return client
}

const usage = async ({ postgres }: Platform) =>
  Number((await query(postgres.url('postgres'), 'select pg_notification_queue_usage() as usage'))[0]?.['usage'])

t.test('All writes continue while the NOTIFY queue is full', { timeout: 120_000 }, async (t) => {
  const platform = await startPlatform({ postgres: smallestQueue })
  t.teardown(() => platform.stop())
  // The control plane does not end sessions of the superuser, so the queue stays full.
  await hold(t, platform.postgres.url('postgres'))
  await fill(await connect(t, platform.postgres.url('postgres')))

  const first = await platform.startControlPlane()
  const [made, other] = [await create(t, platform, 'made'), await create(t, platform, 'other')]
  const renamed = await platform.call('PATCH', `/v1/tenants/${made.id}`, { name: 'renamed' }, { prefer: 'wait=20' })
  t.match(renamed, { status: 200, body: { operation: { state: 'succeeded' } } })
  await until(
    async () =>
      (await platform.tenantCall('renamed', 'GET', '/storage/v1/bucket', { key: made.secretKey })).status === 200,
  )
  const upload = await platform.tenantCall('other', 'POST', '/storage/v1/object/system/a.txt', {
    key: other.secretKey,
    body: 'kept',
    type: 'text/plain',
  })
  t.ok(upload.ok, 'the upload succeeds')
  const inOther = async (method: string, path: string, body?: object) => {
    const response = await platform.tenantCall('other', method, path, {
      key: other.secretKey,
      ...(body === undefined ? {} : { body: JSON.stringify(body), type: 'application/json' }),
    })
    return { status: response.status, body: await response.json() }
  }
  const schema = {
    name: 'notes',
    fields: [{ name: 'id', type: 'number', primary: true }],
    rls_policy: { type: 'service' },
  }
  t.match(await inOther('POST', '/rest/v1/schemas', schema), { status: 201 })
  t.match(await inOther('POST', '/admin/reload-schemas', {}), { status: 200 }, 'schemas are reloaded')
  t.match(await inOther('POST', '/rest/v1/notes', { id: 1 }), { status: 201 })
  t.same((await inOther('GET', '/rest/v1/notes')).body, [{ id: 1 }])
  const rotated = await platform.call('POST', `/v1/tenants/${other.id}/keys/rotate`, {}, { prefer: 'wait=20' })
  t.ok(rotated.status < 300, 'keys are rotated')
  const deleted = await platform.call('DELETE', `/v1/tenants/${made.id}?purge=true`, undefined, { prefer: 'wait=20' })
  t.match(deleted, { status: 202, body: { operation: { state: 'succeeded' } } })
  t.equal(first.process.exitCode, null)
  t.ok((await usage(platform)) > 0.9, 'the queue was full to the end')
})

t.test('The leader carries out a change that another control plane wrote', { timeout: 120_000 }, async (t) => {
  const platform = await startPlatform()
  t.teardown(() => platform.stop())
  await platform.startControlPlane()
  // The second control plane does not lead. It writes the change and waits for the leader to observe it.
  const port = await freePort()
  await platform.startControlPlane({ port })
  const response = await fetch(`http://127.0.0.1:${port}/v1/tenants`, {
    method: 'POST',
    headers: { authorization: `Bearer ${platform.platformKey}`, 'content-type': 'application/json', prefer: 'wait=20' },
    body: JSON.stringify({ name: 'elsewhere', plan: 'Free', region: 'local' }),
  })
  t.match(await response.json(), { status: 'ready', operation: { state: 'succeeded' } })
})

t.test('The control plane ends the session that blocks the NOTIFY queue', { timeout: 120_000 }, async (t) => {
  const platform = await startPlatform({ postgres: smallestQueue })
  t.teardown(() => platform.stop())
  const first = await platform.startControlPlane()
  const [attacker, victim] = [await create(t, platform, 'attacker'), await create(t, platform, 'victim')]
  first.process.kill('SIGTERM')
  await first.exited
  const holder = await hold(t, attacker.databaseUrl)
  await fill(await connect(t, attacker.databaseUrl))
  const bystander = await connect(t, victim.databaseUrl)
  await bystander.query('begin; select 1')
  t.ok((await usage(platform)) > 0.9, 'the queue is full')

  const second = await platform.startControlPlane()
  await until(async () => (await usage(platform)) < 0.5)
  await t.rejects(holder.query('select 1'), 'the blocking session has ended')
  await until(() => second.output().includes(`"roles":["${attacker.id}_admin"]`), 'a line of the log with the role')
  await t.resolves(
    bystander.query('notify another; select 1'),
    'the transaction of another tenant continues and can notify',
  )
})
