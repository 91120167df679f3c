// On a real Engine, repeated requests create a container, network or volume once. The host adopts Tenantry's own objects, rejects
// foreign ones, and removes what it owns.
import t from 'tap'
import type { ObservedContainer } from '#control-plane/engines/container-host.ts'
import { image, openScene, randomSubnet, until, type Scene } from '#test/support/docker.ts'

async function observeContainer({ host, owned, signal }: Scene, name: string): Promise<ObservedContainer> {
  const found = (await host.observe(owned, signal)).containers.find((container) => container.name === name)
  if (found === undefined) throw new Error(`${name} does not exist`)
  return found
}

function foreignError(kind: string, name: string): { code: string; message: string } {
  return { code: 'FOREIGN_OBJECT', message: `A ${kind} named "${name}" exists that does not belong to Tenantry.` }
}

t.test('the host reports the facts of its Engine', async (t) => {
  const { host, rawDocker, signal } = openScene(t)
  const info = await host.info(signal)
  const own = (await rawDocker.info()) as { Name: string; MemTotal: number; NCPU: number; CgroupVersion: string }
  t.match(info, { name: own.Name, memoryBytes: own.MemTotal, cpus: own.NCPU })
  t.match(info.apiVersion, /^1\.\d+$/)
  t.equal(
    info.warnings.some((warning) => warning.startsWith('cgroup v1')),
    own.CgroupVersion === '1',
  )
})

t.test('an existing image has an ID, and a missing image is undefined', async (t) => {
  const { host, rawDocker, signal } = openScene(t)
  t.same(await host.image(image, signal), { id: (await rawDocker.getImage(image).inspect()).Id, component: undefined })
  t.equal(await host.image('tenantry/no-such-image:at-all', signal), undefined)
})

t.test('a stack is created, observed as requested, and removed', async (t) => {
  const scene = openScene(t)
  const { host, labels, owned, signal, name } = scene
  const network = scene.network('net')
  const address = network.subnet.replace('.0/24', '.7')
  await host.createNetwork(network, signal)
  await host.createVolume({ name: name('data'), labels }, signal)
  const spec = scene.container('worker', {
    volumes: [{ volume: name('data'), path: '/var/lib/data', readOnly: false }],
    networks: [{ network: network.name, aliases: ['worker', 'other'], address }],
  })
  await host.createContainer(spec, signal)

  const observed = await host.observe(owned, signal)
  const imageId = (await host.image(image, signal))?.id
  t.match(observed.containers, [
    {
      name: spec.name,
      labels,
      state: 'created',
      health: /none|starting/,
      exitCode: 0,
      startedAt: undefined,
      restarts: 0,
      outOfMemory: false,
      imageId,
      resources: spec.resources,
      networks: { [network.name]: { aliases: ['worker', 'other'], address } },
    },
  ])
  t.match(observed.networks, [
    { name: network.name, labels, subnet: network.subnet, internal: true, members: [spec.name] },
  ])
  t.same(observed.volumes, [{ name: name('data'), labels }])

  await host.startContainer(spec.name, signal)
  await host.startContainer(spec.name, signal)
  const running = await observeContainer(scene, spec.name)
  t.match(running, { state: 'running', networks: { [network.name]: { aliases: ['worker', 'other'], address } } })
  t.ok(Date.parse(running.startedAt ?? '') > 0)

  await host.stopContainer(spec.name, 0, signal)
  await host.stopContainer(spec.name, 0, signal)
  const stopped = await observeContainer(scene, spec.name)
  t.match(stopped, { state: 'exited', exitCode: 137, networks: { [network.name]: { address } } })
  t.same((await host.observe(owned, signal)).networks[0]?.members, [spec.name], 'a stopped container is still a member')

  for (const round of ['first', 'again']) {
    await host.removeContainer(spec.name, owned, signal)
    await host.removeNetwork(network.name, owned, signal)
    await host.removeVolume(name('data'), owned, signal)
    t.same(
      await host.observe(owned, signal),
      { containers: [], networks: [], volumes: [], unlabelledVolumes: [] },
      round,
    )
  }
})

