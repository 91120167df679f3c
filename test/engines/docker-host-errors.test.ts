// Failures of an Engine become coded errors with Tenantry's own messages. A real Engine rejects requests, and doubles hang, close
// the connection or are too old.
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { dockerHost, type DockerHost } from '#control-plane/engines/docker/docker-host.ts'
import { engineError } from '#control-plane/engines/docker/errors.ts'
import { withTimeout } from '#control-plane/engines/docker/with-timeout.ts'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import { engineSocket, openScene, randomSubnet, until } from '#test/support/docker.ts'
import { openDouble, openRelay } from '#test/support/engine-double.ts'
import { freePort } from '#test/support/postgres.ts'

const { signal } = new AbortController()
const unusedInstallation = { installation: 'test-unused' }

t.test('each rejection of the Engine has a code and a message', async (t) => {
  const scene = openScene(t)
  const { host, signal } = scene
  const cannot = (what: string, why: string) => `Cannot ${what}: ${why}.`
  const worker = scene.name('worker')

  await t.test('an image does not exist', async (t) => {
    const spec = scene.container('worker', { image: 'tenantry/no-such-image:1' })
    await t.rejects(host.createContainer(spec, signal), {
      code: 'IMAGE_MISSING',
      message: cannot(`create container ${worker}`, 'the image does not exist'),
    })
  })

  await t.test('a port is taken by a container or by another program', async (t) => {
    const open = scene.network('open', { internal: false, hostAddress: true })
    await host.createNetwork(open, signal)
    const listener = createServer().listen(0, '127.0.0.1')
    await once(listener, 'listening')
    t.teardown(() => listener.close())
    const published = (hostPort: number) => ({
      published: [{ containerPort: 80, hostAddress: '127.0.0.1', hostPort }],
      networks: [{ network: open.name, aliases: [] }],
    })
    await t.rejects(scene.run('one', published((listener.address() as AddressInfo).port)), {
      code: 'PORT_TAKEN',
      message: cannot(`start container ${scene.name('one')}`, 'a published port is in use'),
    })
    listener.close()
    await once(listener, 'close')
    const free = published(await freePort())
    await scene.run('two', free)
    await t.rejects(scene.run('three', free), { code: 'PORT_TAKEN' })
  })

  await t.test('a subnet overlaps, or an address is taken', async (t) => {
    const network = scene.network('net')
    await host.createNetwork(network, signal)
    const other = scene.network('other', { subnet: network.subnet })
    await t.rejects(host.createNetwork(other, signal), {
      code: 'SUBNET_TAKEN',
      message: cannot(`create network ${other.name}`, 'the subnet overlaps an existing one'),
    })
    const onNetwork = {
      networks: [{ network: network.name, aliases: [], address: network.subnet.replace('.0/24', '.9') }],
    }
    await scene.run('first', onNetwork)
    await t.rejects(scene.run('second', onNetwork), {
      code: 'ADDRESS_TAKEN',
      message: cannot(`start container ${scene.name('second')}`, 'the address is in use'),
    })
    const small = scene.network('small', { subnet: randomSubnet().replace('.0/24', '.0/30') })
    await host.createNetwork(small, signal)
    const inSmallNetwork = { networks: [{ network: small.name, aliases: [] }] }
    await scene.run('full-1', inSmallNetwork)
    await t.rejects(scene.run('full-2', inSmallNetwork), { code: 'SUBNETS_EXHAUSTED' })
  })

  await t.test('limits exceed the host', async (t) => {
    const few = { memoryBytes: 1024, cpuMillis: 100, pids: 10 }
    await t.rejects(host.createContainer(scene.container('worker', { resources: few }), signal), {
      code: 'LIMITS_BEYOND_HOST',
    })
    const many = { memoryBytes: 64 * 1024 * 1024, cpuMillis: 10_000_000, pids: 10 }
    await t.rejects(host.createContainer(scene.container('worker', { resources: many }), signal), {
      code: 'LIMITS_BEYOND_HOST',
    })
    const full = await scene.run('full', {
      command: ['sh', '-c', 'head -c 40000000 /dev/zero | tail -c 40000000 | (sleep 600; cat)'],
    })
    await until(async () => ((await host.stats(full, signal)).memoryBytes > 35_000_000 ? true : undefined))
    const less = { memoryBytes: 8 * 1024 * 1024, cpuMillis: 500, pids: 32 }
    const changed = await host.updateResources(full, less, signal).catch((error: unknown) => error)
    // cgroup v2 accepts the limit and ends processes that exceed it.
    if (changed !== undefined) t.match(changed, { code: 'LIMITS_BEYOND_HOST' })
    const observed = (await host.observe(scene.owned, signal)).containers.find(({ name }) => name === full)
    t.equal(observed?.resources.memoryBytes, changed === undefined ? less.memoryBytes : 64 * 1024 * 1024)
  })

  await t.test('a container or network does not exist', async (t) => {
    const resources = { memoryBytes: 64 * 1024 * 1024, cpuMillis: 500, pids: 10 }
    await t.rejects(host.startContainer(worker, signal), {
      code: 'NOT_FOUND',
      message: cannot(`start container ${worker}`, 'it does not exist'),
    })
    await t.rejects(host.stopContainer(worker, 0, signal), { code: 'NOT_FOUND' })
    await t.rejects(host.unpauseContainer(worker, signal), { code: 'NOT_FOUND' })
    await t.rejects(host.updateResources(worker, resources, signal), { code: 'NOT_FOUND' })
    await t.rejects(host.connect(scene.name('no-net'), worker, [], undefined, signal), { code: 'NOT_FOUND' })
    await t.rejects(scene.run('lost', { networks: [{ network: scene.name('no-net'), aliases: [] }] }), {
      code: 'NOT_FOUND',
    })
  })

  await t.test('a program does not exist', async (t) => {
    await t.rejects(scene.run('no-program', { command: ['/no/such/program'] }), {
      code: 'ENGINE_FAILED',
      message: /Cannot start container .*: the Docker Engine rejected the request \(\d+\)/,
    })
  })
})

