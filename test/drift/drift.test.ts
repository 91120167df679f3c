// Drift, field by field: it names each change, and is empty exactly when the convergence plan is empty.
import * as fc from 'fast-check'
import t from 'tap'
import { differences } from '#control-plane/engines/drift.ts'
import { planSteps } from '#control-plane/engines/convergence-plan.ts'
import type { ObservedContainer } from '#control-plane/engines/container-host.ts'
import { stackFor } from '#control-plane/stacks/stack-for.ts'
import type { Stack } from '#control-plane/stacks/stack.ts'
import { effort, seed } from '#test/support/effort.ts'
import { made, type Changeable } from '#test/support/control-plane/fake-engine.ts'

const id = 't_0123456789abcdef0123'
const size = { memoryBytes: 2 ** 30, cpuMillis: 1000, pids: 256 }
const input = {
  id,
  isolation: 'database-per-tenant' as const,
  running: true,
  hasHome: true,
  resources: { postgres: size, runtime: size },
  restarts: 0,
  images: { postgres: 'sha256:aa', runtime: 'sha256:bb' },
  subnet: '10.0.1.0/28',
}
const surroundings = { gatewayContainer: 'the-gateway', internalToken: 'the-token-of-this-installation-0123' }
const stack = stackFor(input, surroundings)
const stopped = stackFor({ ...input, running: false }, surroundings)
const restarted = stackFor({ ...input, restarts: 1 }, surroundings)
/** Returns the containers of a stack that was running once. */
const whole = (of: Stack): Changeable => structuredClone(made(of, made(stack)))

/** Returns the differences by field, as `desired → observed`. */
const driftOf = (of: Stack, host: Changeable) =>
  Object.fromEntries(
    differences(of, host).map(({ component, field, desired, observed }) => [
      `${component} ${field}`,
      `${String(desired)} → ${String(observed)}`,
    ]),
  )

/** The first container is that of Postgres, the second that of the runtime. */
type Change = [what: string, change: (host: Changeable) => void, wanted: Record<string, string>]
const container = (host: Changeable, at = 0): ObservedContainer => {
  const found = host.containers[at % Math.max(host.containers.length, 1)]
  if (found === undefined) throw new Error('no container')
  return found
}
const net = `tenantry-${id}-net`

const changes: Change[] = [
  ['nothing', () => undefined, {}],
  ['killed', (host) => Object.assign(container(host), { state: 'exited' }), { 'postgres state': 'running → exited' }],
  ['paused', (host) => Object.assign(container(host, 1), { state: 'paused' }), { 'runtime state': 'running → paused' }],
  [
    'unhealthy',
    (host) => Object.assign(container(host), { health: 'unhealthy' }),
    { 'postgres health': 'healthy → unhealthy' },
  ],
  [
    'ended while unhealthy',
    (host) => Object.assign(container(host), { state: 'exited', health: 'unhealthy' }),
    { 'postgres state': 'running → exited' },
  ],
  ['removed', (host) => host.containers.shift(), { 'postgres existence': 'present → absent' }],
  [
    'memory',
    (host) => Object.assign(container(host), { resources: { ...size, memoryBytes: 5 } }),
    { 'postgres memory_bytes': '1073741824 → 5' },
  ],
  [
    'cpu',
    (host) => Object.assign(container(host), { resources: { ...size, cpuMillis: 5 } }),
    { 'postgres cpu_millis': '1000 → 5' },
  ],
  [
    'pids',
    (host) => Object.assign(container(host), { resources: { ...size, pids: 5 } }),
    { 'postgres pids': '256 → 5' },
  ],
  [
    'without a restart policy',
    (host) => Object.assign(container(host), { restartPolicy: 'no' }),
    { 'postgres restart_policy': 'unless-stopped → no' },
  ],
  [
    'detached',
    (host) => Object.assign(container(host), { networks: {} }),
    { 'postgres network net': 'attached → detached' },
  ],
  [
    'without its alias',
    (host) => Object.assign(container(host), { networks: { [net]: { aliases: ['other'], address: '' } } }),
    { [`postgres alias ${id}-postgres`]: 'present → absent' },
  ],
  [
    'without the gateway',
    (host) => Object.assign(host.networks[0] ?? {}, { members: [] }),
    { 'network/net attached container gateway': 'attached → detached' },
  ],
  [
    'another subnet',
    (host) => Object.assign(host.networks[0] ?? {}, { subnet: '10.9.9.0/28' }),
    { 'network/net subnet': '10.0.1.0/28 → 10.9.9.0/28' },
  ],
  [
    'not internal',
    (host) => Object.assign(host.networks[0] ?? {}, { internal: false }),
    { 'network/net internal': 'true → false' },
  ],
  ['no network', (host) => host.networks.pop(), { 'network/net existence': 'present → absent' }],
  [
    'no volume',
    (host) => (host.volumes = host.volumes.filter(({ name }) => !name.endsWith('-data'))),
    { 'volume/data existence': 'present → absent' },
  ],
  [
    'an unknown container',
    (host) =>
      host.containers.push({
        ...container(host),
        name: 'stray',
        labels: { installation: 'stand-in', stack: id, service: 'miner' },
      }),
    { 'container/stray existence': 'absent → present' },
  ],
  [
    'secrets of an earlier specification',
    (host) =>
      host.volumes.push({ name: 'old-secrets', labels: { installation: 'stand-in', stack: id, service: 'runtime' } }),
    { 'volume/old-secrets existence': 'absent → present' },
  ],
]

