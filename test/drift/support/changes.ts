// A tenant's stack, and changes of its objects from outside.
import type { ObservedContainer } from '#control-plane/engines/container-host.ts'
import { stackFor } from '#control-plane/stacks/stack-for.ts'
import type { Stack } from '#control-plane/stacks/stack.ts'
import { made, type Changeable } from '#test/support/control-plane/made-stack.ts'

export const id = 't_0123456789abcdef0123'
export const size = { memoryBytes: 2 ** 30, cpuMillis: 1000, pids: 256 }
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
const surroundings = { gateways: [{ container: 'the-gateway' }], internalToken: 'the-token-of-this-installation-0123' }
/** A tenant's stack that runs, the same stopped, and restarted. */
export const stack = stackFor(input, surroundings)
export const stopped = stackFor({ ...input, running: false }, surroundings)
export const restarted = stackFor({ ...input, restarts: 1 }, surroundings)
/** Returns the containers of a stack that was running once. */
export const whole = (of: Stack): Changeable => structuredClone(made(of, made(stack)))

/** A change by hand. The first container is that of Postgres, the second that of the runtime. */
export type Change = [what: string, change: (host: Changeable) => void, wanted: Record<string, string>]
/** Returns a container of the host. */
export const container = (host: Changeable, at = 0): ObservedContainer => {
  const found = host.containers[at % Math.max(host.containers.length, 1)]
  if (found === undefined) throw new Error('no container')
  return found
}
const net = `tenantry-${id}-net`

/** Changes from outside, with the fields that differ after them. */
export const changes: Change[] = [
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
