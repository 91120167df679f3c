// The plan for a stack on several hosts: hosts that do not respond, services that have moved, and what remains of them.
import t from 'tap'
import type { ObservedContainer, ObservedHost } from '#control-plane/engines/container-host.ts'
import { planSteps } from '#control-plane/engines/convergence-plan.ts'
import { memberName } from '#control-plane/engines/member-name.ts'
import { differences } from '#control-plane/engines/drift.ts'
import type { ClusterState } from '#control-plane/clusters/cluster-state.ts'
import { planCluster, servicesToChange } from '#control-plane/clusters/plan-cluster.ts'
import { hasFormer } from '#control-plane/engines/moved-services.ts'
import { containerName, networkName, secretsVolumeName, volumeName } from '#control-plane/stacks/object-names.ts'
import { placed, type Placement } from '#control-plane/stacks/placed.ts'
import type { Service, Stack } from '#control-plane/stacks/stack.ts'
import { stackFor } from '#control-plane/stacks/stack-for.ts'
import { container } from '#test/support/control-plane/made-stack.ts'
import { clusterInput, surroundings } from './several-hosts.ts'

const id = clusterInput.id
const first: Placement = {
  'postgres-1': 'a',
  'postgres-2': 'b',
  'postgres-3': 'c',
  'router-1': 'a',
  'router-2': 'b',
  'runtime-1': 'b',
  'runtime-2': 'c',
}
const bare = stackFor(clusterInput, surroundings)
const stack = placed(bare, first)
const second: Placement = { ...first, 'postgres-3': 'a', 'runtime-2': 'a' }
const evacuated = placed(bare, second)
const isOn =
  (host: string) =>
  (one: ObservedContainer): boolean =>
    one.host === host
const serviceOf = (of: Stack, name: string): Service => {
  const service = of.services.find((one) => one.name === name)
  if (service === undefined) throw new Error(name)
  return service
}

/** Everything that a stack specifies, on its hosts. */
function made(of: Stack): ObservedHost {
  const labels = { installation: 'i', stack: id }
  return {
    containers: of.services.map((service): ObservedContainer => ({
      ...container(of, service),
      ...(service.host === undefined ? {} : { host: service.host }),
    })),
    networks: of.networks.map(({ name, subnet, internal, attachedContainers }) => ({
      id: name,
      name: networkName(id, name),
      labels,
      subnet,
      internal,
      members: attachedContainers.map(memberName),
      addresses: {},
    })),
    volumes: [
      ...of.volumes.map(({ name, host = '' }) => ({ name: volumeName(id, name), labels, host })),
      ...of.services
        .filter(({ secrets }) => Object.keys(secrets).length > 0)
        .map((service) => ({
          name: secretsVolumeName(id, service),
          labels: { ...labels, service: service.name },
          host: service.host ?? '',
        })),
    ],
    unlabelledVolumes: [],
    unreachableHosts: [],
  }
}

/** The observation without what is on a host that does not respond. */
function without(host: string, all: ObservedHost): ObservedHost {
  return {
    ...all,
    containers: all.containers.filter((one) => one.host !== host),
    volumes: all.volumes.filter((one) => one.host !== host),
    unreachableHosts: [host],
  }
}

/** The state of a cluster whose primary is the first member. @param candidates the members that follow it */
function clusterWith(candidates: readonly string[]): ClusterState {
  const member = (name: string, role: 'primary' | 'replica') => ({
    name,
    role,
    state: 'running',
    lagBytes: 0,
    timeline: 1,
    isSynchronous: role === 'replica',
  })
  return {
    primary: 'postgres-1',
    hasQuorum: true,
    notReplicating: [],
    candidates,
    reports: [],
    members: [member('postgres-1', 'primary'), ...candidates.map((name) => member(name, 'replica'))],
  }
}

/** Takes the steps that stop or remove containers. @returns the containers that end in each round */
function stopped(of: Stack, observed: ObservedHost): string[][] {
  let host = observed
  const rounds: string[][] = []
  for (let steps = planSteps(of, host); steps.length > 0 && rounds.length < 9; steps = planSteps(of, host)) {
    const ended = (kind: 'stop-container' | 'remove-container', { name }: ObservedContainer) =>
      steps.some((step) => step.do === kind && step.container === name)
    const present = host.containers
    rounds.push(
      present
        .filter((one) => ended('stop-container', one) || ended('remove-container', one))
        .map((one) => `${one.labels.service ?? ''} ${one.host ?? ''}`),
    )
    const containers = present
      .filter((one) => !ended('remove-container', one))
      .map((one): ObservedContainer => (ended('stop-container', one) ? { ...one, state: 'exited' } : one))
    host = { ...host, containers }
  }
  return rounds
}

