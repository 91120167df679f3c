// The repair of one field on a real Docker Engine: limits, processes and attachments that were changed behind the control plane's
// back. The repaired one is as specified; every other difference stays.
import t from 'tap'
import { startDockerPlatform } from '#test/support/docker-platform.ts'
import { until } from '#test/support/until.ts'
import { containersOf, docker, type Tenant } from '../reconcile/support/docker-client.ts'

interface Difference {
  component: string
  field: string
  repair: { scope: string; components: string[]; also: object[]; interrupts: boolean }
}

t.test('One field of a tenant is repaired', { timeout: 240_000 }, async (t) => {
  const platform = await startDockerPlatform()
  t.teardown(() => platform.stop())
  const created = await platform.call(
    'POST',
    '/v1/tenants',
    { name: 'drifting', plan: 'Pro', region: 'local' },
    { prefer: 'wait=60' },
  )
  t.match(created, { status: 201, body: { status: 'ready' } })
  const tenant: Tenant = {
    id: String(created.body['tenant_id']),
    name: 'drifting',
    key: (created.body['keys'] as { secret_key: string }).secret_key,
  }
  const path = `/v1/tenants/${tenant.id}`
  await platform.call('PATCH', path, { drift_policy: 'report' }, { prefer: 'wait=60' })

  const serves = async () => {
    const { key } = tenant
    return (await platform.tenantCall(tenant.name, 'GET', '/storage/v1/bucket', { key })).status
  }
  const drift = async () => (await platform.call('GET', `${path}/drift`)).body['differences'] as Difference[]
  const names = async () => (await drift()).map(({ component, field }) => `${component} ${field}`).toSorted()
  const repair = async (component: string, field: string) => {
    const body = { fields: [{ component, field }] }
    const response = await platform.call('POST', `${path}/drift/repair`, body, { prefer: 'wait=60' })
    t.equal(response.status, 202, JSON.stringify(response.body))
    return response.body['operation']
  }
  const container = async (service: string) => (await containersOf(tenant, service)).split('\n')[0] ?? ''
  const limits = async () =>
    docker(
      'inspect',
      await container('runtime'),
      '--format',
      '{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}} {{.HostConfig.RestartPolicy.Name}}',
    )
  const specified = await limits()
  const [memory = '', cpus = ''] = specified.split(' ')

  await t.test('A limit is set while the container runs, and another limit stays', async (t) => {
    const runtime = await container('runtime')
    await docker('update', '--memory', '700m', '--memory-swap', '700m', '--cpus', '0.3', '--restart', 'no', runtime)
    t.same(await names(), ['runtime cpu_millis', 'runtime memory_bytes', 'runtime restart_policy'])
    for (const { repair } of await drift())
      t.same(repair, { scope: 'field', components: ['runtime'], also: [], interrupts: false })
    t.match(await repair('runtime', 'memory_bytes'), { kind: 'repair', state: 'succeeded' })
    t.equal(await limits(), `${memory} 300000000 no`)
    t.same(await names(), ['runtime cpu_millis', 'runtime restart_policy'])
    t.match(await repair('runtime', 'restart_policy'), { state: 'succeeded' })
    t.equal(await limits(), `${memory} 300000000 unless-stopped`)
    t.equal(await container('runtime'), runtime, 'the container was not replaced')
  })

  await t.test('A stopped process is started, and the limit of another service stays', async (t) => {
    await docker('stop', '-t', '5', await container('postgres'))
    t.same(await names(), ['postgres state', 'runtime cpu_millis'])
    t.match(await repair('postgres', 'state'), { state: 'succeeded' })
    t.same(await names(), ['runtime cpu_millis'])
    await until(async () => (await serves()) === 200, 'the tenant is served')
    t.ok(await platform.until(tenant.id, ({ status }) => status === 'ready'))
    t.equal(await limits(), `${memory} 300000000 unless-stopped`)
  })

  await t.test('A container off its network is put back on it', async (t) => {
    await docker('network', 'disconnect', `tenantry-${tenant.id}-net`, await container('runtime'))
    const [attachment] = (await drift()).filter(({ field }) => field.startsWith('network'))
    t.match(attachment, { component: 'runtime', field: 'network net', repair: { interrupts: false } })
    t.match(await repair('runtime', 'network net'), { state: 'succeeded' })
    t.same(await names(), ['runtime cpu_millis'])
    await until(async () => (await serves()) === 200, 'the tenant is served')
  })

  await t.test('A removed container is created again with everything that belongs to it', async (t) => {
    await docker('rm', '-f', await container('runtime'))
    t.match(await drift(), [
      {
        component: 'runtime',
        field: 'existence',
        repair: { scope: 'component', components: ['runtime'], interrupts: false },
      },
    ])
    await docker('update', '--cpus', '0.3', await container('postgres'))
    t.match(await repair('runtime', 'existence'), { state: 'succeeded' })
    t.equal(await limits(), specified, 'the container is new, and has its limits')
    t.same(await names(), ['postgres cpu_millis'])
    await until(async () => (await serves()) === 200, 'the tenant is served')
  })

  await t.test('A repair continues after the control plane was killed in it', async (t) => {
    await platform.stopControlPlanes()
    const killed = await platform.startControlPlane({ failpoints: 'repair.step-after=kill' })
    await docker('update', '--restart', 'no', await container('runtime'))
    const body = { fields: [{ component: 'runtime', field: 'restart_policy' }] }
    const { id } = (await platform.call('POST', `${path}/drift/repair`, body)).body['operation'] as { id: string }
    await killed.exited
    await platform.startControlPlane()
    const operation = async () => (await platform.call('GET', `/v1/operations/${id}`)).body
    await until(async () => (await operation())['state'] === 'succeeded', 'the repair')
    t.same(await names(), ['postgres cpu_millis'])
  })

  await t.test('Everything is repaired together, and the policy still leaves what differs later', async (t) => {
    const runtime = await container('runtime')
    await docker('update', '--cpus', '0.3', runtime)
    const response = await platform.call('POST', `${path}/drift/repair`, {}, { prefer: 'wait=60' })
    t.match(response.body, { status: 'ready', drift_policy: 'report', operation: { state: 'succeeded' } })
    t.same(await names(), [])
    t.equal((await limits()).split(' ')[1], cpus)
    await docker('update', '--cpus', '0.3', runtime)
    t.same(await names(), ['runtime cpu_millis'])
  })
})
