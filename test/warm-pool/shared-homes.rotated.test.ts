// Homes in shared databases that are made in advance, in a whole installation: a create takes one with its keys, the pool fills
// up again, and a kill of the control plane leaves no home without a tenant.
import pg from 'pg'
import t from 'tap'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'

interface Created {
  tenant_id: string
  status: string
  generation: number
  database_url: string
  keys: { secret_key: string }
}

const size = 3
const installation = await startInstallation({ warmHomes: size, runtimes: 1 })
t.teardown(() => removeInstallation(installation))
const headers = { authorization: `Bearer ${installation.platformKey}`, 'content-type': 'application/json' }
const control = (path: string, init: RequestInit = {}) =>
  fetch(`${installation.controlUrl}${path}`, { ...init, headers })

async function create(name: string): Promise<Created> {
  const response = await fetch(`${installation.controlUrl}/v1/tenants`, {
    method: 'POST',
    headers: { ...headers, prefer: 'wait=30' },
    body: JSON.stringify({ name, plan: 'Free', region: 'local' }),
  })
  t.equal(response.status, 201, name)
  return (await response.json()) as Created
}

/** Waits until the pool is full. */
const full = () =>
  until(async () => {
    const metrics = await control('/metrics').then((response) => response.text())
    const line = /^tenantry_warm_stacks\{(?=.*isolation="schema-per-tenant")(?=.*state="warm").*\} (\d+)$/m.exec(
      metrics,
    )
    return Number(line?.[1]) === size
  }, 'a full pool')

/** Returns the IDs of all homes of the shared database, read with a tenant's own login. */
async function homes({ database_url }: Created): Promise<string[]> {
  const client = new pg.Client({ connectionString: database_url })
  await client.connect()
  const { rows } = await client.query<{ id: string }>(
    "select rolname as id from pg_roles where rolname ~ '^t_[0-9a-f]{20}$'",
  )
  await client.end()
  return rows.map(({ id }) => id)
}

const shown = async () =>
  (
    (await control('/v1/tenants').then((response) => response.json())) as { tenants: { tenant_id: string }[] }
  ).tenants.map(({ tenant_id }) => tenant_id)

t.test('A create takes a home that was made in advance, which serves files, rows and SQL', async (t) => {
  await full()
  t.same(await shown(), [], 'homes of the pool are in no list')
  const tenant = await create('first')
  t.match(tenant, { status: 'ready', generation: 2 })
  const client = new pg.Client({ connectionString: tenant.database_url })
  await client.connect()
  t.same((await client.query('select current_schema() as schema')).rows, [{ schema: tenant.tenant_id }])
  await client.end()
  const authorization = { authorization: `Bearer ${tenant.keys.secret_key}` }
  const bucket = await fetch(`${installation.gatewayUrl}/t/first/storage/v1/bucket`, {
    method: 'POST',
    headers: { ...authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'pictures', policy: 'private' }),
  })
  t.equal(bucket.status, 201)
  const upload = { method: 'POST', headers: authorization, body: 'bytes' }
  t.equal((await fetch(`${installation.gatewayUrl}/t/first/storage/v1/object/pictures/file`, upload)).status, 200)
  const file = await fetch(`${installation.gatewayUrl}/t/first/storage/v1/object/pictures/file`, {
    headers: authorization,
  })
  t.equal(await file.text(), 'bytes')
})

t.test('Creates at once each get a home of their own, also when the pool is empty', async (t) => {
  await full()
  const names = Array.from({ length: size + 2 }, (_, at) => `many-${at}`)
  const tenants = await Promise.all(names.map(create))
  t.same(
    tenants.map(({ status }) => status),
    names.map(() => 'ready'),
  )
  t.equal(new Set(tenants.map(({ tenant_id }) => tenant_id)).size, names.length)
  // A create does not wait for a home that the control plane is writing at this moment.
  t.ok(
    tenants.some(({ generation }) => generation === 2),
    'the pool was used',
  )
})

t.test('Kills of the control plane while the pool fills up leave no home without a tenant', async (t) => {
  const tenant = await create('killed')
  for (let kill = 0; kill < 2; kill++) {
    await full()
    await Promise.all(Array.from({ length: size }, (_, at) => create(`kill-${kill}-${at}`)))
    const pid = await installation.pid('control-plane')
    process.kill(pid, 'SIGKILL')
    await until(async () => (await installation.pid('control-plane')) !== pid, 'another control plane')
    await until(
      () =>
        control('/health').then(
          ({ ok }) => ok,
          () => false,
        ),
      'its response',
    )
  }
  await full()
  t.equal((await homes(tenant)).length, (await shown()).length + size)
})
