// The Docker proxy in front of a real Engine: it passes all that a container host does, and leaves foreign resources
// unchanged.
import { createConnection } from 'node:net'
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import t from 'tap'
import { containerBody } from '#control-plane/engines/docker-container-body.ts'
import type { HostEvent, LogLine } from '#control-plane/engines/container-host.ts'
import { image, openScene, randomSubnet, until } from '#test/support/docker.ts'
import { openProxy, type ProxyScene } from './support/proxy.ts'

async function started(
  scene: ProxyScene,
  suffix: string,
  changes: Parameters<ProxyScene['container']>[1] = {},
): Promise<string> {
  const spec = scene.container(suffix, changes)
  await scene.proxy.createContainer(spec, scene.signal)
  await scene.proxy.startContainer(spec.name, scene.signal)
  return spec.name
}

t.test('A stack is created, observed, changed and removed through the proxy as without it', async (t) => {
  const scene = await openProxy(t)
  const { proxy, host, labels, owned, signal, name } = scene
  const network = scene.network('net')
  await proxy.createNetwork(network, signal)
  await proxy.createNetwork(network, signal)
  await proxy.createVolume({ name: name('data'), labels }, signal)
  await proxy.createVolume({ name: name('secrets'), labels }, signal)
  await proxy.writeFiles(name('secrets'), image, '10001:10001', { password: 'first\n' }, labels, signal)
  await proxy.writeFiles(name('secrets'), image, '10001:10001', { token: 'second\n' }, labels, signal)
  const spec = scene.container('worker', {
    volumes: [
      { volume: name('data'), path: '/var/lib/data', readOnly: false },
      { volume: name('secrets'), path: '/run/secrets', readOnly: true },
    ],
    scratch: { '/tmp': 'size=1m,mode=1777' },
    networks: [{ network: network.name, aliases: ['worker'], address: network.subnet.replace('.0/24', '.7') }],
  })
  await proxy.createContainer(spec, signal)
  await proxy.createContainer(spec, signal)
  await proxy.startContainer(spec.name, signal)
  await proxy.startContainer(spec.name, signal)
  const [seen, there] = [await proxy.observe(owned, signal), await host.observe(owned, signal)]
  t.same(
    [seen.containers, seen.networks],
    [there.containers, there.networks],
    'the proxy returns what the Engine returns',
  )
  t.same(new Set(seen.volumes.map((volume) => volume.name)), new Set(there.volumes.map((volume) => volume.name)))
  t.match((await proxy.observe({ installation: scene.installation }, signal)).containers, [
    { name: spec.name, state: 'running' },
  ])
  const [reported, known] = [await proxy.info(signal), await host.info(signal)]
  // Other programs write to this disk between the two reads, so the free bytes are only similar.
  t.same({ ...reported, disk: undefined }, { ...known, disk: undefined })
  t.ok(
    known.disk && reported.disk && Math.abs(known.disk.freeBytes - reported.disk.freeBytes) < 2 ** 32,
    'the disk is the same',
  )
  t.same(await proxy.image(image, signal), await host.image(image, signal))
  t.equal(await proxy.image('tenantry/no-such-image:at-all', signal), undefined)

  t.equal((await proxy.exec(spec.name, ['cat', '/run/secrets/token'], { signal })).stdout, 'second\n')
  const resources = { memoryBytes: 96 * 2 ** 20, cpuMillis: 250, pids: 24 }
  await proxy.updateResources(spec.name, resources, signal)
  t.match((await host.observe(owned, signal)).containers, [{ resources }])
  t.ok((await proxy.stats(spec.name, signal)).memoryBytes > 0)
  await proxy.exec(spec.name, ['sh', '-c', 'head -c 100000 /dev/zero > /tmp/x'], { signal })
  t.same(await proxy.volumeBytes(owned, signal), await host.volumeBytes(owned, signal))

  await scene.rawDocker.getContainer(spec.name).pause()
  await proxy.unpauseContainer(spec.name, signal)
  await scene.rawDocker.getNetwork(network.name).disconnect({ Container: spec.name, Force: true })
  await proxy.connect(network.name, spec.name, ['worker'], undefined, signal)
  t.match((await host.observe(owned, signal)).containers, [
    { state: 'running', networks: { [network.name]: { aliases: ['worker'] } } },
  ])
  await proxy.stopContainer(spec.name, 0, signal)
  for (const round of ['first', 'again']) {
    await proxy.removeContainer(spec.name, owned, signal)
    await proxy.removeNetwork(network.name, owned, signal)
    for (const volume of ['data', 'secrets']) await proxy.removeVolume(name(volume), owned, signal)
    t.same(
      await host.observe(owned, signal),
      { containers: [], networks: [], volumes: [], unlabelledVolumes: [] },
      round,
    )
  }
  t.same(scene.rejections, [])
})

