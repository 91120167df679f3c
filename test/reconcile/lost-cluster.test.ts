// A cluster that was lost with its region begins again after a recovery, and no other one does.
import t from 'tap'
import type { ClusterOrigin } from '#control-plane/clusters/etcd-access.ts'
import { beginLostCluster } from '#control-plane/reconcile/lost-cluster.ts'
import { unobservedHome, type Snapshot } from '#control-plane/reconcile/reconcile-store.ts'
import type { Region } from '#control-plane/reconcile/region.ts'
import { stateOf } from '../clusters/support.ts'

const { signal } = new AbortController()
type Tenant = Pick<Snapshot, 'id' | 'isolation' | 'homeVersion' | 'placement'>
const tenant: Tenant = {
  id: 't_0123456789abcdef0123',
  isolation: 'cluster-per-tenant',
  homeVersion: unobservedHome,
  placement: { 'postgres-1': 'a', 'postgres-2': 'b', 'postgres-3': 'c' },
}

interface Surroundings {
  origin?: ClusterOrigin
  /** Its origin after a wait. */
  later?: ClusterOrigin
  /** State of its first member in Patroni; undefined if no member responds. */
  first?: string | undefined
  /** ID of the host that does not respond. */
  down?: string
  /** State of its stack. */
  state?: 'running' | 'stopped'
  /** Names of its volumes on the engine. */
  volumes?: readonly string[]
}

/** Returns the IDs of the clusters that got a user of etcd, and those that lost it. */
async function opened(
  change: Partial<Tenant>,
  { origin = 'none', later = origin, first, down = '', state = 'running', volumes = [] }: Surroundings = {},
): Promise<string[]> {
  const calls: string[] = []
  let now = 0
  const engine = {
    isDown: (id: string) => id === down,
    observe: () => Promise.resolve({ volumes: volumes.map((name) => ({ name })) }),
  }
  const region: Partial<Region> = {
    clusterOrigin: () => Promise.resolve(now === 0 ? origin : later),
    cluster: () =>
      first === undefined
        ? Promise.reject(new Error('no member responds'))
        : Promise.resolve(stateOf('none', { 'postgres-1': { role: 'replica', state: first } })),
    closeCluster: async ({ id }) => void calls.push(`close ${id}`),
    openCluster: ({ id }) => {
      calls.push(id)
      return Promise.resolve()
    },
  }
  const clock = { now: () => new Date(now), sleep: async (milliseconds: number) => void (now += milliseconds) }
  const confirmLead = () => Promise.resolve()
  const deps = { region, engine, clock, confirmLead } as unknown as Parameters<typeof beginLostCluster>[2]
  await beginLostCluster({ ...tenant, ...change }, { state }, deps, signal)
  return calls
}

t.test('A cluster that etcd does not know begins again after a recovery', async (t) => {
  t.same(await opened({}), [tenant.id])
  t.same(await opened({ placement: {} }), [tenant.id], 'also in a region with one host')
})

t.test('Every other cluster stays as it is', async (t) => {
  t.same(await opened({ homeVersion: 'v1' }), [], 'one whose home was observed')
  t.same(await opened({ homeVersion: undefined }), [], 'one that never had a home')
  t.same(await opened({ isolation: 'database-per-tenant' }), [], 'a single database')
  for (const origin of ['created', 'adopted'] as const) t.same(await opened({}, { origin }), [], 'one that etcd knows')
})

t.test('No cluster begins again while one of its hosts, which may have the data, does not respond', async (t) => {
  for (const state of ['running', 'stopped'] as const)
    await t.rejects(opened({}, { down: 'b', state }), { code: 'UNHEALTHY', message: /The host "b" does not/ })
  t.same(await opened({}, { origin: 'created', down: 'b' }), [])
})

t.test('A stopped cluster without data has lost it, and gets no empty volumes', async (t) => {
  const volumes = [`tenantry-${tenant.id}-files`]
  await t.rejects(opened({}, { state: 'stopped', volumes }), { code: 'VOLUME_MISSING' })
  t.same(await opened({}, { state: 'stopped', volumes: [`tenantry-${tenant.id}-data-2`] }), [])
  t.same(await opened({ homeVersion: 'v1' }, { state: 'stopped' }), [])
})

t.test('A cluster whose first member was lost while it created the database begins again', async (t) => {
  const origin = 'creating'
  t.same(await opened({}, { origin, first: 'stopped' }), [`close ${tenant.id}`, tenant.id])
  await t.rejects(opened({}, { origin, first: 'stopped', down: 'b' }), { code: 'UNHEALTHY' })
  t.same(await opened({}, { origin, first: 'initializing new cluster' }), [], 'not while a member creates it')
  t.same(await opened({}, { origin }), [], 'not while no member responds')
  t.same(await opened({}, { origin, first: 'stopped', later: 'created' }), [], 'not if it was completed meanwhile')
  t.same(await opened({}, { origin, first: 'stopped', state: 'stopped' }), [], 'not while it is stopped')
  t.same(await opened({ homeVersion: 'v1' }, { origin, first: 'stopped' }), [], 'not one whose home was observed')
})