t.test('Each manual change is reported as drift by its field', (t) => {
  for (const [what, change, wanted] of changes) {
    const host = whole(stack)
    change(host)
    t.same(driftOf(stack, host), wanted, what)
  }
  const host = whole(stack)
  Object.assign(container(host), { imageId: 'sha256:cc' })
  t.same(driftOf(stack, host), { 'postgres image': 'sha256:aa → sha256:cc' }, 'another image under the same name')
  t.end()
})

t.test('A container of an earlier specification is reported as drift by that', (t) => {
  const before = driftOf(restarted, whole(stack))
  t.match(
    Object.keys(before).filter((field) => field.endsWith('specification')),
    ['postgres specification', 'runtime specification'],
  )
  const both = whole(stack)
  both.containers.push(...whole(restarted).containers)
  t.same(
    Object.keys(driftOf(restarted, both)).filter((field) => field.startsWith('container/')).length,
    2,
    'next to its successor it is surplus',
  )
  t.end()
})

t.test('A stopped stack needs its volumes, but no containers', (t) => {
  t.same(driftOf(stopped, whole(stopped)), {})
  t.same(driftOf(stopped, { ...whole(stopped), containers: [] }), {}, 'no container is needed')
  t.same(driftOf(stopped, whole(stack)), {
    'postgres state': 'stopped → running',
    'runtime state': 'stopped → running',
  })
  const torn = whole(stopped)
  torn.volumes = []
  t.same(driftOf(stopped, torn), {
    'volume/data existence': 'present → absent',
    'volume/files existence': 'present → absent',
  })
  t.end()
})

t.test('Drift contains no secret', (t) => {
  const text =
    JSON.stringify(differences(stack, { containers: [], networks: [], volumes: [], unlabelledVolumes: [] })) +
    JSON.stringify(differences(restarted, whole(stack)))
  for (const service of stack.services) {
    for (const secret of Object.values(service.secrets))
      t.notOk(text.includes(secret.reveal()), `${service.name}'s secret`)
  }
  t.end()
})

const numRuns = effort({ small: 2_000, full: 50_000 })

t.test('There is drift exactly when the plan has steps, after any combination of changes', (t) => {
  const isPlanned = (of: Stack, host: Changeable) => {
    try {
      return planSteps(of, host).length > 0
    } catch {
      // A missing volume cannot be repaired.
      return true
    }
  }
  const property = fc.property(
    fc.constantFrom(stack, stopped, restarted),
    fc.constantFrom(stack, stopped, restarted),
    fc.subarray(changes),
    (wanted, existing, happened) => {
      const host = whole(existing)
      for (const [, change] of happened) if (host.containers.length > 0) change(host)
      return differences(wanted, host).length > 0 === isPlanned(wanted, host)
    },
  )
  fc.assert(property, { numRuns, seed })
  t.pass(`${numRuns} hosts, seed ${seed}`)
  t.end()
})
