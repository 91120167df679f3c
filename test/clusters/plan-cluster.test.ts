// The order in which a cluster's services are changed: the cluster keeps its quorum, whatever interrupts the change.
import fc from 'fast-check'
import t from 'tap'
import type { Stack } from '#control-plane/stacks/stack.ts'
import { effort, seed } from '#test/support/effort.ts'
import { clusterOf, ClusterInMemory, larger } from './cluster-in-memory.ts'

const restarted = clusterOf({ restarts: 1 })
const newImage = clusterOf({ images: { postgres: 'sha256:cc', runtime: 'sha256:bb' } })
const changes: Record<string, Stack> = {
  'a restart': restarted,
  'a new image': newImage,
  'a restart and larger limits': clusterOf({ restarts: 2, resources: larger }),
}
const names = restarted.services.map(({ name }) => name)

/** Carries out a change without faults. @returns what was done */
function change(cluster: ClusterInMemory, maxTicks = 50): string[] {
  for (let ticks = 0; ticks < maxTicks && !cluster.isDone(); ticks++) {
    cluster.take(cluster.plan())
    cluster.tick()
  }
  return cluster.log
}

t.test('A restart changes the replicas, then after a switchover the former primary, then the others', async (t) => {
  const cluster = new ClusterInMemory(clusterOf(), restarted)
  t.same(change(cluster), [
    'stop postgres-2',
    'stop postgres-3',
    'switch over to postgres-2',
    'stop postgres-1',
    'stop router-1',
    'stop router-2',
    'stop runtime-1',
    'stop runtime-2',
  ])
  t.same(cluster.breaches, [])
  t.ok(cluster.isDone())
})

t.test('A new image of the members leaves the runtimes as they are', async (t) => {
  const cluster = new ClusterInMemory(clusterOf(), newImage)
  cluster.primary = 'postgres-3'
  t.same(change(cluster), [
    'stop postgres-1',
    'stop postgres-2',
    'switch over to postgres-1',
    'stop postgres-3',
    'stop router-1',
    'stop router-2',
  ])
})

t.test('Limits are changed while the members run, the primary last', async (t) => {
  const cluster = new ClusterInMemory(clusterOf(), clusterOf({ resources: larger }))
  cluster.primary = 'postgres-2'
  t.same(change(cluster), ['resize postgres-1', 'resize postgres-3', 'resize postgres-2'])
})

t.test('A member whose Postgres does not start keeps all others as they are', async (t) => {
  const cluster = new ClusterInMemory(clusterOf(), newImage)
  cluster.failing.add('postgres-2')
  t.same(change(cluster), ['stop postgres-2'])
  t.match(cluster.plan(), {
    do: 'wait',
    message: 'The service postgres-3 is changed when another replica confirms commits.',
  })

  const back = new ClusterInMemory(newImage, clusterOf())
  back.failing.add('postgres-2')
  back.tick()
  back.take(back.plan())
  t.same(back.log, ['stop postgres-2'], 'a replica that confirms nothing is the first to get its former image back')
})

t.test('Without a second replica, nothing that runs is stopped', async (t) => {
  const cluster = new ClusterInMemory(clusterOf(), clusterOf({ restarts: 1 }))
  cluster.failing.add('postgres-3')
  cluster.tick()
  cluster.take(cluster.plan())
  cluster.tick()
  t.same(cluster.log, ['stop postgres-3'], 'it confirms nothing')
  t.match(cluster.plan(), { do: 'wait' })
  cluster.failing.clear()
  cluster.tick()
  change(cluster)
  t.ok(cluster.isDone())
  t.same(cluster.breaches, [])
})

t.test('A cluster without a primary, or that does not respond, is left as it is', async (t) => {
  const cluster = new ClusterInMemory(clusterOf(), restarted)
  cluster.primary = 'none'
  for (const name of names.slice(0, 3)) cluster.failing.add(name)
  const electing = cluster.state()
  t.equal(electing?.primary, undefined)
  t.match(cluster.plan(), { do: 'wait', message: 'The service postgres-1 is changed when the cluster has a primary.' })
})

t.test('Services that do not run are repaired first, and together', async (t) => {
  const cluster = new ClusterInMemory(clusterOf(), restarted)
  for (const name of names) cluster.crash(name)
  cluster.take(cluster.plan())
  t.same(cluster.log, [], 'nothing that ran was stopped')
  t.ok(cluster.isDone())
})

t.test(
  'Services that have lost their network are repaired together, although no member can be the primary',
  async (t) => {
    for (const after of [clusterOf(), restarted]) {
      const cluster = new ClusterInMemory(clusterOf(), after)
      cluster.loseNetwork()
      t.same(cluster.plan(), { do: 'converge', held: new Set() })
      cluster.take(cluster.plan())
      t.ok(cluster.isDone())
    }
  },
)

t.test('The cluster keeps its quorum, and ends as specified, whatever interrupts the change', async () => {
  const event = fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('work' as const), steps: fc.integer({ min: 0, max: 4 }) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('tick' as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const), name: fc.constantFrom(...names) }) },
  )
  fc.assert(
    fc.property(
      fc.constantFrom(...names.slice(0, 3)),
      fc.constantFrom(...Object.keys(changes)),
      fc.array(event, { maxLength: 60 }),
      (primary, after, events) => {
        const cluster = new ClusterInMemory(clusterOf(), changes[after] ?? restarted)
        cluster.primary = primary
        for (const one of events) {
          if (one.do === 'tick') cluster.tick()
          else if (one.do === 'crash') cluster.crash(one.name)
          else cluster.take(cluster.plan(), one.steps)
        }
        change(cluster)
        return cluster.breaches.length === 0 && cluster.isDone()
      },
    ),
    { seed, numRuns: effort({ small: 200, full: 5_000 }) },
  )
})
