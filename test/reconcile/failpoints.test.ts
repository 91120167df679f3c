// kill -9 of the control plane at every boundary of create and delete: every tenant ends ready or gone, and what there
// is of roles, schemas, files and secrets equals the tenants exactly. The same with a fault thrown at every boundary.
import t, { type Test } from 'tap'
import { failpointNames, type FailpointName } from '#control-plane/reconcile/failpoints.ts'
import { effort } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { startPlatform, whatIsThere, type Platform } from '#test/support/platform.ts'

const rounds = effort({ small: 1, full: 10 })
/** What a tenant with a schema in a shared database passes; docker-failpoints.test.ts has those of the services of its own. */
const ofServices = /^(place|converge|halt)\.|^observe\.runtime$|^purge\.(step-after|services-removed)$/
const passed = failpointNames.filter((name) => !ofServices.test(name))
const isOfDelete = (name: FailpointName) => name.startsWith('delete.') || name.startsWith('purge.')

/** Waits until nothing is under way; `gone` are those that must have left. */
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

/** Arms a control plane, calls it, and waits for its death. @returns whether it had taken the call by then */
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
  if (armed.process.signalCode !== 'SIGKILL') throw new Error(`${name} was not passed: ${armed.output().slice(-1000)}`)
  const [row] = await query(platform.postgres.url('control'), `select ${taken} as taken`)
  return row?.['taken'] === true
}

/** A control plane without failpoints puts everything right. */
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

/** Every kind of leftover equals the tenants; files only where some were uploaded. */
async function checkExact(
  t: Test,
  platform: Platform,
  tenants: ReadonlyMap<string, string>,
  withFiles: ReadonlySet<string>,
): Promise<void> {
  const there = await whatIsThere(platform)
  const ids = [...tenants.keys()].sort()
  t.same(there.schemas, ids, 'schemas')
  t.same(there.secrets, ids, 'secrets')
  t.same(
    there.roles,
    ids.flatMap((id) => [id, `${id}_admin`, `${id}_ddl`, `${id}_owner`, `${id}_system`]).sort(),
    'roles',
  )
  t.same(
    there.files.filter((id) => !tenants.has(id)),
    [],
    'no files of tenants that are gone',
  )
  t.same(
    [...withFiles].filter((id) => tenants.has(id) && !there.files.includes(id)),
    [],
    'files of those that are there',
  )
}

t.test('kill -9 at every failpoint', { timeout: 3_600_000 }, async (t) => {
  const platform = await startPlatform()
  t.teardown(() => platform.stop())
  const hit = new Set<FailpointName>()
  const withFiles = new Set<string>()
  /** Deleted with a grace time, which none of them outlives here. */
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
        // It died of what the kill before had left, and never heard of this one.
        await calmly(platform)
        t.ok(await killedAt(platform, name, method, path, body, taken), `killed at ${name}`)
      }
      hit.add(name)
    }
    const last = await platform.startControlPlane()
    const tenants = await settled(platform)
    for (const [name, victim] of victims)
      t.equal(tenants.get(victim), name === 'delete.waiting' ? 'deleting' : undefined, `deleted when killed at ${name}`)
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
      'no operation is left open',
    )
    last.process.kill('SIGTERM')
    await last.exited
  }
  t.comment(`failpoints hit / existing: ${hit.size} / ${passed.length}, ${rounds} time(s) each`)
  t.equal(hit.size, passed.length)
})

t.test('a fault at every failpoint is mended by the next attempt', { timeout: 300_000 }, async (t) => {
  const platform = await startPlatform()
  t.teardown(() => platform.stop())
  const controlPlane = await platform.startControlPlane({
    failpoints: failpointNames.map((name) => `${name}=throw`).join(','),
  })
  // Side by side: each takes some of the faults, and none so many that it comes to be called failed.
  await Promise.all(Array.from({ length: 12 }, (_, index) => create(platform, `faulty-${index}`)))
  const made = await settled(platform)
  t.equal(made.size, 12)
  await checkExact(t, platform, made, new Set())
  const ids = [...made.keys()]
  await Promise.all(ids.slice(0, 6).map((id) => platform.call('DELETE', `/v1/tenants/${id}?purge=true`)))
  await Promise.all(ids.slice(6, 8).map((id) => platform.call('DELETE', `/v1/tenants/${id}`)))
  const left = await settled(platform)
  t.equal(left.size, 6)
  await checkExact(t, platform, left, new Set())
  t.equal(controlPlane.process.exitCode, null, 'it lived through all of it')
})
