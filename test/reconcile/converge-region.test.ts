// The shared cluster of a region on several hosts: its user of etcd comes before its members, a region whose cluster accepts no writes
// is not ready, a member that does not follow copies its data again, a member of etcd whose volume is gone is replaced, and a cluster that
// was never complete begins again.
import t from 'tap'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import type { ObservedContainer, ObservedHost } from '#control-plane/engines/container-host.ts'
import type { ClusterOrigin } from '#control-plane/clusters/etcd-access.ts'
import { createRegionConvergence } from '#control-plane/reconcile/converge-region.ts'
import { noFailpoints } from '#control-plane/reconcile/failpoints.ts'
import type { RegionConfig } from '#control-plane/regions/region-config.ts'
import { clusterMembers, clusterRouters } from '#control-plane/stacks/cluster-services.ts'
import type { Stack } from '#control-plane/stacks/stack.ts'
import { stoppedClock } from '#test/support/control-plane/clock.ts'

const own = { id: 'region-north-01234567', isolation: 'cluster-per-tenant' } as const
const stack: Stack = { id: own.id, state: 'running', networks: [], volumes: [], services: [] }
const none: ReadonlySet<string> = new Set()
const nothing: ObservedHost = { containers: [], networks: [], volumes: [], unlabelledVolumes: [] }
const withMember: ObservedHost = {
  ...nothing,
  containers: [{ labels: { service: 'postgres-2' } } as unknown as ObservedContainer],
}
const member = (name: string, role: string, state: string, lag: number) => ({ name, role, state, timeline: 1, lag })
const whole = [
  member('postgres-1-a', 'leader', 'running', 0),
  member('postgres-2-b', 'quorum_standby', 'streaming', 0),
  member('postgres-3-c', 'quorum_standby', 'streaming', 0),
]

/** The state of the cluster and of its hosts. */
interface Reported {
  members: typeof whole | undefined
  origin: ClusterOrigin
  /** Its origin at the second request and at further ones. */
  later: ClusterOrigin[]
  /** ID of the host that does not respond. */
  down: string
  /** IDs of the hosts that do not respond to the removal of services. */
  silent: string[]
}

/** @param ownCluster null for a region whose tenants share a single Postgres */
function startConvergence(ownCluster: typeof own | null = own) {
  const clock = stoppedClock()
  const calls: string[] = []
  const reported: Reported = { members: whole, origin: 'created', later: [], down: '', silent: [] }
  const etcd: { error: EngineError | undefined } = { error: undefined }
  const convergence = createRegionConvergence({
    region: {
      config: { id: 'north' } as RegionConfig,
      replaceEtcdMember: async (name, others) => {
        calls.push(`replace ${name} by ${others.join(' ')}`)
        if (etcd.error !== undefined) throw etcd.error
      },
      ownCluster: ownCluster ?? undefined,
      clusterOrigin: () => {
        const { origin } = reported
        reported.origin = reported.later.shift() ?? origin
        return Promise.resolve(origin)
      },
      openCluster: async ({ id }) => void calls.push(`open ${id}`),
      closeCluster: async ({ id }) => void calls.push(`close ${id}`),
      cluster: () => Promise.resolve(undefined),
      readyRouters: () => Promise.resolve(new Set<string>()),
      switchOver: async (id, from, to) => void calls.push(`switch ${id} from ${from} to ${to}`),
      copyAgain: async (id, name) => void calls.push(`copy ${id} ${name}`),
    },
    engine: {
      observe: () => Promise.resolve(nothing),
      isDown: (host) => host === reported.down,
      removeServices: async (_id, { services, volumes }, _signal, edge) => {
        await edge?.()
        calls.push(`remove ${services.join(' ')}`)
        await edge?.()
        calls.push(`remove ${volumes.join(' ')}`)
        return reported.silent
      },
      repair: async (_stack, targets) =>
        void calls.push(`create ${targets.map(({ component }) => component).join(' ')}`),
      converge: async (_stack, _signal, _edge, held) =>
        void calls.push(`converge without ${[...(held ?? [])].join(' ')}`),
      exec: () =>
        Promise.resolve({
          code: 0,
          stdout: `HTTP/1.0 200 OK\r\n\r\n${JSON.stringify(reported)}`,
          stderr: '',
        }),
    },
    clock,
    edge: () => Promise.resolve(),
    failpoint: noFailpoints,
    log: { info: () => undefined, warn: () => undefined },
  })
  return { clock, calls, reported, etcd, convergence, signal: new AbortController().signal }
}

t.test('The members of a new cluster start after etcd has their user', async (t) => {
  const { calls, convergence, signal } = startConvergence()
  await convergence.converge(stack, nothing, false, signal)
  const held = [...clusterMembers, ...clusterRouters].join(' ')
  t.same(calls, [`converge without ${held}`, `open ${own.id}`, 'converge without '])
})