t.test("the Engine's own message stays in the cause", async (t) => {
  const secret = '/var/lib/docker/volumes/x on 10.1.2.3'
  const rejection = (status: number, text: string) =>
    Object.assign(new Error(`(HTTP code ${status}) unexpected - ${text} `), { statusCode: status })
  const cases: [number, string, string][] = [
    [500, `write ${secret}: no space left on device`, 'DISK_FULL'],
    [500, `Error response: write ${secret}: disk quota exceeded`, 'DISK_FULL'],
    [
      500,
      `driver failed programming external connectivity on endpoint: Bind for 10.1.2.3:80 failed: port is already allocated`,
      'PORT_TAKEN',
    ],
    [500, `listen tcp4 10.1.2.3:80: bind: address already in use`, 'PORT_TAKEN'],
    [403, 'invalid pool request: Pool overlaps with other one on this address space', 'SUBNET_TAKEN'],
    [
      403,
      'cannot create network abc (br-abc): conflicts with network def (br-def): networks have overlapping IPv4',
      'SUBNET_TAKEN',
    ],
    [500, 'could not find an available, non-overlapping IPv4 address pool among the defaults', 'SUBNETS_EXHAUSTED'],
    [500, 'all predefined address pools have been fully subnetted', 'SUBNETS_EXHAUSTED'],
    [403, 'failed to set up container networking: Address already in use', 'ADDRESS_TAKEN'],
    [404, 'No such image: tenantry/runtime:1', 'IMAGE_MISSING'],
    [404, 'get tenantry-x: no such volume', 'VOLUME_MISSING'],
    [
      500,
      `error evaluating symlinks from mount source "${secret}": lstat ${secret}: no such file or directory`,
      'VOLUME_MISSING',
    ],
    [404, 'network abc not found', 'NOT_FOUND'],
    [500, 'id already in use', 'CONTAINER_LOST'],
    [500, `something else about ${secret}`, 'ENGINE_FAILED'],
  ]
  for (const [status, text, code] of cases) {
    const error = engineError('start container c', rejection(status, text))
    t.equal(error.code, code, text)
    t.match(error.message, /^Cannot start container c: [^/\d]+( \(\d+\))?\.$/)
    t.ok(String(error.cause).includes(text))
  }
  const known = new EngineError('UNHEALTHY', 'unchanged')
  t.equal(engineError('x', known), known)
})