t.test('the host observes only objects of its installation, of one stack or of all', async (t) => {
  const scene = openScene(t)
  const { host, labels, installation, signal, name } = scene
  await host.createVolume({ name: name('mine'), labels }, signal)
  await host.createVolume({ name: name('other-stack'), labels: { installation, stack: 'region-x' } }, signal)
  const foreignScene = openScene(t)
  await foreignScene.host.createVolume({ name: foreignScene.name('theirs'), labels: foreignScene.labels }, signal)
  const names = async (owned: object) =>
    (await host.observe({ installation, ...owned }, signal)).volumes.map((volume) => volume.name).sort()
  t.same(await names({}), [name('mine'), name('other-stack')].sort())
  t.same(await names({ stack: 'region-x' }), [name('other-stack')])
})

t.test('a repeated creation changes nothing', async (t) => {
  const scene = openScene(t)
  const { host, labels, owned, signal, name } = scene
  const network = scene.network('net')
  const spec = scene.container('worker', { networks: [{ network: network.name, aliases: ['worker'] }] })
  const create = async () => {
    await host.createNetwork(network, signal)
    await host.createVolume({ name: name('data'), labels }, signal)
    await host.createContainer(spec, signal)
    return host.observe(owned, signal)
  }
  const first = await create()
  t.same(await create(), first)
  await host.startContainer(spec.name, signal)
  const running = await host.observe(owned, signal)
  t.same(await create(), running, 'a running container is adopted unchanged')
})

t.test('concurrent creations create one object, and concurrent removals succeed', async (t) => {
  const scene = openScene(t)
  const { host, labels, owned, signal, name } = scene
  const other = openScene(t).host
  const network = scene.network('net')
  const spec = scene.container('worker', { networks: [{ network: network.name, aliases: ['worker'] }] })
  const hosts = [host, other, host, other]
  await Promise.all(hosts.map((one) => one.createNetwork(network, signal)))
  await Promise.all(hosts.map((one) => one.createVolume({ name: name('data'), labels }, signal)))
  await Promise.all(hosts.map((one) => one.createContainer(spec, signal)))
  const found = await host.observe(owned, signal)
  t.match([found.networks.length, found.volumes.length, found.containers.length], [1, 1, 1])
  await Promise.all(hosts.map((one) => one.removeContainer(spec.name, owned, signal)))
  await Promise.all(hosts.map((one) => one.removeNetwork(network.name, owned, signal)))
  await Promise.all(hosts.map((one) => one.removeVolume(name('data'), owned, signal)))
  t.same(await host.observe(owned, signal), { containers: [], networks: [], volumes: [], unlabelledVolumes: [] })
})

t.test('of two networks with one name, the older stays', async (t) => {
  const scene = openScene(t)
  const { host, rawDocker, owned, signal } = scene
  const network = scene.network('net')
  // Another control plane creates a network at the same time, which the Engine accepts because the name is not checked.
  const createConcurrently = async (): Promise<string> => {
    const created = await rawDocker.createNetwork({
      Name: network.name,
      CheckDuplicate: false,
      IPAM: { Driver: 'default', Config: [{ Subnet: randomSubnet() }] },
      Labels: { 'tenantry.installation': scene.installation, 'tenantry.stack': scene.stack },
    })
    return created.id
  }
  const oldest = await createConcurrently()
  await host.createNetwork(network, signal)
  t.same(
    (await host.observe(owned, signal)).networks.map(({ id }) => id),
    [oldest],
  )
  await host.removeNetwork(network.name, owned, signal)
  t.same((await host.observe(owned, signal)).networks, [])
})

