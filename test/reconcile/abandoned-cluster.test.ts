// A new cluster whose initialization was abandoned is removed, and no other one is.
import t from 'tap'
import type { ClusterState } from '#control-plane/clusters/cluster-state.ts'
import type { ClusterOrigin } from '#control-plane/clusters/etcd-access.ts'
import { removeAbandonedCluster } from '#control-plane/reconcile/abandoned-cluster.ts'
import type { ReconcileStore, Snapshot } from '#control-plane/reconcile/reconcile-store.ts'
import type { Region } from '#control-plane/reconcile/region.ts'
import { stateOf, type ReportedMember } from '../clusters/support.ts'

const { signal } = new AbortController()
const tenant = {
  id: 't_0123456789abcdef0123',
  isolation: 'cluster-per-tenant',
  homeVersion: undefined,
  placement: { 'postgres-1': 'a', 'postgres-2': 'b', 'postgres-3': 'c' },
  operation: { id: 'o', attempts: 3 },
  generation: 1,
} as const
type Tenant = Pick<Snapshot, 'id' | 'isolation' | 'homeVersion' | 'placement' | 'operation' | 'generation'>
const waiting = (change: Record<string, Partial<ReportedMember>> = {}): ClusterState =>
  stateOf('nobody', {
    'postgres-1': { role: 'replica', state: 'stopped' },
    'postgres-2': { role: 'replica', state: 'stopped' },
    'postgres-3': { role: 'replica', state: 'stopped' },
    ...change,
  })

interface Surroundings {
  states?: (ClusterState | undefined)[]
  origin?: ClusterOrigin
  /** ID of the host that does not respond. */
  down?: string
  /** Changes of the tenant until its services are about to be removed. */
  present?: Partial<Tenant>
}

/** Returns what was removed. */
async function removed(
  change: Partial<Tenant>,
  { states = [waiting()], origin = 'created', down = '', present = {} }: Surroundings,
): Promise<string[]> {
  const calls: string[] = []
  let now = 0
  let reads = 0
  const region: Partial<Region> = {
    engine: { isDown: (id: string) => id === down } as Region['engine'],
    clusterOrigin: () => Promise.resolve(origin),
    cluster: () => {
      const state = states[Math.min(reads++, states.length - 1)]
      return state === undefined ? Promise.reject(new Error('no member responds')) : Promise.resolve(state)
    },
    removeServices: async (id, isolation, _signal, edge) => {
      await edge?.()
      calls.push(`${id} ${isolation}`)
      return []
    },
  }
  const clock = { now: () => new Date(now), sleep: async (milliseconds: number) => void (now += milliseconds) }
  const store: Partial<ReconcileStore> = {
    confirmLead: () => Promise.resolve(),
    snapshot: () => Promise.resolve({ ...tenant, ...change, ...present } as Snapshot),
  }
  const run = { store: store as ReconcileStore, region: region as Region, clock: clock as never, epoch: 1n }
  await removeAbandonedCluster({ ...tenant, ...change }, run, signal)
  return calls
}

t.test('A cluster without a primary that was created empty, and holds no home, is removed', async (t) => {
  for (const origin of ['creating', 'created'] as const)
    t.same(await removed({}, { origin }), ['t_0123456789abcdef0123 cluster-per-tenant'], origin)
})

t.test('Every other cluster stays', async (t) => {
  for (const [what, change, options] of [
    ['one with a home', { homeVersion: 'v1' }, {}],
    ['one with a home that was not observed since a recovery', { homeVersion: '' }, {}],
    ['a single database', { isolation: 'database-per-tenant' }, {}],
    ['one whose creation was hardly tried', { operation: { id: 'o', attempts: 2 } }, {}],
    ['one without an operation', { operation: undefined }, {}],
    ['one without a database', {}, { origin: 'none' }],
    ['one that a backup or a move has filled', {}, { origin: 'adopted' }],
    ['one whose first member may be on a host that returns', {}, { down: 'b' }],
    ['one that elects a primary', {}, { states: [waiting(), waiting(), stateOf('postgres-1')] }],
    [
      'one that creates its database',
      {},
      { states: [waiting({ 'postgres-1': { state: 'initializing new cluster' } })] },
    ],
    ['one whose members do not respond', {}, { states: [undefined] }],
    ['one whose members respond no more', {}, { states: [waiting(), undefined] }],
  ] as [string, Partial<Tenant>, Parameters<typeof removed>[1]][])
    t.same(await removed(change, options), [], what)
})

t.test('Nothing is removed once the tenant has changed', async (t) => {
  for (const present of [{ homeVersion: 'v1' }, { generation: 2 }])
    await t.rejects(removed({}, { present }), { code: 'UNHEALTHY', message: /has changed/ })
})