async function everyCall(host: DockerHost, signal: AbortSignal): Promise<unknown[]> {
  const drain = async (source: AsyncIterable<unknown>) => {
    for await (const item of source) if (item === null) return
  }
  const labels = { installation: 'test-unused', stack: 't_0' }
  const resources = { memoryBytes: 64 * 1024 * 1024, cpuMillis: 100, pids: 10 }
  const health = { command: ['true'], intervalSeconds: 1, timeoutSeconds: 1, retries: 1, startSeconds: 0 }
  const container = {
    name: 'c',
    labels,
    image: 'i',
    command: [],
    environment: {},
    user: '1',
    volumes: [],
    scratch: {},
    networks: [],
    published: [],
    health,
    resources,
    stopSeconds: 1,
  }
  const results = await Promise.allSettled([
    host.info(signal),
    host.observe(unusedInstallation, signal),
    host.image('i', signal),
    host.createNetwork({ name: 'n', labels, subnet: '10.160.0.0/24', internal: true, hostAddress: false }, signal),
    host.createVolume({ name: 'v', labels }, signal),
    host.createContainer(container, signal),
    host.startContainer('c', signal),
    host.unpauseContainer('c', signal),
    host.stopContainer('c', 1, signal),
    host.updateResources('c', resources, signal),
    host.connect('n', 'c', [], undefined, signal),
    host.writeFiles('v', 'i', '1', { a: 'b' }, labels, signal),
    host.removeContainer('c', unusedInstallation, signal),
    host.removeNetwork('n', unusedInstallation, signal),
    host.removeVolume('v', unusedInstallation, signal),
    host.exec('c', ['true'], { signal }),
    drain(host.execStream('c', ['true'], { signal })),
    drain(host.logs('c', { follow: false, tail: 1 }, signal)),
    host.stats('c', signal),
    host.volumeBytes(unusedInstallation, signal),
    drain(host.events(unusedInstallation, signal)),
  ])
  return results.map((result): unknown => (result.status === 'rejected' ? result.reason : 'no failure'))
}

t.test('every call to an Engine that does not exist fails as unreachable', async (t) => {
  const host = dockerHost({ host: 'unix:///tmp/tenantry-no-such-engine.sock' })
  for (const reason of await everyCall(host, signal)) {
    t.match(reason, { code: 'ENGINE_UNREACHABLE', message: /^Cannot .*: the Docker Engine cannot be reached\.$/ })
  }
})

t.test('every call to an Engine that hangs ends when its caller aborts it', async (t) => {
  const host = dockerHost({ host: await openDouble(t, () => undefined) })
  const caller = new AbortController()
  const reason = new Error('aborted')
  const calls = everyCall(host, caller.signal)
  setTimeout(() => caller.abort(reason), 50)
  for (const failure of await calls) t.equal(failure, reason)
  host.close()
})

t.test(
  'every call ends on abort when the Engine hangs after its version, or in the middle of a response',
  async (t) => {
    const caller = new AbortController()
    const address = await openDouble(t, (request, response) => {
      response.writeHead(200, { 'content-length': request.url === '/version' ? '21' : '1000' })
      response.write(request.url === '/version' ? '{"ApiVersion":"1.41"}' : '{"half":')
    })
    const host = dockerHost({ host: address })
    const reason = new Error('enough')
    const calls = everyCall(host, caller.signal)
    setTimeout(() => caller.abort(reason), 100)
    for (const failure of await calls)
      t.ok(failure === reason || (failure instanceof EngineError && failure.code === 'ENGINE_FAILED'), String(failure))
    host.close()
  },
)