t.test("A missing resource returns the Engine's own code", async (t) => {
  const { proxy, container, network, name, signal, labels } = await openProxy(t)
  await t.rejects(proxy.createContainer(container('a', { image: `sha256:${'0'.repeat(64)}` }), signal), {
    code: 'IMAGE_MISSING',
  })
  await t.rejects(
    proxy.createContainer(
      container('a', { volumes: [{ volume: name('gone'), path: '/var/lib/x', readOnly: false }] }),
      signal,
    ),
    { code: 'VOLUME_MISSING' },
  )
  await t.rejects(
    proxy.createContainer(container('a', { networks: [{ network: name('gone'), aliases: [] }] }), signal),
    { code: 'NOT_FOUND' },
  )
  await t.rejects(proxy.startContainer(name('gone'), signal), { code: 'NOT_FOUND' })
  await t.rejects(proxy.exec(name('gone'), ['true'], { signal }), { code: 'NOT_FOUND' })
  await t.rejects(proxy.writeFiles(name('gone'), image, '1:1', { a: 'b' }, labels, signal), { code: 'VOLUME_MISSING' })
  const taken = network('one')
  await proxy.createNetwork(taken, signal)
  await t.rejects(proxy.createNetwork({ ...network('two'), subnet: taken.subnet }, signal), { code: 'SUBNET_TAKEN' })
})

t.test('Commands pass in both directions at the pace of the slower side', async (t) => {
  const scene = await openProxy(t)
  const { proxy, signal } = scene
  const worker = await started(scene, 'worker')
  const bytes = randomBytes(8 * 2 ** 20)
  const echoed = await proxy.exec(worker, ['sha256sum'], {
    signal,
    input: (async function* () {
      yield bytes
    })(),
  })
  t.equal(echoed.stdout.slice(0, 64), createHash('sha256').update(bytes).digest('hex'), 'input to its end')
  t.match(await proxy.exec(worker, ['sh', '-c', 'cat; echo oops >&2; exit 3'], { signal, input: 'hello' }), {
    code: 3,
    stdout: 'hello',
    stderr: 'oops\n',
  })
  t.match(
    await proxy.exec(worker, ['true'], { signal, input: 'x'.repeat(100_000) }),
    { code: 0 },
    'a command that reads nothing',
  )
  let length = 0
  for await (const chunk of proxy.execStream(worker, ['head', '-c', String(32 * 2 ** 20), '/dev/zero'], { signal }))
    length += chunk.length
  t.equal(length, 32 * 2 ** 20, 'output to its end')
  const many = await Promise.all(
    Array.from({ length: 16 }, (_, at) => proxy.exec(worker, ['echo', String(at)], { signal })),
  )
  t.same(
    many.map(({ stdout }) => stdout.trim()),
    Array.from({ length: 16 }, (_, at) => String(at)),
  )

  const leaving = new AbortController()
  const endless = proxy.execStream(worker, ['sh', '-c', 'while :; do echo x; sleep 0.05; done'], {
    signal: leaving.signal,
  })
  await t.rejects(
    (async () => {
      for await (const chunk of endless) if (chunk.length > 0) leaving.abort(new Error('enough'))
    })(),
    { message: 'enough' },
  )
})

