// Changes of a dedicated tenant's containers, networks and volumes from outside the control plane. The drift policy decides
// whether they are repaired, reported or ignored. A volume with data is never replaced by an empty one.
import t from 'tap'
import { startDockerPlatform, type DockerPlatform } from '#test/support/docker-platform.ts'
import { containersOf, docker, type Tenant } from './support/docker-client.ts'

async function create(platform: DockerPlatform, name: string): Promise<Tenant> {
  const { status, body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name, plan: 'Pro', region: 'local' },
    { prefer: 'wait=60' },
  )
  if (status !== 201 || body['status'] !== 'ready') throw new Error(`${name}: ${status} ${JSON.stringify(body)}`)
  return { id: String(body['tenant_id']), name, key: (body['keys'] as { secret_key: string }).secret_key }
}

const put = (platform: DockerPlatform, { name, key }: Tenant, text: string) =>
  platform.tenantCall(name, 'POST', '/storage/v1/object/system/kept.txt', { key, body: text, type: 'text/plain' })

const stored = async (platform: DockerPlatform, { name, key }: Tenant): Promise<string> => {
  const response = await platform.tenantCall(name, 'GET', '/storage/v1/object/system/kept.txt', { key })
  const text = await response.text()
  return response.status === 200 ? text : String(response.status)
}