t.test('each call has its own timeout', async (t) => {
  await t.rejects(
    withTimeout(20, signal, () => new Promise(() => undefined)),
    { message: 'No response within 0.02 s.' },
  )
  t.match(
    engineError(
      'look',
      await withTimeout(1, signal, () => new Promise(() => undefined)).catch((error: unknown) => error),
    ),
    {
      code: 'ENGINE_UNREACHABLE',
      message: 'Cannot look: the Docker Engine did not respond in time.',
    },
  )
  t.equal(await withTimeout(1000, signal, async () => 'done'), 'done')
})

t.test('an Engine that is too old is rejected with both versions', async (t) => {
  for (const version of ['1.40', '1.9', '0.99']) {
    const host = dockerHost({
      host: await openDouble(t, (_request, response) => response.end(JSON.stringify({ ApiVersion: version }))),
    })
    await t.rejects(host.info(signal), {
      code: 'ENGINE_TOO_OLD',
      message: `The Docker Engine supports API ${version}. Required: 1.41 (Docker 20.10) or later.`,
    })
    host.close()
  }
})

t.test('the host uses the newest API version that both sides support', async (t) => {
  for (const [version, spoken] of [
    ['1.41', '1.41'],
    ['1.47', '1.47'],
    ['1.99', '1.51'],
  ]) {
    const paths: (string | undefined)[] = []
    const address = await openDouble(t, (request, response) => {
      paths.push(request.url)
      response.end(JSON.stringify({ ApiVersion: version, Id: 'sha256:1' }))
    })
    const host = dockerHost({ host: address })
    await host.image('a/b:c', signal)
    await host.image('a/b:c', signal)
    t.same(paths, ['/version', `/v${spoken ?? ''}/images/a%2Fb%3Ac/json`, `/v${spoken ?? ''}/images/a%2Fb%3Ac/json`])
    host.close()
  }
})

t.test('invalid responses are errors', async (t) => {
  const responses = ['', 'null', '[]', '<html>', '{"ApiVersion":7}']
  for (const result of responses) {
    const host = dockerHost({ host: await openDouble(t, (_request, response) => response.end(result)) })
    await t.rejects(host.info(signal), { code: /^ENGINE_/ }, result)
    host.close()
  }
})

t.test('events end when the connection is cut, and a new call receives events again', async (t) => {
  const scene = openScene(t)
  const relay = await openRelay(t, engineSocket())
  const host = dockerHost({ host: relay.address })
  for (const round of ['first', 'second']) {
    const seen: string[] = []
    const caller = new AbortController()
    const following = (async () => {
      for await (const { stack, what } of host.events(scene.owned, caller.signal)) seen.push(`${stack} ${what}`)
    })()
    await until(async () => {
      await scene.host.createVolume({ name: scene.name('probe'), labels: scene.labels }, signal)
      await scene.host.removeVolume(scene.name('probe'), scene.owned, signal)
      return seen.length > 0 ? true : undefined
    })
    t.ok(seen[0]?.startsWith(`${scene.stack} volume `), round)
    relay.cut()
    await t.rejects(following, { code: 'ENGINE_UNREACHABLE' }, round)
    // The first call on a connection that was cut fails.
    await until(() => host.info(signal).catch(() => undefined))
  }
  host.close()
})

t.test('a command or log whose connection is cut fails', async (t) => {
  const scene = openScene(t)
  const relay = await openRelay(t, engineSocket())
  const host = dockerHost({ host: relay.address })
  const worker = await scene.run('worker', { command: ['sh', '-c', 'while :; do echo line; sleep 0.01; done'] })
  for (const source of [
    host.execStream(worker, ['yes'], { signal }),
    host.logs(worker, { follow: true, tail: 1 }, signal),
  ]) {
    const read = async () => {
      let chunks = 0
      for await (const chunk of source as AsyncIterable<unknown>) if (chunk !== null && ++chunks === 3) relay.cut()
    }
    await t.rejects(read(), { code: 'ENGINE_UNREACHABLE' })
  }
  t.match(
    await host.exec(worker, ['echo', 'again'], { signal }),
    { stdout: 'again\n' },
    'the next call opens a new connection',
  )
  host.close()
})