t.test('Logs are followed, also after silence', async (t) => {
  const scene = await openProxy(t)
  const { proxy, signal } = scene
  const worker = await started(scene, 'worker', {
    command: ['sh', '-c', 'echo first; sleep 1; echo second; sleep 600'],
  })
  const lines: LogLine[] = []
  for await (const line of proxy.logs(worker, { follow: true, tail: 100 }, signal)) {
    lines.push(line)
    if (lines.length === 2) break
  }
  t.same(
    lines.map(({ stream, text }) => `${stream} ${text}`),
    ['stdout first', 'stdout second'],
  )
})

t.test('Events of our own resources pass, and no others', async (t) => {
  const scene = await openProxy(t)
  const foreign = openScene(t)
  const { proxy, installation, signal, name, labels } = scene
  const listening = new AbortController()
  const seen: HostEvent[] = []
  const following = (async () => {
    for await (const event of proxy.events({ installation }, listening.signal)) seen.push(event)
  })()
  following.catch(() => undefined)
  const raw = await scene.sendCall(
    'GET',
    `/v1.41/events?filters=${encodeURIComponent(JSON.stringify({ type: ['daemon'], event: ['reload'] }))}`,
  )
  t.equal(raw.status, 403)
  await until(async () => {
    await proxy.createVolume({ name: name(`probe-${randomInt(1e9)}`), labels }, signal)
    return seen.length > 0 ? true : undefined
  })
  await foreign.run('theirs')
  const worker = await started(scene, 'worker')
  await until(async () => (seen.some(({ what }) => what === 'container start') ? true : undefined))
  await proxy.removeContainer(worker, { installation }, signal)
  await until(async () => (seen.some(({ what }) => what === 'container destroy') ? true : undefined))
  t.same([...new Set(seen.map(({ stack }) => stack))], [scene.stack])
  listening.abort()
})