t.test('foreign objects are neither adopted nor removed', async (t) => {
  const scene = openScene(t)
  const { host, rawDocker, labels, owned, signal, name, installation } = scene
  const { installation: another } = openScene(t)
  const theirs = { 'tenantry.installation': another, 'tenantry.stack': scene.stack }
  // One object has another program's label, the other has another installation's. For volumes without labels, see
  // docker-unlabelled-volumes.test.ts.
  for (const [kind, Labels] of [
    ['plain', { owner: 'another-program' }],
    ['theirs', theirs],
  ] as const) {
    const container = await rawDocker.createContainer({ name: name(`c-${kind}`), Image: image, Cmd: ['true'], Labels })
    const network = await rawDocker.createNetwork({
      Name: name(`n-${kind}`),
      Labels,
      IPAM: { Driver: 'default', Config: [{ Subnet: randomSubnet() }] },
    })
    const volume = await rawDocker.createVolume({ Name: name(`v-${kind}`), Labels })
    t.teardown(async () => {
      await container.remove().catch(() => undefined)
      await network.remove().catch(() => undefined)
      await volume.remove().catch(() => undefined)
    })
    await t.rejects(
      host.createContainer(scene.container(`c-${kind}`), signal),
      foreignError('container', name(`c-${kind}`)),
    )
    await t.rejects(host.createNetwork(scene.network(`n-${kind}`), signal), foreignError('network', name(`n-${kind}`)))
    await t.rejects(
      host.createVolume({ name: name(`v-${kind}`), labels }, signal),
      foreignError('volume', name(`v-${kind}`)),
    )
    await t.rejects(
      host.writeFiles(name(`v-${kind}`), image, '10001', { a: 'b' }, labels, signal),
      foreignError('volume', name(`v-${kind}`)),
    )
    await t.rejects(
      host.createContainer(
        scene.container('user', { volumes: [{ volume: name(`v-${kind}`), path: '/data', readOnly: false }] }),
        signal,
      ),
      foreignError('volume', name(`v-${kind}`)),
    )
    await t.rejects(
      host.removeContainer(name(`c-${kind}`), owned, signal),
      foreignError('container', name(`c-${kind}`)),
    )
    await t.rejects(host.removeNetwork(name(`n-${kind}`), owned, signal), foreignError('network', name(`n-${kind}`)))
    await t.rejects(host.removeVolume(name(`v-${kind}`), owned, signal), foreignError('volume', name(`v-${kind}`)))
    await Promise.all([container.inspect(), network.inspect(), volume.inspect()])
  }
  await host.createVolume({ name: name('mine'), labels }, signal)
  await t.rejects(
    host.removeVolume(name('mine'), { installation, stack: 'region-x' }, signal),
    foreignError('volume', name('mine')),
    "another stack's volume is not removed",
  )
  t.same(
    (await host.observe(owned, signal)).volumes.map((volume) => volume.name),
    [name('mine')],
  )
})

t.test('a container on two networks has its address on both, also when its creation was interrupted', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const [one, two] = [scene.network('one'), scene.network('two')]
  await host.createNetwork(one, signal)
  await host.createNetwork(two, signal)
  const address = two.subnet.replace('.0/24', '.77')
  const spec = scene.container('worker', {
    networks: [
      { network: one.name, aliases: ['first'] },
      { network: two.name, aliases: ['second'], address },
    ],
  })
  await host.createContainer({ ...spec, networks: spec.networks.slice(0, 1) }, signal)
  await host.createContainer(spec, signal)
  await host.startContainer(spec.name, signal)
  t.match((await observeContainer(scene, spec.name)).networks, {
    [one.name]: { aliases: ['first'] },
    [two.name]: { aliases: ['second'], address },
  })
})

t.test('connecting is repeatable, and repairs a wrong alias or address', async (t) => {
  const scene = openScene(t)
  const { host, rawDocker, signal } = scene
  const network = scene.network('net')
  await host.createNetwork(network, signal)
  const home = scene.network('home')
  await host.createNetwork(home, signal)
  const worker = await scene.run('worker', { networks: [{ network: home.name, aliases: [] }] })
  const address = network.subnet.replace('.0/24', '.9')
  for (const round of ['first', 'again']) {
    await host.connect(network.name, worker, ['attached'], address, signal)
    t.match(
      (await observeContainer(scene, worker)).networks,
      { [network.name]: { aliases: ['attached'], address } },
      round,
    )
  }
  await rawDocker.getNetwork(network.name).disconnect({ Container: worker, Force: true })
  t.same((await observeContainer(scene, worker)).networks[network.name], undefined)
  await rawDocker.getNetwork(network.name).connect({ Container: worker })
  await host.connect(network.name, worker, ['attached'], address, signal)
  t.match(
    (await observeContainer(scene, worker)).networks,
    { [network.name]: { aliases: ['attached'], address } },
    'after an operator connected it differently',
  )
})