async function until<T>(what: string, read: () => Promise<T>, holds: (value: T) => boolean, seconds = 60): Promise<T> {
  const deadline = Date.now() + seconds * 1000
  for (;;) {
    const value = await read().catch((error: unknown) => error as T)
    if (holds(value)) return value
    if (Date.now() > deadline) throw new Error(`${what}: ${JSON.stringify(value)}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const container = async (tenant: Tenant, service: string) => (await containersOf(tenant, service)).split('\n')[0] ?? ''

/** Waits until no repair is in progress: no drift is reported, and the same containers run for two seconds. */
async function settled(platform: DockerPlatform, tenant: Tenant): Promise<void> {
  const ours = `label=tenantry.installation=${platform.installation}`
  let [seen, since] = ['', Date.now()]
  await until(
    'settled',
    async () => {
      const { body } = await platform.call('GET', `/v1/tenants/${tenant.id}/drift`)
      const containers = await docker('ps', '--no-trunc', '--filter', ours, '--format', '{{.ID}}')
      const now = `${JSON.stringify(body['drifted'])} ${containers}`
      if (now !== seen) [seen, since] = [now, Date.now()]
      return body['drifted']
    },
    (drifted) => drifted === false && Date.now() - since > 2000,
  )
}

t.test('Drift of a dedicated tenant', { timeout: 600_000 }, async (t) => {
  const platform = await startDockerPlatform({ deleteGraceSeconds: 0, orphanGraceSeconds: 1 })
  t.teardown(() => platform.stop())
  const tenant = await create(platform, 'repaired')
  const other = await create(platform, 'other')
  await put(platform, tenant, 'before')
  await put(platform, other, 'calm')
  const serves = () =>
    until(
      'the tenant is served again',
      () => stored(platform, tenant),
      (text) => text === 'before',
    )

  const harms: [string, () => Promise<unknown>][] = []
  for (const service of ['runtime', 'postgres']) {
    harms.push(
      [`${service} killed`, async () => docker('kill', await container(tenant, service))],
      [`${service} stopped`, async () => docker('stop', '-t', '5', await container(tenant, service))],
      [`${service} removed`, async () => docker('rm', '-f', await container(tenant, service))],
      [`${service} paused`, async () => docker('pause', await container(tenant, service))],
      [
        `${service} disconnected from its network`,
        async () => docker('network', 'disconnect', `tenantry-${tenant.id}-net`, await container(tenant, service)),
      ],
    )
  }
  harms.push([
    'the runtime connected to a network with internet access',
    async () => {
      const [way] = (
        await docker(
          'network',
          'ls',
          '--filter',
          `label=tenantry.installation=${platform.installation}`,
          '--filter',
          'name=-door$',
          '--format',
          '{{.Name}}',
        )
      ).split('\n')
      const runtime = await container(tenant, 'runtime')
      await docker('network', 'connect', way ?? '', runtime)
      await until(
        'the network is disconnected again',
        () => docker('inspect', runtime, '--format', '{{len .NetworkSettings.Networks}}'),
        (text) => text === '1',
      )
    },
  ])
  harms.push([
    'both containers removed',
    async () => docker('rm', '-f', await container(tenant, 'runtime'), await container(tenant, 'postgres')),
  ])
  harms.push([
    'the gateway disconnected',
    async () => {
      const gateway = await docker(
        'ps',
        '--filter',
        `label=tenantry.installation=${platform.installation}`,
        '--filter',
        'label=tenantry.service=gateway',
        '--format',
        '{{.Names}}',
      )
      await docker('network', 'disconnect', `tenantry-${tenant.id}-net`, gateway)
    },
  ])
  harms.push([
    'the gateway removed',
    async () =>
      docker(
        'rm',
        '-f',
        await docker(
          'ps',
          '--filter',
          `label=tenantry.installation=${platform.installation}`,
          '--filter',
          'label=tenantry.service=gateway',
          '--format',
          '{{.Names}}',
        ),
      ),
  ])
  for (const [name, harm] of harms) {
    await t.test(`The control plane repairs: ${name}`, async (t) => {
      await settled(platform, tenant)
      await harm()
      await serves()
      t.equal(await stored(platform, other), 'calm', 'the other tenant is served')
      const containers = (
        await docker('ps', '-a', '--filter', `label=tenantry.stack=${tenant.id}`, '--format', '{{.Names}}')
      ).split('\n')
      t.equal(containers.length, 2, 'one container of each service')
    })
  }

  t.test('The control plane resets limits that were changed by hand', async (t) => {
    await settled(platform, tenant)
    const name = await container(tenant, 'runtime')
    const before = await docker('inspect', name, '--format', '{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}')
    await docker('update', '--memory', '300m', '--memory-swap', '300m', '--cpus', '0.3', name)
    await until(
      'limits',
      () => docker('inspect', name, '--format', '{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}'),
      (text) => text === before,
    )
    t.equal(await stored(platform, tenant), 'before')
  })

  t.test('The policy "report" reports drift, and a return to "repair" repairs it', async (t) => {
    t.equal(
      (await platform.call('PATCH', `/v1/tenants/${tenant.id}`, { drift_policy: 'report' }, { prefer: 'wait=30' }))
        .status,
      200,
    )
    await docker('kill', await container(tenant, 'runtime'))
    const drifted = await platform.until(tenant.id, (body) => JSON.stringify(body['conditions']).includes('"Drift"'))
    t.match(drifted['conditions'], [{ type: /./ }])
    t.equal(
      await docker('inspect', await container(tenant, 'runtime'), '--format', '{{.State.Status}}'),
      'exited',
      'the container is not repaired',
    )
    const observed = await platform.until(tenant.id, ({ status }) => status === 'failed')
    t.match(
      observed['reason'],
      /^The service runtime is not running: its container is exited\. The drift policy "report" leaves it unchanged\.$/,
    )
    const conditions = observed['conditions'] as { type: string; status: string; reason: string; message: string }[]
    const conditionOf = (type: string) => conditions.find((one) => one.type === type)
    t.match(conditionOf('Runtime'), {
      status: 'False',
      reason: 'NotRunning',
      message: 'The service runtime is not running: its container is exited.',
    })
    t.match(conditionOf('Services'), { status: 'False' })
    t.match(conditionOf('Drift'), { status: 'True' })
    await docker('start', await container(tenant, 'runtime'))
    const well = await platform.until(tenant.id, ({ status }) => status === 'ready')
    t.match(well, { reason: null })
    t.same(
      (well['conditions'] as { status: string }[]).filter(({ status }) => status !== 'True'),
      [],
      'the tenant recovers when an operator starts the container',
    )
    t.notMatch(JSON.stringify(well['conditions']), /"Drift"/)
    await docker('kill', await container(tenant, 'runtime'))
    await platform.until(tenant.id, ({ status }) => status === 'failed')
    await platform.call('PATCH', `/v1/tenants/${tenant.id}`, { drift_policy: 'repair' }, { prefer: 'wait=60' })
    await serves()
    await platform.until(tenant.id, (body) => !JSON.stringify(body['conditions']).includes('"Drift"'))
  })

  t.test('The policy "ignore" neither repairs nor reports drift, but the conditions show the state', async (t) => {
    await platform.call('PATCH', `/v1/tenants/${tenant.id}`, { drift_policy: 'ignore' }, { prefer: 'wait=30' })
    await docker('kill', await container(tenant, 'runtime'))
    const observed = await platform.until(tenant.id, ({ status }) => status === 'failed')
    t.match(
      (observed['conditions'] as { type: string; status: string }[]).find(({ type }) => type === 'Runtime'),
      { status: 'False' },
    )
    t.equal(await docker('inspect', await container(tenant, 'runtime'), '--format', '{{.State.Status}}'), 'exited')
    t.notMatch(JSON.stringify((await platform.call('GET', `/v1/tenants/${tenant.id}`)).body['conditions']), /"Drift"/)
    await platform.call('PATCH', `/v1/tenants/${tenant.id}`, { drift_policy: 'repair' }, { prefer: 'wait=60' })
    await serves()
  })

  t.test('A resize changes the running containers and keeps the data', async (t) => {
    const megabyte = 2 ** 20
    const response = await platform.call(
      'PATCH',
      `/v1/tenants/${tenant.id}`,
      {
        resources: {
          postgres: { memory_bytes: 512 * megabyte, cpu_millis: 700 },
          runtime: { memory_bytes: 600 * megabyte },
        },
      },
      { prefer: 'wait=60' },
    )
    t.match(response, { status: 200, body: { status: 'ready', operation: { kind: 'resize', state: 'succeeded' } } })
    t.equal(
      await docker(
        'inspect',
        await container(tenant, 'postgres'),
        '--format',
        '{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}',
      ),
      `${512 * megabyte} 700000000`,
    )
    t.equal(
      await docker('inspect', await container(tenant, 'runtime'), '--format', '{{.HostConfig.Memory}}'),
      String(600 * megabyte),
    )
    t.equal(await stored(platform, tenant), 'before')
  })

  t.test('A restart replaces the containers while reads are served', async (t) => {
    const before = await container(tenant, 'runtime')
    let requesting = true
    const seen = new Map<string, number>()
    const requests = (async () => {
      while (requesting) {
        const response = await stored(platform, tenant)
        seen.set(response, (seen.get(response) ?? 0) + 1)
      }
    })()
    const response = await platform.call('POST', `/v1/tenants/${tenant.id}/restart`, undefined, { prefer: 'wait=60' })
    t.match(response, { status: 202, body: { operation: { kind: 'restart', state: 'succeeded' } } })
    requesting = false
    await requests
    t.not(await container(tenant, 'runtime'), before)
    t.ok((seen.get('before') ?? 0) > 0, JSON.stringify([...seen]))
    await serves()
  })

  t.test('A paused tenant runs no container; requests wake it and succeed', async (t) => {
    t.match(await platform.call('POST', `/v1/tenants/${tenant.id}/pause`, undefined, { prefer: 'wait=60' }), {
      status: 202,
      body: { status: 'paused' },
    })
    t.equal(await docker('ps', '-q', '--filter', `label=tenantry.stack=${tenant.id}`), '')
    const responses = await Promise.all(Array.from({ length: 20 }, () => stored(platform, tenant)))
    t.same(
      responses,
      Array.from({ length: 20 }, () => 'before'),
      'all waiting requests succeed',
    )
    // Gateways serve the requests as soon as they have the route; the status is recorded after that.
    t.ok(await platform.until(tenant.id, ({ status }) => status === 'ready'))
  })

  t.test('A suspended tenant is stopped and rejects requests with the reason; a resume restores it', async (t) => {
    const suspend = { suspended: true, suspend_reason: 'the invoice of May is open', payment_required: true }
    t.match(await platform.call('PATCH', `/v1/tenants/${tenant.id}`, suspend, { prefer: 'wait=60' }), {
      status: 200,
      body: { status: 'suspended' },
    })
    t.equal(await docker('ps', '-q', '--filter', `label=tenantry.stack=${tenant.id}`), '')
    const rejected = await platform.tenantCall(tenant.name, 'GET', '/storage/v1/bucket', { key: tenant.key })
    t.equal(rejected.status, 402)
    t.match(await rejected.text(), /invoice of May/)
    t.match(await platform.call('PATCH', `/v1/tenants/${tenant.id}`, { suspended: false }, { prefer: 'wait=60' }), {
      status: 200,
      body: { status: 'ready' },
    })
    t.equal(await stored(platform, tenant), 'before')
  })

  t.test('A lost volume is reported as a failure and never replaced by an empty one', async (t) => {
    for (const volume of ['data', 'files'] as const) {
      const victim = await create(platform, `victim-${volume}`)
      // Prevents repairs before all objects are removed.
      await platform.call('PATCH', `/v1/tenants/${victim.id}`, { drift_policy: 'ignore' }, { prefer: 'wait=30' })
      await docker('rm', '-f', await container(victim, 'postgres'), await container(victim, 'runtime'))
      await docker('volume', 'rm', `tenantry-${victim.id}-${volume}`)
      await platform.call('PATCH', `/v1/tenants/${victim.id}`, { drift_policy: 'repair' })
      // The loss may have been seen while the policy was still "ignore".
      const body = await platform.until(
        victim.id,
        ({ status, reason }) => status === 'failed' && !String(reason).includes('"ignore"'),
      )
      t.match(body['reason'], new RegExp(`volume "${volume}" and its data are gone`))
      t.match(body['conditions'], [{ type: 'Services', status: 'False', reason: 'VolumeMissing' }])
      t.equal(
        await docker('volume', 'ls', '-q', '--filter', `name=tenantry-${victim.id}-${volume}$`),
        '',
        'no empty volume was created',
      )
      t.equal(await stored(platform, other), 'calm')
      t.match(
        (await platform.call('DELETE', `/v1/tenants/${victim.id}?purge=true`, undefined, { prefer: 'wait=60' })).body[
          'operation'
        ],
        { state: 'succeeded' },
      )
    }
  })

  t.test('Objects of deleted tenants are removed; unknown and foreign objects are not', async (t) => {
    const foreign = `foreign-${platform.installation.slice(0, 8)}`
    await docker('volume', 'create', foreign)
    await docker('network', 'create', '--internal', foreign)
    await docker('create', '--name', foreign, '--network', foreign, 'debian:trixie-slim', 'true')
    const [orphan, unknown] = ['t_00000000000000000000', 't_11111111111111111111']
    await platform.sql(
      "insert into operations (id, tenant_id, kind, state, generation) values (gen_random_uuid(), $1, 'delete', 'succeeded', 2)",
      [orphan],
    )
    const plant = (id: string) =>
      docker(
        'volume',
        'create',
        '--label',
        `tenantry.installation=${platform.installation}`,
        '--label',
        `tenantry.stack=${id}`,
        `tenantry-${id}-data`,
      )
    await plant(unknown)
    await plant(orphan)
    await until(
      'the orphan is gone',
      () => docker('volume', 'ls', '-q', '--filter', `name=tenantry-${orphan}-data`),
      (text) => text === '',
      70,
    )
    t.equal(
      await docker('volume', 'ls', '-q', '--filter', `name=${unknown}`),
      `tenantry-${unknown}-data`,
      'the volume of a tenant that was never deleted stays',
    )
    await docker('volume', 'rm', `tenantry-${unknown}-data`)
    t.equal(await docker('volume', 'ls', '-q', '--filter', `name=${foreign}`), foreign)
    t.equal(await docker('network', 'ls', '--format', '{{.Name}}', '--filter', `name=${foreign}`), foreign)
    t.equal(await docker('ps', '-a', '--format', '{{.Names}}', '--filter', `name=${foreign}`), foreign)
    await docker('rm', foreign)
    await docker('network', 'rm', foreign)
    await docker('volume', 'rm', foreign)
  })

  t.test('A deletion removes all objects of a tenant', async (t) => {
    for (const { id } of [tenant, other]) {
      t.match(
        (await platform.call('DELETE', `/v1/tenants/${id}?purge=true`, undefined, { prefer: 'wait=60' })).body[
          'operation'
        ],
        { state: 'succeeded' },
      )
      for (const list of [
        ['ps', '-aq'],
        ['volume', 'ls', '-q'],
        ['network', 'ls', '-q'],
      ])
        t.equal(await docker(...list, '--filter', `label=tenantry.stack=${id}`), '')
    }
    t.same(await platform.sql('select * from subnets'), [])
    t.same(await platform.sql('select * from tenant_secrets'), [])
  })
})