t.test('No empty cluster is started where tenants have homes', async (t) => {
  const { calls, reported, convergence, signal } = startConvergence()
  reported.origin = 'none'
  await t.rejects(convergence.converge(stack, nothing, true, signal), { code: 'VOLUME_MISSING' })
  const held = [...clusterMembers, ...clusterRouters].join(' ')
  t.same(calls, [`converge without ${held}`], 'no member was created')
  reported.origin = 'created'
  await convergence.converge(stack, nothing, true, signal)
  t.equal(calls.at(-1), 'converge without ')
})

t.test('A region does not begin before all hosts of its etcd respond', async (t) => {
  const { calls, convergence, signal } = startConvergence()
  const volumes = ['a', 'b', 'c'].map((host, at) => ({
    name: `etcd-${at + 1}`,
    host,
    mustExist: false,
    isGuarded: false,
  }))
  await t.rejects(convergence.converge({ ...stack, volumes }, nothing, false, signal), {
    code: 'UNHEALTHY',
    message: /The host "a" does not/,
  })
  t.notOk(calls.includes(`open ${own.id}`), 'no cluster may begin')
})

/** Returns the stack with the volumes of etcd, and an observation of some of them. @param mustExist whether tenants have data in it */
function withEtcd(mustExist: boolean, existing: readonly string[]) {
  const volumes = ['etcd-1', 'etcd-2', 'etcd-3'].map((name) => ({ name, mustExist, isGuarded: false }))
  const labels = { installation: 'i', stack: own.id }
  const observed = existing.map((name) => ({ name: `tenantry-${own.id}-${name}`, labels }))
  return { stack: { ...stack, volumes }, host: { ...nothing, volumes: observed } }
}

t.test('A member of etcd without a volume is replaced, unless the others have no quorum', async (t) => {
  const { calls, etcd, convergence, signal } = startConvergence()
  const replaced = async (mustExist: boolean, error?: EngineError) => {
    etcd.error = error
    calls.length = 0
    const { stack: wanted, host } = withEtcd(mustExist, ['etcd-1', 'etcd-2'])
    const { stack: prepared, held } = await convergence.replaceMembers(wanted, host, signal)
    t.ok(
      prepared.volumes.every((volume) => volume.mustExist),
      'a volume that is lost later is not created again',
    )
    return { calls: [...calls], held }
  }
  const request = 'replace etcd-3 by etcd-1 etcd-2'
  const [replacement, rejection] = [
    { calls: [request, 'create volume/etcd-3'], held: [] },
    { calls: [request], held: ['etcd-3'] },
  ]
  for (const mustExist of [true, false]) {
    t.same(await replaced(mustExist), replacement)
    t.same(await replaced(mustExist, new EngineError('UNHEALTHY', 'no quorum')), rejection)
  }
  t.same(await replaced(true, new EngineError('NOT_FOUND', 'no cluster')), rejection)
  t.same(await replaced(false, new EngineError('NOT_FOUND', 'no cluster')), replacement, 'the cluster begins')
})

t.test('Members without volumes are not asked, and those on hosts that do not respond may have data', async (t) => {
  const { calls, convergence, signal } = startConvergence()
  const { stack: wanted, host } = withEtcd(false, ['etcd-2'])
  const volumes = wanted.volumes.map((volume) => ({ ...volume, host: `host-of-${volume.name}` }))
  const partly = { ...host, unreachableHosts: ['host-of-etcd-3'] }
  await convergence.replaceMembers({ ...wanted, volumes }, partly, signal)
  t.same(calls, ['replace etcd-1 by etcd-2 etcd-3', 'create volume/etcd-1'])
})

t.test('A member of etcd is not replaced before its container is removed', async (t) => {
  const { calls, convergence, signal } = startConvergence()
  const { stack: wanted, host } = withEtcd(true, ['etcd-1', 'etcd-2'])
  const containers = [{ labels: { service: 'etcd-3' } } as unknown as ObservedContainer]
  t.match(await convergence.replaceMembers(wanted, { ...host, containers }, signal), { held: ['etcd-3'] })
  t.same(calls, [])
})

t.test('A cluster that exists is repaired without etcd', async (t) => {
  const { calls, convergence, signal } = startConvergence()
  await convergence.converge(stack, withMember, true, signal)
  t.same(calls, ['converge without '])
})

t.test('A single Postgres is converged with the other services', async (t) => {
  const { calls, convergence, signal } = startConvergence(null)
  await convergence.converge(stack, nothing, false, signal)
  await convergence.check(stack, none, false, signal)
  t.same(calls, ['converge without '])
})