t.test('The members of a cluster stop together, after the services that need them', (t) => {
  const halted = stackFor({ ...clusterInput, running: false }, surroundings)
  const others = [['runtime-1 b'], ['router-2 b'], ['router-1 a']]
  t.same(stopped(placed(halted, first), made(stack)), [
    ['runtime-2 c'],
    ...others,
    ['postgres-1 a', 'postgres-2 b', 'postgres-3 c'],
  ])
  const after = made(evacuated)
  const returned = { ...after, containers: [...after.containers, ...made(stack).containers.filter(isOn('c'))] }
  t.same(
    stopped(placed(halted, second), returned),
    [['runtime-2 a', 'runtime-2 c'], ...others, ['postgres-1 a', 'postgres-2 b', 'postgres-3 a', 'postgres-3 c']],
    'also those on a host that has returned',
  )
  t.same(
    stopped(placed(halted, second), without('a', returned)).at(-1),
    ['postgres-2 b', 'postgres-3 c'],
    'while the host that replaced it does not respond',
  )
  t.end()
})

t.test('A stack on its hosts needs no step', (t) => {
  t.same(planSteps(stack, made(stack)), [])
  t.same(differences(stack, made(stack)), [])
  t.same(servicesToChange(stack, made(stack)), [])
  t.end()
})

t.test('Nothing is planned for a host that does not respond', (t) => {
  const observed = without('c', made(stack))
  t.same(planSteps(stack, observed), [])
  t.same(differences(stack, observed), [])
  const dedicated = placed({ ...bare, volumes: bare.volumes.map((volume) => ({ ...volume, mustExist: true })) }, first)
  t.same(planSteps(dedicated, without('c', made(dedicated))), [], 'its volumes are not taken for lost')
  t.throws(() => planSteps(dedicated, { ...without('c', made(dedicated)), unreachableHosts: [] }), {
    code: 'VOLUME_MISSING',
  })
  t.end()
})

t.test('A volume of another host is not that of the service', (t) => {
  const all = made(stack)
  const moved = { ...all, volumes: all.volumes.map((volume) => ({ ...volume, host: 'z' })) }
  t.ok(planSteps(stack, moved).some((step) => step.do === 'create-volume' && step.volume === 'data-1'))
  t.end()
})

t.test('The services of a lost host are created on others', (t) => {
  const observed = without('c', made(stack))
  const volumes = planSteps(evacuated, observed)
  t.same(
    volumes.map((step) => ('volume' in step ? step.volume : step.do)).sort(),
    ['data-3', 'runtime-2'],
    'their volumes first',
  )
  t.end()
})

t.test('What a returned host still runs is removed, while all that replaced it continues', (t) => {
  const [before, after] = [made(stack), made(evacuated)]
  const returned = {
    ...after,
    containers: [...after.containers, ...before.containers.filter(({ host }) => host === 'c')],
    volumes: [...after.volumes, ...before.volumes.filter(({ host }) => host === 'c')],
  }
  t.same(servicesToChange(evacuated, returned), [], 'no service is changed')
  t.same(planSteps(evacuated, returned), [], 'while it is not known that others have the data')
  t.ok(hasFormer(evacuated, returned))
  const held = new Set<string>()
  const steps = planSteps(evacuated, returned, held, true)
  t.same(
    steps.map((step) => (step.do === 'remove-container' ? step.container : step.do)).sort(),
    ['postgres-3', 'runtime-2'].map((name) => containerName(id, serviceOf(stack, name))),
  )
  const then = planSteps(evacuated, { ...returned, containers: after.containers }, held, true)
  t.same(
    then.map((step) => (step.do === 'remove-volume' ? `${step.volume} ${step.host ?? ''}`.trim() : step.do)).sort(),
    [
      ...['data-3', 'runtime-2'].map((name) => `${volumeName(id, name)} c`),
      ...['postgres-3', 'runtime-2'].map((name) => secretsVolumeName(id, serviceOf(stack, name))),
    ].sort(),
    'then their volumes, and no other',
  )
  t.end()
})

t.test('A service keeps its former container and volume until it can be changed', (t) => {
  const observed = made(stack)
  t.same(servicesToChange(evacuated, observed).sort(), ['postgres-3', 'runtime-2'])
  const candidates = ['postgres-2', 'postgres-3']
  const state = clusterWith(candidates)
  const step = planCluster(evacuated, { host: observed, state, readyRouters: new Set(['router-1', 'router-2']) })
  t.match(step, { do: 'converge' })
  const held = step.do === 'converge' ? step.held : new Set<string>()
  t.same([...held], ['runtime-2'], 'the member alone')
  t.same(
    planSteps(evacuated, observed, held).map((one) => one.do),
    ['create-volume'],
  )
  const waiting = planCluster(evacuated, {
    host: observed,
    state: { ...state, candidates: ['postgres-3'] },
    readyRouters: new Set(['router-1', 'router-2']),
  })
  t.match(waiting, { do: 'wait' }, 'not while the other replica is away')
  t.end()
})

