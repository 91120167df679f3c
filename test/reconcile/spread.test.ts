// The condition `Spread` of tenants on several hosts: a host that falls silent or returns makes the recorded one outdated.
import t from 'tap'
import type { Engine } from '#control-plane/engines/engine.ts'
import type { ConditionState } from '#control-plane/reconcile/conditions.ts'
import { isSpreadOutdated, spreadOf } from '#control-plane/reconcile/spread.ts'
import type { Isolation } from '#control-plane/stacks/isolation.ts'

const hosts = { 'database-per-tenant': ['a', 'a', 'a'], 'cluster-per-tenant': ['a', 'b', 'c'] } as const

function placed(isolation: 'database-per-tenant' | 'cluster-per-tenant', spread?: ConditionState) {
  const [first, second, third] = hosts[isolation]
  const placement = { 'postgres-1': first, 'postgres-2': second, 'postgres-3': third }
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
