// How a cluster's services converge over time: one run changes as much as it may, waits for a while, and reports what it waits for.
import t from 'tap'
import type { ClusterState } from '#control-plane/clusters/cluster-state.ts'
import { convergeCluster } from '#control-plane/reconcile/converge-cluster.ts'
import { clusterOf, ClusterInMemory } from './cluster-in-memory.ts'

const { signal } = new AbortController()

/** Runs on a cluster in memory. @param changeSeconds time that each change takes */
function runs(cluster: ClusterInMemory, changeSeconds: number, reason?: string) {
  let now = 0
  const edges: string[] = []
  const pass = (seconds: number) => {
    now += seconds * 1000
    cluster.tick()
  }
  const run = () =>
    convergeCluster(
      { id: cluster.stack.id, isolation: 'cluster-per-tenant' },
      cluster.stack,
      {
        engine: {
          observe: async () => cluster.host,
          converge: async (_stack, _signal, _edge, held = new Set()) => {
            cluster.take({ do: 'converge', held })
            pass(changeSeconds)
          },
        },
        region: {
          cluster: async (): Promise<ClusterState> => {
            const state = cluster.state()
            if (state === undefined) throw new Error('no member responds')
            return state
          },
          readyRouters: async () => new Set(['router-1', 'router-2']),
          switchOver: async (_id, from, to) => {
            if (reason === undefined) cluster.take({ do: 'switch-over', from, to })
            return reason
          },
        },
        clock: { now: () => new Date(now), sleep: async (milliseconds) => pass(milliseconds / 1000) },
        edge: async (side) => void edges.push(side),
      },
      signal,
    )
  return { run, edges, seconds: () => now / 1000 }
}

t.test('One run changes all services when the changes are fast', async (t) => {
  const cluster = new ClusterInMemory(clusterOf(), clusterOf({ restarts: 1 }))
  const { run, edges } = runs(cluster, 2)
  t.equal(await run(), true)
  t.ok(cluster.isDone())
  t.same(edges, ['before', 'after'], 'around the switchover; the engine calls it around its own steps')
})

t.test('A run that takes long ends between two changes, and the next one continues', async (t) => {
  const cluster = new ClusterInMemory(clusterOf(), clusterOf({ restarts: 1 }))
  const { run } = runs(cluster, 25)
  t.equal(await run(), false)
  t.same(cluster.log, ['stop postgres-2', 'stop postgres-3'])
  for (let more = 0; more < 10 && !(await run()); more++);
  t.ok(cluster.isDone())
  t.equal(cluster.log.length, 8)
  t.same(cluster.breaches, [])
})

t.test('A wait ends with its reason', async (t) => {
  const stuck = new ClusterInMemory(clusterOf(), clusterOf({ restarts: 1 }))
  stuck.failing.add('postgres-2')
  const slow = runs(stuck, 1)
  t.equal(await slow.run(), false, 'a change was made before')
  await t.rejects(slow.run(), {
    code: 'UNHEALTHY',
    message: 'The service postgres-3 is changed when another replica confirms commits.',
  })
  t.same(stuck.log, ['stop postgres-2'])

  const rejecting = new ClusterInMemory(clusterOf(), clusterOf({ restarts: 1 }))
  const rejected = runs(rejecting, 1, 'no good candidates')
  t.equal(await rejected.run(), false)
  await t.rejects(rejected.run(), { message: 'Patroni did not make postgres-2 the primary: no good candidates' })
})
