// A new cluster whose first member was lost begins again, and no other one does.
import t from 'tap'
import type { ClusterState } from '#control-plane/clusters/cluster-state.ts'
import { removeUnbegun } from '#control-plane/reconcile/begin-again.ts'
import type { Snapshot } from '#control-plane/reconcile/reconcile-store.ts'
import type { Region } from '#control-plane/reconcile/region.ts'
import { stateOf, type ReportedMember } from '../clusters/support.ts'

const { signal } = new AbortController()
const tenant = {
  id: 't_0123456789abcdef0123',
  isolation: 'cluster-per-tenant',
  homeVersion: undefined,
  placement: { 'postgres-1': 'a', 'postgres-2': 'b', 'postgres-3': 'c' },
  operation: { id: 'o', attempts: 3 },
} as const
type Tenant = Pick<Snapshot, 'id' | 'isolation' | 'homeVersion' | 'placement' | 'operation'>
const waiting = (change: Record<string, Partial<ReportedMember>> = {}): ClusterState =>
  stateOf('nobody', {
    'postgres-1': { role: 'replica', state: 'stopped' },
    'postgres-2': { role: 'replica', state: 'stopped' },
    'postgres-3': { role: 'replica', state: 'stopped' },
    ...change,
  })

/** Returns what was removed. */
async function removed(
  change: Partial<Tenant>,
  {
    states = [waiting()],
    hasBegun = true,
    down = '',
  }: { states?: (ClusterState | undefined)[]; hasBegun?: boolean; down?: string },
): Promise<string[]> {
  const calls: string[] = []
  let now = 0
  let reads = 0
  const region: Partial<Region> = {
    engine: { isDown: (id: string) => id === down } as Region['engine'],
    hasBegunCluster: () => Promise.resolve(hasBegun),
    cluster: () => {
      const state = states[Math.min(reads++, states.length - 1)]
      return state === undefined ? Promise.reject(new Error('no member responds')) : Promise.resolve(state)
    },
    removeServices: async (id, isolation) => void calls.push(`${id} ${isolation}`),
  }
  const clock = { now: () => new Date(now), sleep: async (milliseconds: number) => void (now += milliseconds) }
  await removeUnbegun({ ...tenant, ...change }, { region: region as Region, clock: clock as never }, signal)
  return calls
}

t.test('A cluster without a primary that has begun, and holds no home, is removed', async (t) => {
  t.same(await removed({}, {}), ['t_0123456789abcdef0123 cluster-per-tenant'])
})

t.test('Every other cluster stays', async (t) => {
  for (const [what, change, options] of [
    ['one with a home', { homeVersion: 'v1' }, {}],
    ['one with a home that was not observed since a recovery', { homeVersion: '' }, {}],
    ['a single database', { isolation: 'database-per-tenant' }, {}],
    ['one whose creation was hardly tried', { operation: { id: 'o', attempts: 2 } }, {}],
    ['one without an operation', { operation: undefined }, {}],
    ['one that has not begun', {}, { hasBegun: false }],
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
