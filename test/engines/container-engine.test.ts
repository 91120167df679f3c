// Commands, logs and readings of a service go only to the container that Tenantry named, whatever labels another container has.
import t from 'tap'
import { createContainerEngine } from '#control-plane/engines/container-engine.ts'
import { onlyHost, type Hosts } from '#control-plane/engines/hosts.ts'
import { EngineError, type EngineErrorCode } from '#control-plane/engines/engine-error.ts'
import { containerName } from '#control-plane/stacks/object-names.ts'
import type { Service, Stack } from '#control-plane/stacks/stack.ts'
import { restartPolicy, type ContainerHost, type ObservedContainer } from '#control-plane/engines/container-host.ts'

const installation = 'i'
const stack = 't_0123456789abcdef0123'
const { signal } = new AbortController()

function container(
  name: string,
  second: number,
  state: ObservedContainer['state'] = 'running',
  service = 'postgres',
): ObservedContainer {
  return {
    id: name,
    name,
    labels: { installation, stack, service },
    state,
    health: 'healthy',
    exitCode: 0,
    startedAt: `2026-01-01T00:00:0${second}Z`,
    createdAt: `2026-01-01T00:00:0${second}Z`,
    restarts: 0,
    outOfMemory: false,
    imageId: 'sha256:1',
    resources: { memoryBytes: 1, cpuMillis: 1, pids: 1 },
    restartPolicy,
    networks: {},
  }
}

/** Creates an engine whose host responds to each call with the name of the container that received it. */
function engineWith(...containers: ObservedContainer[]) {
  const host: Partial<ContainerHost> = {
    observe: () => Promise.resolve({ containers, networks: [], volumes: [], unlabelledVolumes: [] }),
    exec: (name) => Promise.resolve({ code: 0, stdout: name, stderr: '' }),
    async *logs(name) {
      yield { at: '2026-01-01T00:00:00Z', stream: 'stdout', text: name }
    },
    stats: (name) => Promise.resolve({ cpuNanoseconds: 0, memoryBytes: name.length }),
  }
  return createContainerEngine({
    name: 'docker',
    installation,
    hosts: onlyHost(host as ContainerHost),
    sleep: () => Promise.resolve(),
  })
}

const ours = `tenantry-${stack}-postgres-0123abcd`
const newer = `tenantry-${stack}-postgres-89abcdef`
const foreign = [
  'debug',
  `tenantry-${stack}-postgres-debug`,
  `tenantry-${stack}-postgres-0123abcd-secrets-files`,
  `tenantry-${stack}-runtime-0123abcd`,
  `x-tenantry-${stack}-postgres-0123abcd`,
]

t.test('the engine ignores a container with the labels of a service and another name', async (t) => {
  const engine = engineWith(container(ours, 1), ...foreign.map((name) => container(name, 9)))
  t.equal((await engine.exec(stack, 'postgres', ['psql'], { signal })).stdout, ours)
  t.match(await Array.fromAsync(engine.logs(stack, 'postgres', { follow: false, tail: 1 }, signal)), [{ text: ours }])
  t.same(await engine.stats(stack, signal), { postgres: { cpuNanoseconds: 0, memoryBytes: ours.length } })
  const alone = engineWith(...foreign.map((name) => container(name, 9)))
  await t.rejects(alone.exec(stack, 'postgres', ['psql'], { signal }), { code: 'NOT_FOUND' })
  await t.rejects(Array.fromAsync(alone.logs(stack, 'postgres', { follow: false, tail: 1 }, signal)), {
    code: 'NOT_FOUND',
  })
  t.same(await alone.stats(stack, signal), {})
})

t.test(
  'of two containers of a service, logs come from the newest, and commands go to the newest that runs',
  async (t) => {
    const both = engineWith(container(ours, 1), container(newer, 2))
    t.equal((await both.exec(stack, 'postgres', ['psql'], { signal })).stdout, newer)
    const dead = engineWith(container(ours, 1), container(newer, 2, 'exited'))
    t.equal((await dead.exec(stack, 'postgres', ['psql'], { signal })).stdout, ours)
    t.match(await Array.fromAsync(dead.logs(stack, 'postgres', { follow: false, tail: 1 }, signal)), [{ text: newer }])
  },
)