/** The observation in which these members of the network of the stack have one address. */
function sharing(observed: ObservedHost, ...members: readonly { container: string; host?: string }[]): ObservedHost {
  const shared = Object.fromEntries(members.map((one) => [memberName(one), '10.0.0.2']))
  return {
    ...observed,
    networks: observed.networks.map((network) => ({ ...network, addresses: { 'a/other': '10.0.0.3', ...shared } })),
  }
}

/** The container of a service, among the members of its network. */
const memberOf = (name: string) => {
  const service = serviceOf(stack, name)
  return { container: containerName(id, service), ...(service.host === undefined ? {} : { host: service.host }) }
}

t.test('Of two containers with one address, one that is attached gets another', (t) => {
  const [network] = stack.networks
  const [attached] = network?.attachedContainers ?? []
  if (network === undefined || attached === undefined) throw new Error('no attached container')
  const observed = sharing(made(stack), attached, memberOf('postgres-3'))
  t.same(planSteps(stack, observed), [{ do: 'detach-container', network: network.name, attached }])
  const members = observed.networks.flatMap((one) => one.members).filter((name) => name !== memberName(attached))
  const networks = observed.networks.map((one) => ({ ...one, members, addresses: {} }))
  t.same(planSteps(stack, { ...observed, networks }), [{ do: 'attach-container', network: network.name, attached }])
  t.end()
})

t.test('A service that shares its address leaves the network, and is then connected to it again', (t) => {
  const [network] = stack.networks
  if (network === undefined) throw new Error('no network')
  const name = networkName(id, network.name)
  const member = memberOf('runtime-1')
  const observed = sharing(made(stack), member, { container: 'another', host: 'a' })
  t.same(servicesToChange(stack, observed), [], 'it does not run for others')
  const step = planCluster(stack, { host: observed, state: undefined, readyRouters: new Set() })
  t.same(step, { do: 'converge', held: new Set() }, 'so it waits for nothing')
  t.same(planSteps(stack, observed), [{ do: 'disconnect-container', container: member.container, network: name }])
  const containers = observed.containers.map((one) => (one.name === member.container ? { ...one, networks: {} } : one))
  t.same(planSteps(stack, { ...made(stack), containers }), [
    { do: 'connect-container', container: member.container, service: 'runtime-1', network: network.name },
  ])
  t.same(planSteps(stack, sharing(made(stack), member)), [], 'an address of its own is none')
  t.end()
})

t.test('A container on a former host leaves the address of a present one', (t) => {
  const [before, after] = [made(stack), made(evacuated)]
  const former = before.containers.find((one) => one.labels.service === 'runtime-2')
  if (former === undefined) throw new Error('no container')
  const observed = sharing(
    { ...after, containers: [...after.containers, former] },
    { container: containerName(id, serviceOf(evacuated, 'postgres-3')), host: 'a' },
    { container: former.name, host: 'c' },
  )
  const network = observed.networks[0]?.name
  t.same(planSteps(evacuated, observed), [{ do: 'disconnect-container', container: former.name, network }])
  t.end()
})

t.test('Of attached containers with one address, one leaves at a time', (t) => {
  const [network] = stack.networks
  const [one, other] = network?.attachedContainers ?? []
  if (network === undefined || one === undefined || other === undefined) throw new Error('no attached containers')
  const steps = planSteps(stack, sharing(made(stack), one, other))
  t.match(steps, { length: 1, 0: { do: 'detach-container' } })
  t.end()
})

t.test('Members of a cluster leave an address one by one, the primary last', (t) => {
  const members = ['postgres-1', 'postgres-2', 'postgres-3'].map(memberOf)
  const observed = sharing(made(stack), ...members)
  const state = { ...clusterWith(['postgres-1', 'postgres-3']), primary: 'postgres-2' }
  const step = planCluster(stack, { host: observed, state, readyRouters: new Set() })
  t.same(step, { do: 'converge', held: new Set(['postgres-2']) })
  t.end()
})

t.test('Of two services with one address, one stays', (t) => {
  const observed = sharing(made(stack), memberOf('postgres-1'), memberOf('postgres-2'))
  const { container } = memberOf('postgres-2')
  const network = observed.networks[0]?.name
  t.same(planSteps(stack, observed), [{ do: 'disconnect-container', container, network }])
  t.end()
})
