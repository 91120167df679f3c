// Containers, networks and volumes on a real Engine: made once however often they are asked for, adopted when they are
// ours, refused when they are not, and gone when they should be.
import t from 'tap'
import type { ObservedContainer } from '#control-plane/engines/container-host.ts'
import { image, openScene, randomSubnet, until, type Scene } from '#test/support/docker.ts'

async function poll({ host, owned, signal }: Scene, name: string): Promise<ObservedContainer> {
  const found = (await host.observe(owned, signal)).containers.find((container) => container.name === name)
  if (found === undefined) throw new Error(`${name} is not there`)
  return found
}

function foreign(kind: string, name: string): { code: string; message: string } {
  return { code: 'FOREIGN_OBJECT', message: `a ${kind} named ${name} exists that is not Tenantry's` }
}

t.test('an Engine tells what it is', async (t) => {
  const { host, unguarded, signal } = openScene(t)
  const info = await host.info(signal)
  const own = (await unguarded.info()) as { Name: string; MemTotal: number; NCPU: number; CgroupVersion: string }
  t.match(info, { name: own.Name, memoryBytes: own.MemTotal, cpus: own.NCPU })
  t.match(info.apiVersion, /^1\.\d+$/)
  t.equal(
    info.warnings.some((warning) => warning.startsWith('cgroup v1')),
    own.CgroupVersion === '1',
  )
})

t.test('an image that is there has an id, one that is not has none', async (t) => {
  const { host, unguarded, signal } = openScene(t)
  t.same(await host.image(image, signal), { id: (await unguarded.getImage(image).inspect()).Id, component: undefined })
  t.equal(await host.image('tenantry/no-such-image:at-all', signal), undefined)
})