t.test('Foreign resources are neither read nor changed, whichever call names them', async (t) => {
  const attached = `attached-${randomBytes(4).toString('hex')}`
  const scene = await openProxy(t, { attachedContainers: [attached] })
  const { proxy, rawDocker, sendCall, signal, owned, name } = scene
  const subnet = randomSubnet()
  const [container, network, volume] = [
    await rawDocker.createContainer({
      name: name('plain'),
      Image: image,
      Cmd: ['sleep', '600'],
      Env: ['SECRET=canary'],
    }),
    await rawDocker.createNetwork({ Name: name('plain'), IPAM: { Driver: 'default', Config: [{ Subnet: subnet }] } }),
    await rawDocker.createVolume({ Name: name('plain'), Labels: { secret: 'canary' } }),
  ]
  const asAttached = await rawDocker.createContainer({
    name: attached,
    Image: image,
    Cmd: ['sleep', '600'],
    Env: ['SECRET=canary'],
    HostConfig: { NetworkMode: network.id },
  })
  t.teardown(async () => {
    await container.remove({ force: true })
    await asAttached.remove({ force: true })
    await network.remove()
    await volume.remove()
  })
  await container.start()
  await asAttached.start()
  const own = scene.network('net')
  await proxy.createNetwork(own, signal)

  await t.rejects(proxy.createContainer(scene.container('plain'), signal), { code: 'FOREIGN_OBJECT' })
  await t.rejects(proxy.createNetwork(scene.network('plain'), signal), { code: 'FOREIGN_OBJECT' })
  await t.rejects(proxy.createVolume({ name: name('plain'), labels: scene.labels }, signal), { code: 'FOREIGN_OBJECT' })
  await t.rejects(proxy.removeContainer(name('plain'), owned, signal), { code: 'FOREIGN_OBJECT' })
  await t.rejects(proxy.removeNetwork(name('plain'), owned, signal), { code: 'FOREIGN_OBJECT' })
  await t.rejects(proxy.removeVolume(name('plain'), owned, signal), { code: 'FOREIGN_OBJECT' })

  for (const [method, path, body] of [
    ['POST', `/containers/${container.id}/start`],
    ['POST', `/containers/${container.id}/stop?t=0`],
    ['DELETE', `/containers/${container.id}?force=true`],
    [
      'POST',
      `/containers/${container.id}/exec`,
      { AttachStdin: false, AttachStdout: true, AttachStderr: true, Tty: false, Cmd: ['env'] },
    ],
    ['GET', `/containers/${container.id}/logs?stdout=true`],
    ['GET', `/containers/${container.id}/stats?stream=false`],
    ['GET', `/containers/${container.id}/archive?path=%2Ftenantry%2Ffiles`],
    ['PUT', `/containers/${container.id}/archive?path=%2Ftenantry`],
    [
      'POST',
      `/containers/${container.id}/update`,
      { Memory: 2 ** 28, MemorySwap: 2 ** 28, NanoCpus: 1e9, PidsLimit: 9 },
    ],
    ['POST', `/networks/${own.name}/connect`, { Container: container.id, EndpointConfig: { Aliases: ['x'] } }],
    ['POST', `/networks/${network.id}/connect`, { Container: attached, EndpointConfig: { Aliases: ['x'] } }],
    ['POST', `/networks/${network.id}/disconnect`, { Container: attached, Force: true }],
    ['DELETE', `/networks/${network.id}`],
    ['DELETE', `/volumes/${name('plain')}`],
    ['GET', `/containers/json?all=true&filters=${encodeURIComponent(JSON.stringify({ network: [network.id] }))}`],
    ['DELETE', `/containers/${attached}?force=true`],
    ['POST', `/containers/${attached}/stop`],
  ] as const) {
    t.equal((await sendCall(method, `/v1.41${path}`, body)).status, 403, `${method} ${path}`)
  }
  const exec = await container.exec({ Cmd: ['sleep', '1'] })
  t.equal((await sendCall('GET', `/v1.41/exec/${exec.id}/json`)).status, 403, 'a command in a foreign container')
  const byVolume = scene.container('worker', {
    volumes: [{ volume: name('plain'), path: '/var/lib/x', readOnly: true }],
  })
  await t.rejects(proxy.createContainer(byVolume, signal))
  await t.rejects(
    proxy.createContainer(scene.container('worker', { networks: [{ network: name('plain'), aliases: [] }] }), signal),
  )

  for (const path of [
    `/containers/${container.id}/json`,
    `/containers/${attached}/json`,
    `/networks/${network.id}`,
    `/volumes/${name('plain')}`,
    `/networks?filters=${encodeURIComponent(JSON.stringify({ name: [name('plain')] }))}`,
  ]) {
    const { status, text } = await sendCall('GET', `/v1.41${path}`)
    t.equal(status, 200)
    t.notOk(/canary|Env|Mounts|Subnet|Mountpoint/.test(text), `${path} returns that it exists, and no more`)
  }
  await proxy.connect(own.name, attached, ['gateway'], undefined, signal)
  t.ok(own.name in (await asAttached.inspect()).NetworkSettings.Networks, 'an attached container is connected')
  t.match((await proxy.observe(owned, signal)).networks, [{ members: [attached] }])
  await proxy.removeNetwork(own.name, owned, signal)
  t.same(
    Object.keys((await asAttached.inspect()).NetworkSettings.Networks),
    [name('plain')],
    'the attached container is disconnected again',
  )
  await proxy.createNetwork(own, signal)
  const strayed = await started(scene, 'strayed', { networks: [{ network: own.name, aliases: [] }] })
  await network.connect({ Container: strayed })
  t.equal(
    (await sendCall('POST', `/v1.41/networks/${network.id}/disconnect`, { Container: strayed, Force: true })).status,
    200,
    'our own container leaves a foreign network',
  )
  t.notOk(name('plain') in (await rawDocker.getContainer(strayed).inspect()).NetworkSettings.Networks)
  await network.inspect()
  t.equal((await container.inspect()).State.Running, true)
  t.match((await volume.inspect()).Labels, { secret: 'canary' })
})