t.test('A cluster without a primary, or without a replica that confirms, is reported', async (t) => {
  const { reported, convergence, signal } = startConvergence()
  await convergence.check(stack, none, false, signal)
  reported.members = whole.slice(0, 1)
  await t.rejects(convergence.check(stack, none, false, signal), {
    code: 'UNHEALTHY',
    message: 'No replica confirms the commits of postgres-1.',
  })
  reported.members = whole.slice(1)
  await t.rejects(convergence.check(stack, none, false, signal), {
    code: 'UNHEALTHY',
    message: 'The cluster has no primary.',
  })
})

t.test('A replica that does not come closer to the primary for a while copies its data again', async (t) => {
  const { clock, calls, reported, convergence, signal } = startConvergence()
  const behind = (lag: number) =>
    (reported.members = [...whole.slice(0, 2), member('postgres-3-c', 'replica', 'running', lag)])
  behind(900)
  await convergence.check(stack, none, false, signal)
  clock.pass(20)
  await convergence.check(stack, none, false, signal)
  t.same(calls, [], 'not at once')
  clock.pass(30)
  behind(800)
  await convergence.check(stack, none, false, signal)
  t.same(calls, [], 'not while it comes closer')
  clock.pass(50)
  await convergence.check(stack, none, false, signal)
  t.same(calls, [`copy ${own.id} postgres-3`])
})

t.test('The primary leaves a host that is emptied, for one that is not', async (t) => {
  const { calls, reported, convergence, signal } = startConvergence()
  const members = clusterMembers.map((name, at) => ({ name, host: 'abc'[at] }) as unknown as Stack['services'][number])
  const placed = { ...stack, services: members }
  await convergence.check(placed, new Set(['b']), false, signal)
  await convergence.check(placed, new Set(['a', 'b', 'c']), false, signal)
  t.same(calls, [], 'not without need, and not to another such host')
  await convergence.check(placed, new Set(['a', 'b']), false, signal)
  t.same(calls, [`switch ${own.id} from postgres-1 to postgres-3`])
  reported.members = [...whole.slice(0, 2), member('postgres-3-c', 'replica', 'running', 900)]
  await convergence.check(placed, new Set(['a', 'b']), false, signal)
  t.equal(calls.length, 1, 'not to a member that could lose a commit')
})

/** Checks a cluster whose members wait for a database for 40 s, and returns what was removed. @param between the members meanwhile */
async function removedAfter(
  change: Partial<Reported>,
  { between = waiting, holdsHomes = false }: { between?: typeof whole | null; holdsHomes?: boolean } = {},
): Promise<string[]> {
  const { clock, calls, reported, convergence, signal } = startConvergence()
  Object.assign(reported, { members: waiting, origin: 'creating' }, change)
  const services = [{ name: 'postgres-1', host: 'a' }] as unknown as Stack['services']
  const check = async () => {
    await t.rejects(convergence.check({ ...stack, services }, none, holdsHomes, signal), { code: 'UNHEALTHY' })
  }
  await check()
  t.same(calls, [], 'not at once')
  clock.pass(20)
  reported.members = between ?? undefined
  await check()
  clock.pass(20)
  reported.members = waiting
  await check()
  return calls
}

const waiting = ['postgres-1-a', 'postgres-2-b', 'postgres-3-c'].map((name) => member(name, 'replica', 'stopped', 0))
const removedParts = `remove ${[...clusterMembers, ...clusterRouters].join(' ')}`
const removedData = 'remove data-1 data-2 data-3'

t.test('A cluster whose first member was lost while it created the database begins again', async (t) => {
  t.same(await removedAfter({}), [removedParts, removedData, `close ${own.id}`])
})

t.test('Every other cluster without a primary stays', async (t) => {
  for (const origin of ['none', 'created', 'adopted'] as const) t.same(await removedAfter({ origin }), [], origin)
  t.same(await removedAfter({}, { holdsHomes: true }), [], 'one in which tenants have homes')
  t.same(await removedAfter({ down: 'a' }), [], 'one with a host that may return')
  t.same(await removedAfter({}, { between: null }), [], 'one whose members did not respond meanwhile')
  const creating = [member('postgres-1-a', 'replica', 'initializing new cluster', 0)]
  t.same(await removedAfter({}, { between: creating }), [], 'one that creates its database')
})

t.test('A cluster that is completed while it is removed keeps its data', async (t) => {
  t.same(await removedAfter({ later: ['created'] }), [], 'before its members are removed')
  t.same(await removedAfter({ later: ['creating', 'created'] }), [removedParts], 'before its data is removed')
})

t.test('A cluster does not begin again while a host of it has ceased to respond', async (t) => {
  t.same(await removedAfter({ silent: ['a'] }), [removedParts, removedData])
})
