// The conditions of a cluster, and what makes the reconciler observe it again.
import t from 'tap'
import type { ClusterState } from '#control-plane/clusters/cluster-state.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { Observations } from '#control-plane/reconcile/observations.ts'
import { isClusterComplete, observeCluster } from '#control-plane/reconcile/observe-cluster.ts'
import type { Snapshot } from '#control-plane/reconcile/reconcile-store.ts'
import type { Reconciliation } from '#control-plane/reconcile/reconciliation.ts'

const complete: ClusterState = {
  members: [],
  primary: 'postgres-1',
  hasQuorum: true,
  notReplicating: [],
  candidates: ['postgres-2'],
  reports: [],
}
const behind: ClusterState = { ...complete, notReplicating: ['postgres-3'] }
const withoutPrimary: ClusterState = { ...behind, primary: undefined, hasQuorum: false }
const tenant = { id: 't_0123456789abcdef0123', isolation: 'cluster-per-tenant', desired: 'active' } as Snapshot
const { signal } = new AbortController()
const now = new Date('2026-03-01T12:00:00.000Z')

t.test(
  'A cluster is incomplete without a primary, with a replica that does not follow, or if none responds',
  async (t) => {
    const isComplete = (state: ClusterState | Error, change: Partial<Snapshot> = {}) => {
      const cluster = () => (state instanceof Error ? Promise.reject(state) : Promise.resolve(state))
      return isClusterComplete({ ...tenant, ...change }, { cluster }, systemClock, signal)
    }
    t.equal(await isComplete(complete), true)
    for (const state of [behind, withoutPrimary, new Error('no member responds')]) {
      t.equal(await isComplete(state), false)
      t.equal(await isComplete(state, { desired: 'suspended' }), true, 'a stopped cluster has no state')
      t.equal(await isComplete(state, { isolation: 'database-per-tenant' }), true)
    }
  },
)

/** Observes states, the last one repeatedly, on a clock that a wait moves. @returns the conditions, or the error's message */
async function observing(change: Partial<Snapshot>, ...states: ClusterState[]) {
  let milliseconds = now.getTime()
  let reads = 0
  const clock = {
    ...systemClock,
    now: () => new Date(milliseconds),
    sleep: async (wait: number) => {
      milliseconds += wait
    },
  }
  const observations = new Observations(clock)
  const region = { cluster: async () => states[Math.min(reads++, states.length - 1)] }
  const run = { region, clock, observations } as unknown as Reconciliation
  const error = await observeCluster({ ...tenant, ...change }, run, signal).then(
    () => undefined,
    (cause: unknown) => (cause instanceof Error ? cause.message : ''),
  )
  return { error, seen: [...observations.seen.values()].map(({ type, status, reason }) => [type, status, reason]) }
}

t.test('Quorum and Replicating are observed once the cluster has reached them', async (t) => {
  t.same(await observing({}, withoutPrimary, behind, behind, complete), {
    error: undefined,
    seen: [
      ['Quorum', 'True', 'Observed'],
      ['Replicating', 'True', 'Observed'],
    ],
  })
  t.same(await observing({ isolation: 'database-per-tenant' }, withoutPrimary), { error: undefined, seen: [] })
})

t.test('The first condition that is not reached in time is False, and its message names the members', async (t) => {
  t.same(await observing({}, withoutPrimary), {
    error: 'The cluster has no primary.',
    seen: [['Quorum', 'False', 'Unhealthy']],
  })
  t.same(await observing({}, behind), {
    error: 'These members do not follow the primary: postgres-3.',
    seen: [
      ['Quorum', 'True', 'Observed'],
      ['Replicating', 'False', 'Unhealthy'],
    ],
  })
})
