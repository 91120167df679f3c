// The comparison of recorded placements with the objects of hosts finds each kind of difference.
import t from 'tap'
import { armedState } from '#test/support/armed-control-planes.ts'
import { differences, parseContainers, type HostObjects, type PlacedService } from './placed-services.ts'

const id = `t_${'a'.repeat(20)}`
const gone = `t_${'b'.repeat(20)}`
const prefix = `tenantry-${id}`
const member = (number: number, host: string): PlacedService => ({
  tenantId: id,
  isolation: 'cluster-per-tenant',
  service: `postgres-${number}`,
  host,
})
const placed = [member(1, 'host-1'), member(2, 'host-2')]
const running = (number: number) => `${prefix}-postgres-${number}-0123abcd|${id}|postgres-${number}|running`
const hostOf = (number: number): HostObjects => ({
  host: `host-${number}`,
  containers: parseContainers(
    `${running(number)}\ntenantry-region-local-01234567-etcd-1-89abcdef|region-local-01234567|etcd-1|running\n`,
  ),
  volumes: [
    `${prefix}-data-${number}`,
    `${prefix}-postgres-${number}-0123abcd-secrets`,
    'tenantry-region-local-01234567-etcd-1',
    'control',
  ],
  networks: ['bridge', `${prefix}-net`, 'tenantry-region-local-01234567-net'],
})
const whole = [hostOf(1), hostOf(2)] as const

t.test('Services that run once on their hosts differ in nothing', async (t) => {
  t.same(differences(placed, whole), [])
  t.same(differences(placed, [hostOf(1)]), [], 'a host that is away is not checked')
})

t.test('A service without a running container is found', async (t) => {
  t.same(differences(placed, [{ ...hostOf(1), containers: [] }]), [
    `host-1: The service postgres-1 of ${id} should be one running container, and is: .`,
    `host-1: The volume ${prefix}-postgres-1-0123abcd-secrets remains.`,
  ])
  const containers = parseContainers(running(1).replace('running', 'exited'))
  t.same(differences(placed, [{ ...hostOf(1), containers }]), [
    `host-1: The service postgres-1 of ${id} should be one running container, and is: ${prefix}-postgres-1-0123abcd (exited).`,
  ])
})

t.test('Two containers of a service are found', async (t) => {
  const twice = parseContainers(`${running(1)}\n${running(1).replace('0123abcd', '89abcdef')}`)
  t.match(differences(placed, [{ ...hostOf(1), containers: twice }]), [/should be one running container/])
})

t.test('What remains on a former host is found', async (t) => {
  const moved = [member(1, 'host-2'), member(2, 'host-2')]
  t.same(differences(moved, [hostOf(1)]), [
    `host-1: The container ${prefix}-postgres-1-0123abcd (running) is not placed here.`,
    `host-1: The volume ${prefix}-data-1 remains.`,
  ])
  const files = { ...hostOf(1), containers: [], volumes: [`${prefix}-files`] }
  t.same(differences([member(1, 'host-2')], [files]), [`host-1: The volume ${prefix}-files remains.`])
})

t.test('A missing volume is found', async (t) => {
  t.same(differences(placed, [{ ...hostOf(1), volumes: [] }]), [`host-1: The volume ${prefix}-data-1 is missing.`])
})

t.test('What remains of a deleted tenant is found', async (t) => {
  const of = (text: string) => text.replaceAll(id, gone)
  const rest: HostObjects = {
    host: 'host-1',
    containers: parseContainers(of(running(1))),
    volumes: [of(`${prefix}-data-1`)],
    networks: [of(`${prefix}-net`)],
  }
  t.same(differences([], [rest]), [
    `host-1: The container tenantry-${gone}-postgres-1-0123abcd (running) is not placed here.`,
    `host-1: The volume tenantry-${gone}-data-1 remains.`,
    `host-1: The network tenantry-${gone}-net remains.`,
  ])
})

t.test('Only SIGKILL counts as the kill of a control plane', async (t) => {
  t.equal(armedState('running 0 false'), 'running')
  t.equal(armedState('exited 137 false'), 'killed')
  for (const other of ['exited 1 false', 'exited 137 true', 'exited 0 false'])
    t.throws(() => armedState(other), { message: `by its failpoint: ${other}` })
})