t.test('a stopped container can be connected again to a network that was removed and recreated', async (t) => {
  const scene = openScene(t)
  const { host, rawDocker, owned, signal } = scene
  const network = scene.network('net')
  await host.createNetwork(network, signal)
  const worker = await scene.run('worker', { networks: [{ network: network.name, aliases: ['worker'] }] })
  await host.stopContainer(worker, 0, signal)
  await rawDocker.getNetwork(network.name).remove()
  await host.createNetwork(network, signal)
  t.same(
    (await observeContainer(scene, worker)).networks,
    {},
    'the container is not on the new network of the same name',
  )
  t.same((await host.observe(owned, signal)).networks[0]?.members, [])
  await host.connect(network.name, worker, ['worker'], undefined, signal)
  await host.startContainer(worker, signal)
  t.match((await observeContainer(scene, worker)).networks, { [network.name]: { aliases: ['worker'] } })
})

t.test('a network is removed with attached containers, running or stopped; the containers stay', async (t) => {
  const scene = openScene(t)
  const { host, owned, signal } = scene
  const [network, home] = [scene.network('net'), scene.network('home')]
  await host.createNetwork(network, signal)
  await host.createNetwork(home, signal)
  const attachedContainers = await Promise.all(
    ['running', 'stopped'].map((suffix) => scene.run(suffix, { networks: [{ network: home.name, aliases: [] }] })),
  )
  for (const attached of attachedContainers) await host.connect(network.name, attached, ['gateway'], undefined, signal)
  await host.stopContainer(scene.name('stopped'), 0, signal)
  await host.removeNetwork(network.name, owned, signal)
  t.same(
    (await host.observe(owned, signal)).networks.map(({ name }) => name),
    [home.name],
  )
  await host.startContainer(scene.name('stopped'), signal)
  for (const attached of attachedContainers)
    t.match(await observeContainer(scene, attached), {
      state: 'running',
      networks: { [network.name]: undefined, [home.name]: {} },
    })
})

t.test('limits of a running container change', async (t) => {
  const scene = openScene(t)
  const { host, rawDocker, signal } = scene
  const worker = await scene.run('worker')
  for (const resources of [
    { memoryBytes: 256 * 1024 * 1024, cpuMillis: 1500, pids: 64 },
    { memoryBytes: 32 * 1024 * 1024, cpuMillis: 250, pids: 16 },
  ]) {
    await host.updateResources(worker, resources, signal)
    t.match(await observeContainer(scene, worker), { state: 'running', resources })
    const { HostConfig } = await rawDocker.getContainer(worker).inspect()
    t.equal(HostConfig.MemorySwap, resources.memoryBytes, 'no swap')
  }
})

t.test('a paused container continues; unpausing a running one is no error', async (t) => {
  const scene = openScene(t)
  const { host, rawDocker, signal } = scene
  const worker = await scene.run('worker')
  await rawDocker.getContainer(worker).pause()
  t.match(await observeContainer(scene, worker), { state: 'paused' })
  for (const round of ['first', 'again']) {
    await host.unpauseContainer(worker, signal)
    t.match(await observeContainer(scene, worker), { state: 'running' }, round)
  }
})

t.test('the exit code, restarts and out-of-memory state of a container are observed', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const failed = await scene.run('failed', { command: ['sh', '-c', 'exit 7'] })
  const restarting = await until(async () => {
    const found = await observeContainer(scene, failed)
    return found.restarts > 0 ? found : undefined
  })
  t.equal(restarting.exitCode, 7)
  const greedy = await scene.run('greedy', {
    command: ['tail', '/dev/zero'],
    resources: { memoryBytes: 16 * 1024 * 1024, cpuMillis: 1000, pids: 16 },
  })
  const outOfMemory = await until(async () => {
    const found = await observeContainer(scene, greedy)
    return found.outOfMemory ? found : undefined
  })
  t.ok(outOfMemory.outOfMemory)
  await host.removeContainer(failed, scene.owned, signal)
  await host.removeContainer(greedy, scene.owned, signal)
})

t.test('health is the result of the health check', async (t) => {
  const scene = openScene(t)
  const check = (command: string[]) => ({ command, intervalSeconds: 1, timeoutSeconds: 5, retries: 1, startSeconds: 0 })
  const healthy = await scene.run('healthy', { health: check(['true']) })
  const unhealthy = await scene.run('unhealthy', { health: check(['false']) })
  const healthOf = (name: string) =>
    until(async () => {
      const { health } = await observeContainer(scene, name)
      return health === 'starting' || health === 'none' ? undefined : health
    })
  t.same([await healthOf(healthy), await healthOf(unhealthy)], ['healthy', 'unhealthy'])
})
