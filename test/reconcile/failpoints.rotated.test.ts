// Kills the control plane with SIGKILL at the boundaries of create and delete. Each tenant becomes ready or deleted, and roles,
// schemas, files and secrets equal the tenants exactly. Another test throws an error at every boundary.
import t, { type Test } from 'tap'
import { failpointNames, type FailpointName } from '#control-plane/reconcile/failpoints.ts'
import { effort, seed } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { startPlatform, listTenantData, type Platform } from '#test/support/platform.ts'

const rounds = effort({ small: 1, full: 10 })
/** Failpoints of dedicated tenants, which docker-failpoints.soak.test.ts covers. */
const ofServices = /^(allocate|converge|halt)\.|^observe\.runtime$|^purge\.(step-after|services-removed)$/
/** Failpoints of a rotation, which installation/rotation.soak.test.ts covers. */
const ofRotation = /^(?:service-)?passwords?\./
/** The small run takes every sixth failpoint. The seed chooses which. */
const stride = effort({ small: 6, full: 1 })
const passed = failpointNames
  .filter((name) => !ofServices.test(name) && !ofRotation.test(name))
  .filter((_, at) => at % stride === seed % stride)
const isOfDelete = (name: FailpointName) => name.startsWith('delete.') || name.startsWith('purge.')

