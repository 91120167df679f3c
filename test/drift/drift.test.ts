// Drift, field by field: it names what was changed, and it is empty just when the plan of convergence is.
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
/** Stopped, it was running once. */
const whole = (of: Stack): Changeable => structuredClone(made(of, made(stack)))

/** By field, to `desired → observed`. */
const reported = (of: Stack, host: Changeable) =>
  Object.fromEntries(
    differences(of, host).map(({ component, field, desired, observed }) => [
      `${component} ${field}`,
      `${String(desired)} → ${String(observed)}`,
    ]),
  )

/** The first container is Postgres', the second the runtime's. */
type Change = [what: string, change: (host: Changeable) => void, told: Record<string, string>]
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
    'ill',
    (host) => Object.assign(container(host), { health: 'unhealthy' }),
    { 'postgres health': 'healthy → unhealthy' },
  ],
  [
    'ended, when it was ill last',
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
    'not to be started again',
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
    { 'network/net guest gateway': 'attached → detached' },
  ],
  [
    'another subnet',
    (host) => Object.assign(host.networks[0] ?? {}, { subnet: '10.9.9.0/28' }),
    { 'network/net subnet': '10.0.1.0/28 → 10.9.9.0/28' },
  ],
  [
    'a way out',
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
    'one that nobody knows',
    (host) =>
      host.containers.push({
        ...container(host),
        name: 'stray',
        labels: { installation: 'stand-in', stack: id, service: 'miner' },
      }),
    { 'container/stray existence': 'absent → present' },
  ],
  [
    'secrets of a specification that has gone',
    (host) =>
      host.volumes.push({ name: 'old-secrets', labels: { installation: 'stand-in', stack: id, service: 'runtime' } }),
    { 'volume/old-secrets existence': 'absent → present' },
  ],
]

t.test('each change by hand is told by its field', (t) => {
  for (const [what, change, wanted] of changes) {
    const host = whole(stack)
    change(host)
    t.same(reported(stack, host), wanted, what)
  }
  const host = whole(stack)
  Object.assign(container(host), { imageId: 'sha256:cc' })
  t.same(reported(stack, host), { 'postgres image': 'sha256:aa → sha256:cc' }, 'another image under the name')
  t.end()
})

t.test('a container of an earlier specification is told as that', (t) => {
  const before = reported(restarted, whole(stack))
  t.match(
    Object.keys(before).filter((field) => field.endsWith('specification')),
    ['postgres specification', 'runtime specification'],
  )
  const both = whole(stack)
  both.containers.push(...whole(restarted).containers)
  t.same(
    Object.keys(reported(restarted, both)).filter((field) => field.startsWith('container/')).length,
    2,
    'beside its successor it is one too many',
  )
  t.end()
})

t.test('of what is stopped only that counts, and that it has what it will need', (t) => {
  t.same(reported(stopped, whole(stopped)), {})
  t.same(reported(stopped, { ...whole(stopped), containers: [] }), {}, 'nothing needs to be there')
  t.same(reported(stopped, whole(stack)), {
    'postgres state': 'stopped → running',
    'runtime state': 'stopped → running',
  })
  const torn = whole(stopped)
  torn.volumes = []
  t.same(reported(stopped, torn), {
    'volume/data existence': 'present → absent',
    'volume/files existence': 'present → absent',
  })
  t.end()
})

t.test('nothing of a secret is in it', (t) => {
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

t.test('there is drift just when there is something to do, whatever has happened together', (t) => {
  const isPlanned = (of: Stack, host: Changeable) => {
    try {
      return planSteps(of, host).length > 0
    } catch {
      // A volume that is gone can't be mended.
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