t.test('An escape from a container is rejected, and nothing is created', async (t) => {
  const scene = await openProxy(t)
  const { sendCall, host, owned, name, proxy, signal, labels } = scene
  const body = JSON.parse(JSON.stringify(containerBody(scene.container('worker')))) as { HostConfig: object }
  const escapes: object[] = [
    { Privileged: true },
    { Binds: ['/:/host'] },
    { Mounts: [{ Type: 'bind', Source: '/', Target: '/var/lib/x', ReadOnly: false }] },
    { PidMode: 'host' },
    { NetworkMode: 'host' },
    { CapAdd: ['SYS_ADMIN'] },
    { SecurityOpt: ['seccomp=unconfined'] },
    { Devices: [{ PathOnHost: '/dev/kmsg', PathInContainer: '/dev/kmsg', CgroupPermissions: 'rwm' }] },
    { privileged: true },
  ]
  for (const escape of escapes) {
    const { status, text } = await sendCall('POST', `/v1.41/containers/create?name=${name('worker')}`, {
      ...body,
      HostConfig: { ...body.HostConfig, ...escape },
    })
    t.equal(status, 403, JSON.stringify(escape))
    t.match(JSON.parse(text), { message: /^Tenantry's Docker proxy rejected the call: / })
  }
  await t.rejects(
    proxy.createContainer(scene.container('worker', { image: 'tenantry/gateway:latest' }), signal),
    { code: 'ENGINE_FAILED' },
    'an image that may not run',
  )
  await t.rejects(proxy.createContainer(scene.container('worker', { user: '0:0' }), signal))
  await t.rejects(proxy.createNetwork(scene.network('net', { subnet: '192.168.200.0/24' }), signal))
  await t.rejects(proxy.createNetwork(scene.network('net', { internal: false }), signal))
  await t.rejects(proxy.createVolume({ name: name('x'), labels: { ...labels, installation: 'another' } }, signal))
  t.same(await host.observe(owned, signal), { containers: [], networks: [], volumes: [], unlabelledVolumes: [] })
  t.ok(scene.rejections.length >= escapes.length + 5, 'the log contains the rejections')
})

t.test('No second request hides behind a first one', async (t) => {
  const scene = await openProxy(t)
  const worker = await started(scene, 'worker')
  const { rawDocker } = scene
  const exec = await rawDocker.getContainer(worker).exec({ Cmd: ['cat'], AttachStdin: true, AttachStdout: true })
  const text = JSON.stringify({ Detach: false, Tty: false })
  const proxy = createConnection(scene.socketPath)
  const hidden = `DELETE /v1.41/containers/${worker}?force=true HTTP/1.1\r\nHost: docker\r\n\r\n`
  const start = `POST /v1.41/exec/${exec.id}/start HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n`
  proxy.write(`${start}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}${hidden}`)
  let seen = ''
  proxy.setEncoding('latin1').on('data', (chunk: string) => (seen += chunk))
  await until(async () => (seen.includes('DELETE') ? true : undefined))
  t.match(seen, /^HTTP\/1.1 101 /, 'the bytes are input of the command')
  proxy.destroy()
  t.equal((await rawDocker.getContainer(worker).inspect()).State.Running, true)

  for (const head of [
    `${start}Transfer-Encoding: chunked\r\n\r\n`,
    'GET /v1.41/info HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n',
    'GET /v1.41/info HTTP/1.1\r\nHost: docker\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    `CONNECT docker:80 HTTP/1.1\r\nHost: docker\r\n\r\n`,
  ]) {
    const socket = createConnection(scene.socketPath)
    socket.end(head)
    let response = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => (response += chunk))
    await once(socket, 'close')
    t.notMatch(response, /^HTTP\/1.1 [12]/, head.slice(0, head.indexOf('\r\n')))
  }
})

t.test('An Engine that cannot be reached is reported as unreachable', async (t) => {
  const { proxy, rejections } = await openProxy(t, {}, '/no/such/engine.sock')
  await t.rejects(proxy.info(AbortSignal.timeout(10_000)), { code: 'ENGINE_UNREACHABLE' })
  await t.rejects(proxy.exec('x', ['true'], { signal: AbortSignal.timeout(10_000) }), { code: 'ENGINE_UNREACHABLE' })
  t.same(new Set(rejections), new Set(['A call was interrupted.']))
})