t.test('the engine recreates a container that its host lost, and passes any other start error on', async (t) => {
  const service: Service = {
    name: 'postgres',
    image: 'sha256:1',
    command: [],
    environment: {},
    secrets: {},
    volumes: {},
    scratch: {},
    networks: [],
    published: [],
    isAttached: false,
    health: { command: ['true'], intervalSeconds: 60, timeoutSeconds: 10, retries: 2, startSeconds: 30 },
    resources: { memoryBytes: 1, cpuMillis: 1, pids: 1 },
    user: '1',
    stopSeconds: 1,
    replace: 'stop-first',
  }
  const wanted: Stack = { id: stack, state: 'running', networks: [], volumes: [], services: [service] }
  const failingWith = (code: EngineErrorCode) => {
    const existing = new Map([[containerName(stack, service), container(containerName(stack, service), 1, 'created')]])
    let lost = true
    const host: Partial<ContainerHost> = {
      observe: () =>
        Promise.resolve({ containers: [...existing.values()], networks: [], volumes: [], unlabelledVolumes: [] }),
      createContainer: async ({ name }) => {
        lost = false
        existing.set(name, container(name, 2, 'created'))
      },
      startContainer: async (name) => {
        if (lost) throw new EngineError(code, 'cannot start it')
        existing.set(name, container(name, 2))
      },
      removeContainer: async (name) => void existing.delete(name),
    }
    return {
      existing,
      converge: () =>
        createContainerEngine({
          name: 'docker',
          installation,
          hosts: onlyHost(host as ContainerHost),
          sleep: () => Promise.resolve(),
        }).converge(wanted, signal),
    }
  }
  // A container can't be found either with a network that was removed while its host did not respond.
  for (const code of ['CONTAINER_LOST', 'NOT_FOUND'] as const) {
    const lost = failingWith(code)
    await lost.converge()
    t.match([...lost.existing.values()], [{ state: 'running', startedAt: '2026-01-01T00:00:02Z' }], code)
  }
  const full = failingWith('DISK_FULL')
  await t.rejects(full.converge(), { code: 'DISK_FULL' })
  t.match(
    [...full.existing.values()],
    [{ state: 'created', startedAt: '2026-01-01T00:00:01Z' }],
    'the container is unchanged',
  )
})

t.test('a host that ceases to respond does not prevent the removal of what is elsewhere', async (t) => {
  const labels = { installation, stack }
  const calls: string[] = []
  const network = { id: 'n', name: 'net', labels, subnet: '10.0.0.0/26', internal: true, members: [], addresses: {} }
  const hostOf = (id: string): Partial<ContainerHost> => {
    const remove = async (name: string) => {
      if (id === 'silent') throw new EngineError('HOST_UNREACHABLE', 'The host "silent" does not respond.')
      calls.push(`${id}: ${name}`)
    }
    return { removeContainer: remove, removeVolume: remove }
  }
  const removal = (removeNetwork: () => Promise<void>) => {
    calls.length = 0
    const hosts: Partial<Hosts> = {
      ids: ['one', 'silent'],
      at: (id) => hostOf(id ?? '') as ContainerHost,
      observe: () =>
        Promise.resolve({
          containers: [
            { ...container(ours, 1), host: 'silent' },
            { ...container(newer, 2), host: 'one' },
          ],
          networks: [network],
          volumes: [
            { name: 'a', labels, host: 'silent' },
            { name: 'b', labels, host: 'one' },
          ],
          unlabelledVolumes: [],
        }),
      removeNetwork,
    }
    const sleep = () => Promise.resolve()
    return createContainerEngine({ name: 'swarm', installation, hosts: hosts as Hosts, sleep }).remove(stack, signal)
  }
  await t.rejects(
    removal(async () => void calls.push('the network')),
    { code: 'HOST_UNREACHABLE', message: /"silent" may still have objects/, missedHosts: ['silent'] },
  )
  t.same(calls, [`one: ${newer}`, 'one: b', 'the network'])
  const inUse = () => Promise.reject(new EngineError('ENGINE_FAILED', 'The network is in use.'))
  await t.rejects(removal(inUse), { code: 'HOST_UNREACHABLE' }, 'a container on the silent host may use the network')
  const noManager = () => Promise.reject(new EngineError('ENGINE_UNREACHABLE', 'No manager of the swarm responds.'))
  await t.rejects(removal(noManager), { code: 'ENGINE_UNREACHABLE' }, 'a network that remains is another failure')
})

