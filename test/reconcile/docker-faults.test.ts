// What can be wrong with a Docker Engine and its host: each time it is said in words and by a code, another tenant does not
// feel it, all is well by itself when the cause is gone, and nothing is left behind.
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
/** The smallest range: its tenants' subnets are soon counted. */
const range = `10.${randomInt(64, 192)}.${randomInt(0, 128) * 2}.0/23`
const subnets = 16

t.test('faults of the engine and its host', { timeout: 300_000 }, async (t) => {
  const tag = randomBytes(4).toString('hex')
  // Names of this test's own: nobody else moves them, and it may take one away.
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

  const {
    request,
    create,
    use,
    told: reported,
    isWell,
    regionCondition,
    change,
    gateway,
    everything,
  } = actionsOn(platform)
  const atFirst = await everything()
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
    "the engine can't be reached; and when it can be, names and a volume are not as they should be",
    async (t) => {
      await proxy.close()
      const [networkTaken, volumeTaken, full] = await Promise.all(
        ['network-taken', 'volume-taken', 'disk-full'].map((name) => request(name, 'Pro', 0)),
      )
      if (networkTaken === undefined || volumeTaken === undefined || full === undefined)
        throw new Error('three were asked for')
      rest.push(networkTaken, volumeTaken, full)
      for (const tenant of rest)
        await reported(t, tenant, 'EngineUnreachable', /^cannot .*: the Docker Engine cannot be reached$/)
      t.equal(await use(calm), 'served', 'who is there is served')
      const shared = await create('no-engine', 'Free')
      t.equal(await use(shared), 'served', 'who needs nothing of the engine is made')
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
        'what was refused is not begun',
      )

      // What nobody of ours has made, but with our names; and a disk of ours that is too small for a database.
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
      // An empty one without labels is what Docker creates by itself, and would be replaced.
      await docker('volume', 'create', '--label', 'owner=somebody', foreignVolume)
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
      // A tmpfs forgets everything when nobody has it mounted.
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
      await reported(
        t,
        networkTaken,
        'ForeignObject',
        new RegExp(`a network named ${foreignNetwork} exists that is not Tenantry's`),
      )
      await reported(
        t,
        volumeTaken,
        'ForeignObject',
        new RegExp(`a volume named ${foreignVolume} exists that is not Tenantry's`),
      )
      await reported(t, full, 'DiskFull', /^the disk that the tenant's Postgres writes to is full$/)
      t.equal(await use(calm), 'served')
      t.equal(
        await docker('volume', 'inspect', foreignVolume, '--format', '{{json .Labels}}'),
        '{"owner":"somebody"}',
        'it is left as it was',
      )

      await docker('network', 'rm', foreignNetwork)
      await docker('volume', 'rm', foreignVolume)
      // A container that stands on the volume is made again while it is taken away.
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

  await t.test('a foreign container with our name', async (t) => {
    t.match(await platform.call('POST', `/v1/tenants/${victim.id}/pause`, undefined, { prefer: 'wait=30' }), {
      body: { status: 'paused' },
    })
    const name = await containersOf(victim, 'runtime')
    await docker('rm', name)
    await docker('create', '--name', name, '--network', 'none', 'debian:trixie-slim', 'sleep', '600')
    t.teardown(() => docker('rm', '-f', name).catch(() => undefined))
    t.equal((await platform.call('POST', `/v1/tenants/${victim.id}/wake`)).status, 202)
    await reported(t, victim, 'ForeignObject', new RegExp(`a container named ${name} exists that is not Tenantry's`))
    t.equal(await use(calm), 'served')
    t.equal(
      await docker('inspect', name, '--format', '{{.State.Status}} {{len .Config.Labels}}'),
      'created 0',
      'it is left as it was',
    )
    await docker('rm', name)
    await isWell(t, victim)
  })

  await t.test(
    'an image that is not there: by its name for new tenants, by its digest for one that has it',
    async (t) => {
      await docker('rmi', images.runtime)
      // The control plane asks for what a name means every few seconds.
      await new Promise((resolve) => setTimeout(resolve, 6_000))
      const late = await request('image-missing', 'Pro', 0)
      rest.push(late)
      await reported(t, late, 'ImageMissing', new RegExp(`the image "${images.runtime}" is not there`))
      t.match(
        await platform.call('POST', '/v1/rollouts', { region: 'local', component: 'runtime', image: images.runtime }),
        { status: 422, body: { code: 'IMAGE_MISSING' } },
      )
      t.equal(await use(calm), 'served')
      await docker('kill', await containersOf(calm, 'runtime'))
      await until('who has its images is mended', async () => (await use(calm)) === 'served')
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
      // As if it had come to that image by a rollout long ago.
      await platform.sql('update tenants set runtime_image = $2 where id = $1', [victim.id, digest])
      await docker('rmi', otherImage)
      await change(victim, { suspended: false }, 0)
      await reported(t, victim, 'ImageMissing', /its image is not there/)
      t.equal(await use(calm), 'served')
      await docker('load', '--input', file)
      await isWell(t, victim)
      t.equal(await docker('inspect', await containersOf(victim, 'runtime'), '--format', '{{.Image}}'), digest)
    },
  )

  await t.test('no subnet is left', async (t) => {
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
    await reported(t, late, 'SubnetsExhausted', /^all 16 subnets of the region are taken$/)
    t.equal(await use(calm), 'served')
    t.same(
      (await everything()).filter((name) => name.includes(late.id)),
      [],
      'nothing was made',
    )
    for (const name of planted.splice(0)) await docker('network', 'rm', name)
    await isWell(t, late)
  })

  await t.test("a stranger's network where a tenant's was", async (t) => {
    const subnetOf = (network: string) =>
      docker('network', 'inspect', network, '--format', '{{(index .IPAM.Config 0).Subnet}}')
    const network = networkName(victim.id, 'net')
    const before = await subnetOf(network)
    t.match(await platform.call('POST', `/v1/tenants/${victim.id}/pause`, undefined, { prefer: 'wait=30' }), {
      body: { status: 'paused' },
    })
    await proxy.close()
    const outsider = `stranger-${tag}`
    await docker('rm', await containersOf(victim, 'runtime'), await containersOf(victim, 'postgres'))
    await docker('network', 'disconnect', '--force', network, await gateway())
    await docker('network', 'rm', network)
    await docker('network', 'create', '--internal', '--subnet', before, outsider)
    t.teardown(() => docker('network', 'rm', outsider).catch(() => undefined))
    await proxy.open()
    t.equal((await platform.call('POST', `/v1/tenants/${victim.id}/wake`)).status, 202)
    await isWell(t, victim)
    t.not(await subnetOf(network), before, 'it moved')
    t.equal(await subnetOf(outsider), before, "the stranger's is left as it was")
    t.match(await platform.sql('select count(*)::int as count from subnets where stack_id = $1', [victim.id]), [
      { count: 1 },
    ])
    await docker('network', 'rm', outsider)
  })

  await t.test('limits beyond the host are refused, and change nothing', async (t) => {
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

  await t.test('a plan with more than the host has', async (t) => {
    const cpus = Number(await docker('info', '--format', '{{.NCPU}}'))
    const [before] = await platform.sql("select resources from plans where id = 'Enterprise'")
    await platform.sql(
      "update plans set resources = jsonb_set(resources, '{runtime,cpu_millis}', to_jsonb($1::int)) where id = 'Enterprise'",
      [(cpus + 1) * 1000],
    )
    const large = await request('too-large', 'Enterprise', 0)
    rest.push(large)
    await reported(t, large, 'LimitsBeyondHost', /^cannot create container \S+: its limits are not possible here$/)
    t.equal(await use(calm), 'served')
    await platform.sql("update plans set resources = $1 where id = 'Enterprise'", [
      JSON.stringify(before?.['resources']),
    ])
    await isWell(t, large)
  })

  await t.test("the gateway's port on the host is taken", async (t) => {
    const port = Number(new URL(platform.gatewayUrl).port)
    await platform.stopControlPlanes()
    await docker('rm', '-f', await gateway())
    const squatter = createServer((socket) => socket.destroy())
      .listen(port, '127.0.0.1')
      .unref()
    await once(squatter, 'listening')
    await platform.startControlPlane()
    await until('it is told', async () => (await regionCondition())?.reason === 'PortTaken')
    t.match(await regionCondition(), {
      status: 'False',
      message: /^cannot start container tenantry-region-local-\S+: a port that it publishes is taken$/,
    })
    squatter.close()
    await once(squatter, 'close')
    await until('the door is open again', async () => (await use(calm).catch(() => '')) === 'served')
    await until('it is told', async () => (await regionCondition())?.status === 'True')
    await isWell(t, victim)
  })

  await t.test('nothing is left when all are gone', async (t) => {
    await Promise.all(
      [calm, victim, ...rest].map(({ id }) =>
        platform.call('DELETE', `/v1/tenants/${id}?purge=true`, undefined, { prefer: 'wait=60' }),
      ),
    )
    const withoutHash = (names: string[]) => names.map((name) => name.replace(/-[0-9a-f]{8}(?=$|-secrets$)/, '')).sort()
    t.same(withoutHash(await everything()), withoutHash(atFirst))
    t.match(await platform.sql('select count(*)::int as count from subnets'), [{ count: 0 }])
    t.match(await platform.sql("select count(*)::int as count from tenants where desired <> 'deleted'"), [{ count: 0 }])
  })
})
