// The condition `Spread` of tenants on several hosts: a host that falls silent or returns makes the recorded one outdated.
import t from 'tap'
import type { Engine } from '#control-plane/engines/engine.ts'
import type { ConditionState } from '#control-plane/reconcile/conditions.ts'
import { shouldMove } from '#control-plane/reconcile/should-move.ts'
import { isSpreadOutdated, silentHosts, spreadOf } from '#control-plane/reconcile/spread.ts'
import type { Isolation } from '#control-plane/stacks/isolation.ts'

const hosts = { 'database-per-tenant': ['a', 'a', 'a'], 'cluster-per-tenant': ['a', 'b', 'c'] } as const

function placed(isolation: 'database-per-tenant' | 'cluster-per-tenant', spread?: ConditionState) {
  const [first, second, third] = hosts[isolation]
  const placement =
    isolation === 'cluster-per-tenant'
      ? { 'postgres-1': first, 'postgres-2': second, 'postgres-3': third }
      : { postgres: first, runtime: second }
  const conditions = spread === undefined ? [] : [{ type: 'Spread', observed_at: '', ...spread } as const]
  return { isolation: isolation satisfies Isolation, placement, conditions }
}

function regionWith(...down: string[]) {
  const engine: Pick<Engine, 'isDown'> = { isDown: (id) => down.includes(id) }
  return { engine: engine as Engine }
}

for (const isolation of ['database-per-tenant', 'cluster-per-tenant'] as const)
  t.test(`A silent host and its return change the condition of a tenant with ${isolation}`, async (t) => {
    const well = spreadOf(placed(isolation), regionWith())
    t.match(well, { status: 'True', reason: 'Observed' })
    t.equal(isSpreadOutdated(placed(isolation, well), regionWith()), false)
    t.equal(isSpreadOutdated(placed(isolation, well), regionWith('d')), false, 'the tenant has nothing on that host')
    t.equal(isSpreadOutdated(placed(isolation, well), regionWith('a')), true, 'a host has become silent')

    const lost = spreadOf(placed(isolation), regionWith('a'))
    t.match(lost, { status: 'False', reason: 'HostUnreachable', message: /do not respond: a\.$/ })
    t.equal(isSpreadOutdated(placed(isolation, lost), regionWith('a')), false)
    t.equal(isSpreadOutdated(placed(isolation, lost), regionWith()), true, 'the host has returned')
  })

t.test(
  'A tenant without the condition is not outdated: its first run records one',
  async (t) => void t.equal(isSpreadOutdated(placed('cluster-per-tenant'), regionWith('a')), false),
)

t.test('Services that a move adds have no part in the condition, nor in the choice of other hosts', async (t) => {
  const moving = {
    postgres: 'a',
    runtime: 'a',
    'postgres-1': 'b',
    'postgres-2': 'c',
    'postgres-3': 'c',
    'runtime-1': 'b',
  }
  const single = { isolation: 'database-per-tenant', placement: moving, desired: 'active' } as const
  const cluster = { isolation: 'cluster-per-tenant', placement: moving, desired: 'active' } as const
  t.same(silentHosts(single, regionWith('b', 'c')), [], 'the database does not depend on the cluster')
  t.same(silentHosts(single, regionWith('a')), ['a'])
  t.match(spreadOf(single, regionWith('b')), { status: 'True', message: /are on 1 host\.$/ })
  t.match(spreadOf(cluster, regionWith('a')), { status: 'False', reason: 'FewHosts', message: /are on 2 hosts\./ })

  const engine = { hostIds: ['a', 'b', 'c'], isDown: () => false } as unknown as Engine
  const spread = { ...moving, 'postgres-2': 'a', 'runtime-2': 'c' }
  const draining = new Map([['a', 'draining']] as const)
  t.equal(shouldMove({ ...cluster, placement: spread }, new Map(), engine), false, 'a database is no second member')
  t.equal(shouldMove({ ...single, placement: spread }, draining, engine), false)
  t.equal(shouldMove({ ...cluster, placement: spread }, draining, engine), true, 'a member leaves the host')
  for (const desired of ['suspended', 'paused'] as const)
    t.equal(shouldMove({ ...cluster, placement: spread, desired }, draining, engine), false, 'a stopped cluster stays')
  const onlyDatabase = { ...spread, 'postgres-2': 'b' }
  t.equal(shouldMove({ ...cluster, placement: onlyDatabase }, draining, engine), false, 'a database cannot leave it')
})