t.test('services are removed from the hosts that respond, and the others are named', async (t) => {
  const labels = { installation, stack }
  const calls: string[] = []
  const on = (id: string): Partial<ContainerHost> => {
    const call = async (name: string, ...rest: unknown[]) => {
      if (id === 'failing') throw new EngineError('HOST_UNREACHABLE', 'The host "failing" does not respond.')
      calls.push([id, name, ...rest.filter((part) => typeof part === 'string')].join(' '))
    }
    return { removeContainer: call, removeVolume: call, disconnect: call }
  }
  const hosts: Partial<Hosts> = {
    ids: ['one', 'failing', 'silent'],
    at: (id) => on(id ?? '') as ContainerHost,
    observe: () =>
      Promise.resolve({
        containers: ['one', 'failing'].map((host) => ({ ...container(ours, 1), host })),
        networks: [
          {
            ...{ id: 'n', name: 'net', labels, subnet: '10.0.0.0/26', internal: true },
            members: ['one/etcd', 'failing/etcd', 'one/gateway'],
            addresses: {},
          },
        ],
        volumes: ['one', 'failing'].map((host) => ({ name: `tenantry-${stack}-data`, labels, host })),
        unlabelledVolumes: [],
        unreachableHosts: ['silent'],
      }),
  }
  const sleep = () => Promise.resolve()
  const engine = createContainerEngine({ name: 'swarm', installation, hosts: hosts as Hosts, sleep })
  const attachedContainers = ['one', 'failing', 'silent'].map((host) => ({ container: 'etcd', host }))
  const parts = { services: ['postgres'], volumes: ['data'], attachedContainers }
  t.same(await engine.removeServices(stack, parts, signal), ['failing', 'silent'])
  t.same(calls, [`one ${ours}`, 'one net etcd', `one tenantry-${stack}-data`])
})

t.test('the engine removes services with what only they use, and nothing else of their stack', async (t) => {
  const calls: string[] = []
  const call = (what: string) => (name: string) => {
    calls.push(`${what} ${name}`)
    return Promise.resolve()
  }
  const labels = { installation, stack }
  const volume = (name: string, service?: string) => ({
    name: `tenantry-${stack}-${name}`,
    labels: service === undefined ? labels : { ...labels, service },
  })
  const runtime = `tenantry-${stack}-runtime-0123abcd`
  const network = { id: 'n', name: 'net', labels, subnet: '10.0.0.0/28', internal: true }
  const host: Partial<ContainerHost> = {
    observe: () =>
      Promise.resolve({
        containers: [container(ours, 1), container(newer, 2), container(runtime, 1, 'running', 'runtime')],
        networks: [{ ...network, members: ['gateway', 'etcd-1', ours], addresses: {} }],
        volumes: [
          volume('data'),
          volume('data-1'),
          volume('files'),
          volume('x-secrets', 'postgres'),
          volume('y', 'runtime'),
        ],
        unlabelledVolumes: [],
      }),
    removeContainer: call('remove'),
    removeVolume: call('remove'),
    disconnect: (name, member) => call('disconnect')(`${name} ${member}`),
  }
  const engine = createContainerEngine({
    name: 'docker',
    installation,
    hosts: onlyHost(host as ContainerHost),
    sleep: () => Promise.resolve(),
  })
  const parts = {
    services: ['postgres', 'router'],
    volumes: ['data', 'other'],
    attachedContainers: [{ container: 'etcd-1' }, { container: 'etcd-2' }],
  }
  t.same(await engine.removeServices(stack, parts, signal), [])
  t.same(calls, [
    `remove ${ours}`,
    `remove ${newer}`,
    'disconnect net etcd-1',
    `remove tenantry-${stack}-data`,
    `remove tenantry-${stack}-x-secrets`,
  ])
})
