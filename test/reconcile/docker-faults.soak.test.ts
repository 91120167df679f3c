// Faults of a Docker Engine and its host. Each is reported with a reason and a message, does not affect other tenants, and heals
// by itself when its cause is gone, and no objects remain.
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { networkName, volumeName } from '#control-plane/stacks/object-names.ts'
import { parseRange, tenantSubnet } from '#control-plane/stacks/subnets.ts'
import { startDockerPlatform } from '#test/support/docker-platform.ts'
import { openEngineProxy } from '#test/support/engine-proxy.ts'
import { containersOf, docker, type Tenant } from './support/docker-client.ts'
import { actionsOn, until } from './support/faults.ts'

const lines = (text: string) => text.split('\n').filter((line) => line !== '')

const megabyte = 2 ** 20
/** The smallest network range, which has `subnets` subnets for tenants. */
const range = `10.${randomInt(64, 192)}.${randomInt(0, 128) * 2}.0/23`
const subnets = 16

t.test('Faults of the engine and its host', { timeout: 300_000 }, async (t) => {
  const tag = randomBytes(4).toString('hex')
  // The test has its own image names, so that it can remove one.
  const images = {
    postgres: `tenantry/postgres:${tag}`,
    runtime: `tenantry/tenant-runtime:${tag}`,
    gateway: `tenantry/gateway:${tag}`,
  }
  const otherImage = `tenantry/tenant-runtime:${tag}-other`
  const proxy = await openEngineProxy(t)
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-faults-'))
  const [runtimeDigest = ''] = await Promise.all(
    [images.runtime, images.postgres, images.gateway].map(async (image) => {
      const latest = image.replace(tag, 'latest')
      await docker('tag', latest, image)
      return docker('image', 'inspect', image, '--format', '{{.Id}}')
    }),
  )
  const platform = await startDockerPlatform({
    deleteGraceSeconds: 0,
    docker: { host: proxy.host, network_range: range, images },
  })
  t.teardown(async () => {
    await platform.stop()
    for (const image of [...Object.values(images), otherImage]) await docker('rmi', image).catch(() => undefined)
    await rm(directory, { recursive: true })
  })

  const { request, create, use, untilReported, isWell, regionCondition, change, gateway, everything } =
    actionsOn(platform)
  const initialObjects = await everything()
  const calm = await create('calm')
  const victim = await create('victim')
  const label = (stack: string) => [
    '--label',
    `tenantry.installation=${platform.installation}`,
    '--label',
    `tenantry.stack=${stack}`,
  ]
  const rest: Tenant[] = []

  await t.test(
    'An unreachable engine, foreign objects with our names and a full disk are reported, and tenants recover',
    async (t) => {
      await proxy.close()
      const [networkTaken, volumeTaken, full] = await Promise.all(
        ['network-taken', 'volume-taken', 'disk-full'].map((name) => request(name, 'Pro', 0)),
      )
      if (networkTaken === undefined || volumeTaken === undefined || full === undefined)
        throw new Error('The control plane did not create three tenants.')
      rest.push(networkTaken, volumeTaken, full)
      for (const tenant of rest)
        await untilReported(t, tenant, 'EngineUnreachable', /^Cannot .*: the Docker Engine cannot be reached\.$/)
      t.equal(await use(calm), 'served', 'existing tenants are served')
      const shared = await create('no-engine', 'Free')
      t.equal(await use(shared), 'served', 'a tenant without own containers can be created')
      rest.push(shared)
      t.match(await change(victim, { resources: { runtime: { memory_bytes: 512 * megabyte } } }), {
        status: 503,
        body: { code: 'ENGINE_UNREACHABLE' },
      })
      t.match(await platform.call('GET', `/v1/tenants/${victim.id}/drift`), {
        status: 503,
        body: { code: 'ENGINE_UNREACHABLE' },
      })
      t.match(
        (await platform.call('GET', `/v1/tenants/${victim.id}`)).body,
        { status: 'ready', generation: 1 },
        'a rejected change is not started',
      )

      // Foreign objects with our names, and an own disk that is too small for a database.
      const foreignNetwork = networkName(networkTaken.id, 'net')
      const foreignVolume = volumeName(volumeTaken.id, 'files')
      await docker(
        'network',
        'create',
        '--internal',
        '--subnet',
        `10.${randomInt(192, 224)}.${randomInt(256)}.0/28`,
        foreignNetwork,
      )
      // The label distinguishes the volume from one that Docker creates, which would be replaced.
      await docker('volume', 'create', '--label', 'owner=another', foreignVolume)
      await docker(
        'volume',
        'create',
        '--opt',
        'type=tmpfs',
        '--opt',
        'device=tmpfs',
        '--opt',
        'o=size=16m',
        ...label(full.id),
        volumeName(full.id, 'data'),
      )
      // A tmpfs loses its data when no container mounts it.
      await docker(
        'run',
        '--detach',
        '--init',
        '--network',
        'none',
        '--volume',
        `${volumeName(full.id, 'data')}:/disk`,
        'debian:trixie-slim',
        'sleep',
        '600',
      )
      t.teardown(() => docker('volume', 'rm', foreignVolume).catch(() => undefined))
      t.teardown(() => docker('network', 'rm', foreignNetwork).catch(() => undefined))
      await proxy.open()
      await untilReported(
        t,
        networkTaken,
        'ForeignObject',
        new RegExp(`A network named "${foreignNetwork}" exists that does not belong to Tenantry`),
      )
      await untilReported(
        t,
        volumeTaken,
        'ForeignObject',
        new RegExp(`A volume named "${foreignVolume}" exists that does not belong to Tenantry`),
      )
      await untilReported(t, full, 'DiskFull', /^The disk of the tenant's Postgres is full\.$/)
      t.equal(await use(calm), 'served')
      t.equal(
        await docker('volume', 'inspect', foreignVolume, '--format', '{{json .Labels}}'),
        '{"owner":"another"}',
        'the foreign volume is unchanged',
      )

      await docker('network', 'rm', foreignNetwork)
      await docker('volume', 'rm', foreignVolume)
      // The control plane creates containers with this volume again while the test removes them.
      await until('the small disk is gone', async () => {
        const present = lines(await docker('ps', '-aq', '--filter', `volume=${volumeName(full.id, 'data')}`))
        if (present.length > 0) await docker('rm', '-f', ...present).catch(() => undefined)
        return docker('volume', 'rm', volumeName(full.id, 'data')).then(
          () => true,
          () => false,
        )
      })
      for (const tenant of rest) await isWell(t, tenant)
    },
  )

  await t.test('A foreign container with our name is reported and left unchanged', async (t) => {
    t.match(await platform.call('POST', `/v1/tenants/${victim.id}/pause`, undefined, { prefer: 'wait=30' }), {
      body: { status: 'paused' },
    })
    const name = await containersOf(victim, 'runtime')
    await docker('rm', name)
    await docker('create', '--name', name, '--network', 'none', 'debian:trixie-slim', 'sleep', '600')
    t.teardown(() => docker('rm', '-f', name).catch(() => undefined))
    t.equal((await platform.call('POST', `/v1/tenants/${victim.id}/wake`)).status, 202)
    await untilReported(
      t,
      victim,
      'ForeignObject',
      new RegExp(`A container named "${name}" exists that does not belong to Tenantry`),
    )
    t.equal(await use(calm), 'served')
    t.equal(
      await docker('inspect', name, '--format', '{{.State.Status}} {{len .Config.Labels}}'),
      'created 0',
      'the foreign container is unchanged',
    )
    await docker('rm', name)
    await isWell(t, victim)
  })

  await t.test(
    'A missing image is reported, by its name for new tenants and by its digest for existing ones',
    async (t) => {
      await docker('rmi', images.runtime)
      // The control plane resolves image names every few seconds.
      await new Promise((resolve) => setTimeout(resolve, 6_000))
      const late = await request('image-missing', 'Pro', 0)
      rest.push(late)
      await untilReported(t, late, 'ImageMissing', new RegExp(`The image "${images.runtime}" does not exist`))
      t.match(
        await platform.call('POST', '/v1/rollouts', { region: 'local', component: 'runtime', image: images.runtime }),
        { status: 422, body: { code: 'IMAGE_MISSING' } },
      )
      t.equal(await use(calm), 'served')
      await docker('kill', await containersOf(calm, 'runtime'))
      await until('a tenant with existing images is repaired', async () => (await use(calm)) === 'served')
      await docker('tag', runtimeDigest, images.runtime)
      await isWell(t, late)

      await docker(
        'commit',
        '--pause=false',
        '--change',
        `LABEL faults=${tag}`,
        await containersOf(calm, 'runtime'),
        otherImage,
      )
      const file = join(directory, 'image.tar')
      await docker('save', '--output', file, otherImage)
      const digest = await docker('image', 'inspect', otherImage, '--format', '{{.Id}}')
      t.match(await change(victim, { suspended: true }), { body: { status: 'suspended' } })
      await docker('rm', await containersOf(victim, 'runtime'))
      // As if an earlier rollout had set the tenant's image.
      await platform.sql('update tenants set runtime_image = $2 where id = $1', [victim.id, digest])
      await docker('rmi', otherImage)
      await change(victim, { suspended: false }, 0)
      await untilReported(t, victim, 'ImageMissing', /the image does not exist/)
      t.equal(await use(calm), 'served')
      await docker('load', '--input', file)
      await isWell(t, victim)
      t.equal(await docker('inspect', await containersOf(victim, 'runtime'), '--format', '{{.Image}}'), digest)
    },
  )

  await t.test('A lack of free subnets is reported, and no object is created', async (t) => {
    const taken = new Set(
      lines(
        await docker(
          'network',
          'ls',
          '--filter',
          `label=tenantry.installation=${platform.installation}`,
          '--format',
          '{{.Name}}',
        ),
      ),
    )
    const used = new Set(
      await Promise.all(
        [...taken].map((name) => docker('network', 'inspect', name, '--format', '{{(index .IPAM.Config 0).Subnet}}')),
      ),
    )
    const planted: string[] = []
    t.teardown(async () => {
      for (const name of planted) await docker('network', 'rm', name).catch(() => undefined)
    })
    for (let number = 0; number < subnets; number++) {
      const subnet = tenantSubnet(parseRange(range), number)
      if (used.has(subnet)) continue
      const stack = `t_${randomBytes(10).toString('hex')}`
      await docker('network', 'create', '--internal', '--subnet', subnet, ...label(stack), networkName(stack, 'net'))
      planted.push(networkName(stack, 'net'))
    }
    const late = await request('no-subnet', 'Pro', 0)
    rest.push(late)
    await untilReported(t, late, 'SubnetsExhausted', /^All 16 subnets of the region are in use\.$/)
    t.equal(await use(calm), 'served')
    t.same(
      (await everything()).filter((name) => name.includes(late.id)),
      [],
      'no object was created',
    )
    for (const name of planted.splice(0)) await docker('network', 'rm', name)
    await isWell(t, late)
  })

  await t.test('A tenant moves to another subnet when a foreign network takes its subnet', async (t) => {
    const subnetOf = (network: string) =>
      docker('network', 'inspect', network, '--format', '{{(index .IPAM.Config 0).Subnet}}')
    const network = networkName(victim.id, 'net')
    const before = await subnetOf(network)
    t.match(await platform.call('POST', `/v1/tenants/${victim.id}/pause`, undefined, { prefer: 'wait=30' }), {
      body: { status: 'paused' },
    })
    await proxy.close()
    const foreign = `foreign-${tag}`
    await docker('rm', await containersOf(victim, 'runtime'), await containersOf(victim, 'postgres'))
    await docker('network', 'disconnect', '--force', network, await gateway())
    await docker('network', 'rm', network)
    await docker('network', 'create', '--internal', '--subnet', before, foreign)
    t.teardown(() => docker('network', 'rm', foreign).catch(() => undefined))
    await proxy.open()
    t.equal((await platform.call('POST', `/v1/tenants/${victim.id}/wake`)).status, 202)
    await isWell(t, victim)
    t.not(await subnetOf(network), before, 'the tenant has another subnet')
    t.equal(await subnetOf(foreign), before, 'the foreign network is unchanged')
    t.match(await platform.sql('select count(*)::int as count from subnets where stack_id = $1', [victim.id]), [
      { count: 1 },
    ])
    await docker('network', 'rm', foreign)
  })

  await t.test("Limits beyond the host's capacity are rejected and change nothing", async (t) => {
    const before = (await platform.call('GET', `/v1/tenants/${victim.id}`)).body
    const [memory, cpus] = (await docker('info', '--format', '{{.MemTotal}} {{.NCPU}}')).split(' ').map(Number)
    for (const component of ['postgres', 'runtime']) {
      t.match(await change(victim, { resources: { [component]: { memory_bytes: (memory ?? 0) + 1 } } }), {
        status: 422,
        body: {
          code: 'LIMITS_BEYOND_HOST',
          message: new RegExp(`"resources.${component}.memory_bytes" is \\d+, but the host has ${memory}`),
        },
      })
      t.match(await change(victim, { resources: { [component]: { cpu_millis: (cpus ?? 0) * 1000 + 1 } } }), {
        status: 422,
        body: { code: 'LIMITS_BEYOND_HOST' },
      })
    }
    for (const size of [{ memory_bytes: 2 ** 20 }, { memory_bytes: 2 ** 50 }, { cpu_millis: 0 }, { cpu_millis: 1.5 }]) {
      t.match(await change(victim, { resources: { runtime: size } }), { status: 400, body: { code: 'INVALID_FIELD' } })
    }
    t.match((await platform.call('GET', `/v1/tenants/${victim.id}`)).body, {
      generation: before['generation'],
      resources: before['resources'] as object,
      status: 'ready',
    })
    t.equal(await use(calm), 'served')
  })

  await t.test("A plan with limits beyond the host's capacity is reported", async (t) => {
    const cpus = Number(await docker('info', '--format', '{{.NCPU}}'))
    const [before] = await platform.sql("select resources from plans where id = 'Enterprise'")
    await platform.sql(
      "update plans set resources = jsonb_set(resources, '{runtime,cpu_millis}', to_jsonb($1::int)) where id = 'Enterprise'",
      [(cpus + 1) * 1000],
    )
    const large = await request('too-large', 'Enterprise', 0)
    rest.push(large)
    await untilReported(
      t,
      large,
      'LimitsBeyondHost',
      /^Cannot create container \S+: the host cannot enforce its limits\.$/,
    )
    t.equal(await use(calm), 'served')
    await platform.sql("update plans set resources = $1 where id = 'Enterprise'", [
      JSON.stringify(before?.['resources']),
    ])
    await isWell(t, large)
  })

  await t.test("A taken gateway port is reported as the region's condition", async (t) => {
    const port = Number(new URL(platform.gatewayUrl).port)
    await platform.stopControlPlanes()
    await docker('rm', '-f', await gateway())
    const squatter = createServer((socket) => socket.destroy())
      .listen(port, '127.0.0.1')
      .unref()
    await once(squatter, 'listening')
    await platform.startControlPlane()
    await until('the region reports PortTaken', async () => (await regionCondition())?.reason === 'PortTaken')
    t.match(await regionCondition(), {
      status: 'False',
      message: /^Cannot start container tenantry-region-local-\S+: a published port is in use\.$/,
    })
    squatter.close()
    await once(squatter, 'close')
    await until('the gateway serves again', async () => (await use(calm).catch(() => '')) === 'served')
    await until('the region is ready', async () => (await regionCondition())?.status === 'True')
    await isWell(t, victim)
  })

  await t.test('No object remains when all tenants are deleted', async (t) => {
    await Promise.all(
      [calm, victim, ...rest].map(({ id }) =>
        platform.call('DELETE', `/v1/tenants/${id}?purge=true`, undefined, { prefer: 'wait=60' }),
      ),
    )
    const withoutHash = (names: string[]) => names.map((name) => name.replace(/-[0-9a-f]{8}(?=$|-secrets$)/, '')).sort()
    t.same(withoutHash(await everything()), withoutHash(initialObjects))
    t.match(await platform.sql('select count(*)::int as count from subnets'), [{ count: 0 }])
    t.match(await platform.sql("select count(*)::int as count from tenants where desired <> 'deleted'"), [{ count: 0 }])
  })
})
