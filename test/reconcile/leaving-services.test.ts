// The services of a cluster that leave their hosts: at most one member with data at a time, and none of a stopped cluster.
import t from 'tap'
import { keepsData, leavingServices, type LeavingInput } from '#control-plane/reconcile/leaving-services.ts'
import { servingOn } from '../clusters/support.ts'

const placement = {
  'postgres-1': 'a',
  'postgres-2': 'b',
  'postgres-3': 'c',
  'router-1': 'a',
  'runtime-1': 'b',
  'runtime-2': 'c',
}
const input: LeavingInput = {
  placement,
  states: new Map(),
  hosts: ['a', 'b', 'c', 'd'],
  receiving: ['a', 'b', 'c', 'd'],
  isRunning: true,
  hasData: true,
  mayBeginAgain: false,
  cluster: servingOn(placement),
}
const draining = (...hosts: string[]) => ({
  states: new Map(hosts.map((host) => [host, 'draining'] as const)),
  receiving: input.receiving.filter((host) => !hosts.includes(host)),
})
const leaving = (change: Partial<LeavingInput>) => leavingServices({ ...input, ...change }).sort()

t.test('All services leave a host that is emptied, if the other members have the data', async (t) => {
  t.same(leaving({}), [])
  t.same(leaving(draining('b')), ['postgres-2', 'runtime-1'])
  t.same(leaving({ ...draining('a'), cluster: servingOn(placement) }), ['postgres-1', 'router-1'], 'also the primary')
  const silent = servingOn(placement, { 'postgres-2': { state: 'stopped' } })
  t.same(leaving({ ...draining('b'), cluster: silent }), ['postgres-2', 'runtime-1'], 'it has nothing that others lack')
  t.same(
    leaving({ ...draining('c'), cluster: silent }),
    ['runtime-2'],
    'the member stays until another one has its data',
  )
})

t.test('Members leave one at a time', async (t) => {
  t.same(leaving(draining('a', 'b')), ['postgres-1', 'router-1', 'runtime-1'])
  const together = { ...placement, 'postgres-2': 'a' }
  t.same(leaving({ ...draining('a'), placement: together, cluster: servingOn(together) }), ['postgres-1', 'router-1'])
  const all = { ...placement, 'postgres-2': 'a', 'postgres-3': 'a' }
  t.same(leaving({ placement: all, cluster: servingOn(all) }), ['postgres-2'], 'a host that members share')
  t.same(
    leaving({ ...draining('a'), cluster: servingOn({ ...placement, 'postgres-2': 'a' }) }),
    ['router-1'],
    'the last one has not gone yet',
  )
})

t.test('Without a primary, members leave a host only if it is lost', async (t) => {
  for (const cluster of [undefined, servingOn(placement, { 'postgres-1': { role: 'replica', state: 'stopped' } })]) {
    t.same(leaving({ ...draining('b'), cluster }), ['runtime-1'])
    t.same(leaving({ states: new Map([['b', 'lost']]), cluster }), ['postgres-2', 'runtime-1'])
    t.same(leaving({ hosts: ['a', 'c'], cluster }), ['postgres-2', 'runtime-1'], 'a host that the region has no more')
  }
  t.same(
    leaving({ ...draining('a', 'b'), cluster: undefined, hasData: false }).filter((one) => one.startsWith('p')),
    ['postgres-1', 'postgres-2'],
  )
})

t.test('A stopped cluster stays, because a member copies its data from a running primary', async (t) => {
  const stopped = { isRunning: false, cluster: undefined }
  t.same(leaving({ ...stopped, ...draining('a', 'b') }), [])
  t.same(leaving({ ...stopped, states: new Map([['b', 'lost']]) }), [], 'the host may return until then')
  t.same(leaving({ ...stopped, hosts: ['a', 'c', 'd'] }), ['postgres-2', 'runtime-1'])
  const unobserved = { ...stopped, mayBeginAgain: true }
  t.same(
    leaving({ ...unobserved, states: new Map([['b', 'lost']]) }),
    ['postgres-2', 'runtime-1'],
    'it may begin again',
  )
  t.same(leaving({ ...unobserved, ...draining('a', 'b') }), [])
})

t.test('Members with data that should not leave their hosts move alone, while the others have the data', async (t) => {
  const keeps = (moved: Record<string, string>, change: Partial<LeavingInput> = {}) =>
    keepsData({ ...placement, ...moved }, { ...input, ...change })
  t.ok(keeps({}))
  t.ok(keeps({ 'router-1': 'd', 'runtime-1': 'd', 'runtime-2': 'd' }), 'others have no data')
  t.ok(keeps({ 'postgres-2': 'd' }))
  t.notOk(keeps({ 'postgres-2': 'd', 'postgres-3': 'd' }))
  t.notOk(keeps({ 'postgres-2': 'd' }, { cluster: undefined }))
  t.notOk(keeps({ 'postgres-2': 'd' }, { isRunning: false }))
  t.ok(keeps({ 'postgres-1': 'd', 'postgres-2': 'd', 'postgres-3': 'd' }, { hasData: false, cluster: undefined }))
  t.ok(keeps({ 'postgres-2': 'd' }, draining('b')), 'one that leaves a host that is emptied')
  t.notOk(keeps({ 'postgres-2': 'd', 'postgres-3': 'd' }, draining('b')), 'and no other one at the same time')
  t.ok(
    keeps(
      { 'postgres-2': 'd', 'postgres-3': 'd' },
      {
        states: new Map([
          ['b', 'lost'],
          ['c', 'lost'],
        ]),
      },
    ),
  )
})