t.test('a stack is made, found as it was asked for, and removed', async (t) => {
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

  const made = await host.observe(owned, signal)
  const imageId = (await host.image(image, signal))?.id
  t.match(made.containers, [
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
  t.match(made.networks, [{ name: network.name, labels, subnet: network.subnet, internal: true, members: [spec.name] }])
  t.same(made.volumes, [{ name: name('data'), labels }])

  await host.startContainer(spec.name, signal)
  await host.startContainer(spec.name, signal)
  const running = await poll(scene, spec.name)
  t.match(running, { state: 'running', networks: { [network.name]: { aliases: ['worker', 'other'], address } } })
  t.ok(Date.parse(running.startedAt ?? '') > 0)

  await host.stopContainer(spec.name, 0, signal)
  await host.stopContainer(spec.name, 0, signal)
  const stopped = await poll(scene, spec.name)
  t.match(stopped, { state: 'exited', exitCode: 137, networks: { [network.name]: { address } } })
  t.same((await host.observe(owned, signal)).networks[0]?.members, [spec.name], 'a stopped member is a member')

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

t.test('only what has our labels is seen, of one stack or of all', async (t) => {
  const scene = openScene(t)
  const { host, labels, installation, signal, name } = scene
  await host.createVolume({ name: name('mine'), labels }, signal)
  await host.createVolume({ name: name('other-stack'), labels: { installation, stack: 'region-x' } }, signal)
  const outsider = openScene(t)
  await outsider.host.createVolume({ name: outsider.name('theirs'), labels: outsider.labels }, signal)
  const names = async (owned: object) =>
    (await host.observe({ installation, ...owned }, signal)).volumes.map((volume) => volume.name).sort()
  t.same(await names({}), [name('mine'), name('other-stack')].sort())
  t.same(await names({ stack: 'region-x' }), [name('other-stack')])
})

t.test('making a thing again changes nothing', async (t) => {
  const scene = openScene(t)
  const { host, labels, owned, signal, name } = scene
  const network = scene.network('net')
  const spec = scene.container('worker', { networks: [{ network: network.name, aliases: ['worker'] }] })
  const make = async () => {
    await host.createNetwork(network, signal)
    await host.createVolume({ name: name('data'), labels }, signal)
    await host.createContainer(spec, signal)
    return host.observe(owned, signal)
  }
  const first = await make()
  t.same(await make(), first)
  await host.startContainer(spec.name, signal)
  const running = await host.observe(owned, signal)
  t.same(await make(), running, 'a running container is adopted as it is')
})

t.test('many at once make one', async (t) => {
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

t.test('of two networks of one name, the older is kept', async (t) => {
  const scene = openScene(t)
  const { host, unguarded, owned, signal } = scene
  const network = scene.network('net')
  // Another control plane's request, which the Engine takes when the name is not checked.
  const raced = async (): Promise<string> => {
    const made = await unguarded.createNetwork({
      Name: network.name,
      CheckDuplicate: false,
      IPAM: { Driver: 'default', Config: [{ Subnet: randomSubnet() }] },
      Labels: { 'tenantry.installation': scene.installation, 'tenantry.stack': scene.stack },
    })
    return made.id
  }
  const oldest = await raced()
  await host.createNetwork(network, signal)
  t.same(
    (await host.observe(owned, signal)).networks.map(({ id }) => id),
    [oldest],
  )
  await host.removeNetwork(network.name, owned, signal)
  t.same((await host.observe(owned, signal)).networks, [])
})

t.test('what is not ours is neither adopted nor removed', async (t) => {
  const scene = openScene(t)
  const { host, unguarded, labels, owned, signal, name, installation } = scene
  const { installation: another } = openScene(t)
  const theirs = { 'tenantry.installation': another, 'tenantry.stack': scene.stack }
  // With a label of somebody's, and with another installation's; volumes without any: docker-unlabelled-volumes.test.ts.
  for (const [kind, Labels] of [
    ['plain', { owner: 'somebody' }],
    ['theirs', theirs],
  ] as const) {
    const container = await unguarded.createContainer({ name: name(`c-${kind}`), Image: image, Cmd: ['true'], Labels })
    const network = await unguarded.createNetwork({
      Name: name(`n-${kind}`),
      Labels,
      IPAM: { Driver: 'default', Config: [{ Subnet: randomSubnet() }] },
    })
    const volume = await unguarded.createVolume({ Name: name(`v-${kind}`), Labels })
    t.teardown(async () => {
      await container.remove().catch(() => undefined)
      await network.remove().catch(() => undefined)
      await volume.remove().catch(() => undefined)
    })
    await t.rejects(host.createContainer(scene.container(`c-${kind}`), signal), foreign('container', name(`c-${kind}`)))
    await t.rejects(host.createNetwork(scene.network(`n-${kind}`), signal), foreign('network', name(`n-${kind}`)))
    await t.rejects(
      host.createVolume({ name: name(`v-${kind}`), labels }, signal),
      foreign('volume', name(`v-${kind}`)),
    )
    await t.rejects(
      host.writeFiles(name(`v-${kind}`), image, '10001', { a: 'b' }, labels, signal),
      foreign('volume', name(`v-${kind}`)),
    )
    await t.rejects(
      host.createContainer(
        scene.container('user', { volumes: [{ volume: name(`v-${kind}`), path: '/data', readOnly: false }] }),
        signal,
      ),
      foreign('volume', name(`v-${kind}`)),
    )
    await t.rejects(host.removeContainer(name(`c-${kind}`), owned, signal), foreign('container', name(`c-${kind}`)))
    await t.rejects(host.removeNetwork(name(`n-${kind}`), owned, signal), foreign('network', name(`n-${kind}`)))
    await t.rejects(host.removeVolume(name(`v-${kind}`), owned, signal), foreign('volume', name(`v-${kind}`)))
    await Promise.all([container.inspect(), network.inspect(), volume.inspect()])
  }
  await host.createVolume({ name: name('mine'), labels }, signal)
  await t.rejects(
    host.removeVolume(name('mine'), { installation, stack: 'region-x' }, signal),
    foreign('volume', name('mine')),
    "nor what is another stack's",
  )
  t.same(
    (await host.observe(owned, signal)).volumes.map((volume) => volume.name),
    [name('mine')],
  )
})

t.test('a container on two networks has its place on both, also when its making was interrupted', async (t) => {
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
  t.match((await poll(scene, spec.name)).networks, {
    [one.name]: { aliases: ['first'] },
    [two.name]: { aliases: ['second'], address },
  })
})

t.test('connecting is repeatable, and mends a place that is not as wanted', async (t) => {
  const scene = openScene(t)
  const { host, unguarded, signal } = scene
  const network = scene.network('net')
  await host.createNetwork(network, signal)
  const home = scene.network('home')
  await host.createNetwork(home, signal)
  const worker = await scene.run('worker', { networks: [{ network: home.name, aliases: [] }] })
  const address = network.subnet.replace('.0/24', '.9')
  for (const round of ['first', 'again']) {
    await host.connect(network.name, worker, ['guest'], address, signal)
    t.match((await poll(scene, worker)).networks, { [network.name]: { aliases: ['guest'], address } }, round)
  }
  await unguarded.getNetwork(network.name).disconnect({ Container: worker, Force: true })
  t.same((await poll(scene, worker)).networks[network.name], undefined)
  await unguarded.getNetwork(network.name).connect({ Container: worker })
  await host.connect(network.name, worker, ['guest'], address, signal)
  t.match(
    (await poll(scene, worker)).networks,
    { [network.name]: { aliases: ['guest'], address } },
    'after hands had connected it otherwise',
  )
})

t.test('a stopped container finds a network again that was removed by hand', async (t) => {
  const scene = openScene(t)
  const { host, unguarded, owned, signal } = scene
  const network = scene.network('net')
  await host.createNetwork(network, signal)
  const worker = await scene.run('worker', { networks: [{ network: network.name, aliases: ['worker'] }] })
  await host.stopContainer(worker, 0, signal)
  await unguarded.getNetwork(network.name).remove()
  await host.createNetwork(network, signal)
  t.same((await poll(scene, worker)).networks, {}, 'it is not on the new one, whatever its name')
  t.same((await host.observe(owned, signal)).networks[0]?.members, [])
  await host.connect(network.name, worker, ['worker'], undefined, signal)
  await host.startContainer(worker, signal)
  t.match((await poll(scene, worker)).networks, { [network.name]: { aliases: ['worker'] } })
})

t.test('a network goes with its guests on it, running and stopped; the guests stay', async (t) => {
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
    t.match(await poll(scene, attached), { state: 'running', networks: { [network.name]: undefined, [home.name]: {} } })
})

t.test('limits change while it runs', async (t) => {
  const scene = openScene(t)
  const { host, unguarded, signal } = scene
  const worker = await scene.run('worker')
  for (const resources of [
    { memoryBytes: 256 * 1024 * 1024, cpuMillis: 1500, pids: 64 },
    { memoryBytes: 32 * 1024 * 1024, cpuMillis: 250, pids: 16 },
  ]) {
    await host.updateResources(worker, resources, signal)
    t.match(await poll(scene, worker), { state: 'running', resources })
    const { HostConfig } = await unguarded.getContainer(worker).inspect()
    t.equal(HostConfig.MemorySwap, resources.memoryBytes, 'no swap')
  }
})

t.test('a paused container goes on; one that is not paused is no error', async (t) => {
  const scene = openScene(t)
  const { host, unguarded, signal } = scene
  const worker = await scene.run('worker')
  await unguarded.getContainer(worker).pause()
  t.match(await poll(scene, worker), { state: 'paused' })
  for (const round of ['first', 'again']) {
    await host.unpauseContainer(worker, signal)
    t.match(await poll(scene, worker), { state: 'running' }, round)
  }
})

t.test('how a container ended is seen', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const failed = await scene.run('failed', { command: ['sh', '-c', 'exit 7'] })
  const restarting = await until(async () => {
    const found = await poll(scene, failed)
    return found.restarts > 0 ? found : undefined
  })
  t.equal(restarting.exitCode, 7)
  const greedy = await scene.run('greedy', {
    command: ['tail', '/dev/zero'],
    resources: { memoryBytes: 16 * 1024 * 1024, cpuMillis: 1000, pids: 16 },
  })
  const outOfMemory = await until(async () => {
    const found = await poll(scene, greedy)
    return found.outOfMemory ? found : undefined
  })
  t.ok(outOfMemory.outOfMemory)
  await host.removeContainer(failed, scene.owned, signal)
  await host.removeContainer(greedy, scene.owned, signal)
})

t.test('health is what its check says', async (t) => {
  const scene = openScene(t)
  const check = (command: string[]) => ({ command, intervalSeconds: 1, timeoutSeconds: 5, retries: 1, startSeconds: 0 })
  const well = await scene.run('well', { health: check(['true']) })
  const sick = await scene.run('sick', { health: check(['false']) })
  const healthOf = (name: string) =>
    until(async () => {
      const { health } = await poll(scene, name)
      return health === 'starting' || health === 'none' ? undefined : health
    })
  t.same([await healthOf(well), await healthOf(sick)], ['healthy', 'unhealthy'])
})