/** Waits until no tenant has an operation in progress. @returns the tenants' statuses by ID */
async function settled(platform: Platform): Promise<Map<string, string>> {
  const deadline = Date.now() + 90_000
  for (;;) {
    const { body } = await platform.call('GET', '/v1/tenants?limit=200')
    const tenants = body['tenants'] as { tenant_id: string; name: string; status: string; purge_after: string | null }[]
    const restless = tenants.filter(
      ({ status, purge_after }) =>
        status !== 'ready' && !(status === 'deleting' && purge_after !== null && Date.parse(purge_after) > Date.now()),
    )
    if (restless.length === 0) return new Map(tenants.map(({ tenant_id, status }) => [tenant_id, status]))
    if (Date.now() > deadline) throw new Error(`not settled: ${JSON.stringify(restless)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Arms a control plane, calls it and waits until it is killed. @returns whether it had accepted the call */
async function killedAt(
  platform: Platform,
  name: FailpointName,
  method: string,
  path: string,
  body: unknown,
  taken: string,
): Promise<boolean> {
  const armed = await platform.startControlPlane({ failpoints: `${name}=kill` })
  await platform.call(method, path, body, { prefer: 'wait=20' }).catch(() => undefined)
  await armed.exited
  if (armed.process.signalCode !== 'SIGKILL')
    throw new Error(`The control plane did not reach ${name}: ${armed.output().slice(-1000)}`)
  const [row] = await query(platform.postgres.url('control'), `select ${taken} as taken`)
  return row?.['taken'] === true
}

/** Runs a control plane without failpoints until all tenants are settled. */
async function calmly(platform: Platform): Promise<Map<string, string>> {
  const calm = await platform.startControlPlane()
  const tenants = await settled(platform)
  calm.process.kill('SIGTERM')
  await calm.exited
  return tenants
}

async function create(platform: Platform, name: string): Promise<{ id: string; key: string } | undefined> {
  const response = await platform
    .call('POST', '/v1/tenants', { name, plan: 'Free', region: 'local' }, { prefer: 'wait=20' })
    .catch(() => undefined)
  if (response?.status !== 201) return undefined
  const keys = response.body['keys'] as { secret_key: string }
  return { id: String(response.body['tenant_id']), key: keys.secret_key }
}

async function createWithFile(platform: Platform, name: string): Promise<string> {
  const made = await create(platform, name)
  if (made === undefined) throw new Error(`${name} was not created`)
  const response = await platform.tenantCall(name, 'POST', '/storage/v1/object/system/a/file.txt', {
    key: made.key,
    body: 'kept',
    type: 'text/plain',
  })
  if (!response.ok) throw new Error(`upload for ${name}: ${response.status} ${await response.text()}`)
  return made.id
}

/** Asserts that roles, schemas and secrets equal the tenants, and files those tenants that uploaded one. */
async function checkExact(
  t: Test,
  platform: Platform,
  tenants: ReadonlyMap<string, string>,
  withFiles: ReadonlySet<string>,
): Promise<void> {
  const present = await listTenantData(platform)
  const ids = [...tenants.keys()].sort()
  t.same(present.schemas, ids, 'schemas')
  t.same(present.secrets, ids, 'secrets')
  t.same(
    present.roles,
    ids.flatMap((id) => [id, `${id}_admin`, `${id}_ddl`, `${id}_owner`, `${id}_system`]).sort(),
    'roles',
  )
  t.same(
    present.files.filter((id) => !tenants.has(id)),
    [],
    'no files of deleted tenants',
  )
  t.same(
    [...withFiles].filter((id) => tenants.has(id) && !present.files.includes(id)),
    [],
    'all uploaded files of existing tenants exist',
  )
}

t.test(
  'A control plane that is killed at any failpoint leaves exactly the data of the tenants',
  { timeout: 3_600_000 },
  async (t) => {
    const platform = await startPlatform()
    t.teardown(() => platform.stop())
    const hit = new Set<FailpointName>()
    const withFiles = new Set<string>()
    /** Deleted tenants in their grace time, which does not end in this test. */
    const waiting = new Set<string>()
    for (let round = 0; round < rounds; round++) {
      const deletable = passed.filter(isOfDelete)
      const victims = new Map<FailpointName, string>()
      const calm = await platform.startControlPlane()
      for (const [index, name] of deletable.entries()) {
        const id = await createWithFile(platform, `victim-${round}-${index}`)
        victims.set(name, id)
        withFiles.add(id)
      }
      calm.process.kill('SIGKILL')
      await calm.exited
      for (const [index, name] of passed.entries()) {
        const victim = victims.get(name)
        const [method, path, body] =
          victim === undefined
            ? (['POST', '/v1/tenants', { name: `made-${round}-${index}`, plan: 'Free', region: 'local' }] as const)
            : (['DELETE', `/v1/tenants/${victim}${name === 'delete.waiting' ? '' : '?purge=true'}`, undefined] as const)
        const taken =
          victim === undefined
            ? `exists (select from tenants where name = 'made-${round}-${index}')`
            : `not exists (select from tenants where id = '${victim}' and desired <> 'deleted')`
        if (!(await killedAt(platform, name, method, path, body, taken))) {
          // The failpoint fired for the work that the previous kill left, before the call arrived.
          await calmly(platform)
          t.ok(await killedAt(platform, name, method, path, body, taken), `killed at ${name}`)
        }
        hit.add(name)
      }
      const last = await platform.startControlPlane()
      const tenants = await settled(platform)
      for (const [name, victim] of victims)
        t.equal(
          tenants.get(victim),
          name === 'delete.waiting' ? 'deleting' : undefined,
          `deleted when killed at ${name}`,
        )
      await checkExact(t, platform, tenants, withFiles)
      const open = ['running', 'pending'].map(
        async (state) =>
          (await platform.call('GET', `/v1/operations?state=${state}&limit=200`)).body['operations'] as {
            tenant_id: string
          }[],
      )
      waiting.add(victims.get('delete.waiting') ?? '')
      t.same(
        (await Promise.all(open)).flat().filter(({ tenant_id }) => !waiting.has(tenant_id)),
        [],
        'no operation remains open',
      )
      last.process.kill('SIGTERM')
      await last.exited
    }
    t.comment(`${hit.size} of ${passed.length} failpoints, ${rounds} time(s) each`)
    t.equal(hit.size, passed.length)
  },
)

t.test('The next attempt repairs an error thrown at any failpoint', { timeout: 300_000 }, async (t) => {
  const platform = await startPlatform()
  t.teardown(() => platform.stop())
  const controlPlane = await platform.startControlPlane({
    failpoints: failpointNames.map((name) => `${name}=throw`).join(','),
  })
  // Parallel creates share the errors, so that none gets enough of them to be marked failed.
  await Promise.all(Array.from({ length: 12 }, (_, index) => create(platform, `faulty-${index}`)))
  const made = await settled(platform)
  t.equal(made.size, 12)
  await checkExact(t, platform, made, new Set())
  const ids = [...made.keys()]
  await Promise.all(ids.slice(0, 6).map((id) => platform.call('DELETE', `/v1/tenants/${id}?purge=true`)))
  await Promise.all(ids.slice(6, 8).map((id) => platform.call('DELETE', `/v1/tenants/${id}`)))
  const remaining = await settled(platform)
  t.equal(remaining.size, 6)
  await checkExact(t, platform, remaining, new Set())
  t.equal(controlPlane.process.exitCode, null, 'the control plane still runs')
})
