// The ledger of a rebalance's moves between hosts: what begins, what is skipped with which reason, and that a former leader writes nothing.
import t from 'tap'
import { LeadershipLost } from '#control-plane/platform/leadership-lost.ts'
import { createPlacementStore } from '#control-plane/placement/store.ts'
import type { Rebalance } from '#control-plane/rebalance/rebalance.ts'
import { createRebalanceLedger } from '#control-plane/rebalance/store-ledger.ts'
import { createRebalanceStore } from '#control-plane/rebalance/store.ts'
import { createTenantStore } from '#control-plane/tenants/store.ts'
import { startPlane } from '#test/support/control-plane/plane.ts'

const plane = await startPlane(t)
const { database, seal, epoch } = plane
const { now } = plane.clock
const tenants = createTenantStore({ database, seal, now })
const ledger = createRebalanceLedger(database, tenants, now)
const store = createRebalanceStore({ database, now })
const placements = createPlacementStore(database)
const region = plane.region().id
const hosts = ['a', 'b', 'c', 'd'].map((id) => ({ id, freeBytes: 2_000 }))
const members = ['postgres-1', 'postgres-2', 'postgres-3']
const needs = members.map((service) => ({ service, memoryBytes: 1_000 }))
const service = 'postgres-3'

/** Makes a rebalance that moves a member of a new cluster from host `c` to host `d`, and makes it the primary. */
async function rebalanceOf(change: Record<string, unknown> = {}) {
  const tenantId = await plane.addTenant({ isolation: 'cluster-per-tenant', ...change })
  await placements.assign(tenantId, needs, { 'postgres-1': 'a', 'postgres-2': 'b', 'postgres-3': 'c' }, epoch)
  const plan = {
    moves: [],
    serviceMoves: [{ tenantId, service, from: 'c', to: 'd', bytes: 1_000 }],
    switchovers: [{ tenantId, from: 'a', to: 'd', service: 'postgres-1', targetService: service }],
  }
  const { id } = await database.$transaction((transaction) =>
    store.create(region, plan, { transaction, audit: () => undefined }),
  )
  const read = () => store.get(region, id)
  const hostOf = async () => (await placements.of(tenantId)).placement[service]
  const end = () => plane.sql("update rebalances set state = 'done', finished_at = now() where id = $1", [id])
  return { tenantId, read, hostOf, end }
}

const stepsOf = ({ moves: [move, switchover] }: Rebalance) => {
  if (move === undefined || switchover === undefined) throw new Error('a step is missing')
  return { move, switchover }
}
const beginMove = async (rebalance: Rebalance, given = hosts, under = epoch) =>
  ledger.beginService(rebalance, stepsOf(rebalance).move, given, under)

t.test('A move is recorded with its operation at once, and has ended when that has', async (t) => {
  const { tenantId, read, hostOf, end } = await rebalanceOf()
  await t.rejects(beginMove(await read(), hosts, epoch - 1n), new LeadershipLost('Another control plane leads.'))
  t.equal(await hostOf(), 'c', 'a former leader moves nothing')
  t.equal(await beginMove(await read()), true)
  t.equal(await hostOf(), 'd')
  const { move, switchover } = stepsOf(await read())
  t.match([move, switchover], [{ state: 'moving' }, { state: 'waiting', operationId: undefined }])
  t.match(await tenants.getOperation(move.operationId ?? ''), { kind: 'move_service', state: 'pending', generation: 2 })
  t.equal(await ledger.beginSwitchover(await read(), switchover, epoch), false, 'not during the move')
  t.equal(stepsOf(await read()).switchover.state, 'waiting')

  await ledger.settle(await read(), epoch)
  t.equal(stepsOf(await read()).move.state, 'moving')
  await plane.settle()
  await t.rejects(ledger.settle(await read(), epoch - 1n), new LeadershipLost('Another control plane leads.'))
  await ledger.settle(await read(), epoch)
  t.equal(stepsOf(await read()).move.state, 'moved')
  t.equal(await ledger.beginSwitchover(await read(), stepsOf(await read()).switchover, epoch), true)
  const [operation] = await plane.sql(
    'select kind, switchover from operations where tenant_id = $1 and generation = 3',
    [tenantId],
  )
  t.match(operation, { kind: 'switchover', switchover: { from: 'postgres-1', to: service } })
  await end()
})

t.test('A service that has got another host does not count as moved', async (t) => {
  const { tenantId, read, end } = await rebalanceOf()
  await beginMove(await read())
  await plane.sql("update placements set host_id = 'b' where tenant_id = $1 and service = $2", [tenantId, service])
  await plane.settle()
  await ledger.settle(await read(), epoch)
  t.match(stepsOf(await read()).move, { state: 'failed', error: 'The service has got another host in the meantime.' })
  await end()
})

t.test('What is not possible any more is skipped with its reason', async (t) => {
  const state = (host: string) =>
    plane.sql("insert into host_states (region_id, host_id, state, is_automatic) values ($1, $2, 'draining', false)", [
      region,
      host,
    ])
  const cases: [string, RegExp, (tenantId: string) => Promise<unknown>, typeof hosts?][] = [
    ['drained', /receives no services any more/, () => state('d')],
    ['silent', /does not respond/, async () => undefined, hosts.slice(0, 3)],
    ['full', /not have enough memory/, async () => undefined, hosts.map((host) => ({ ...host, freeBytes: 999 }))],
    [
      'moved',
      /not on the host "c" any more/,
      (id) => plane.sql("update placements set host_id = 'b' where tenant_id = $1 and service = $2", [id, service]),
    ],
    [
      'worse',
      /fewer hosts or zones/,
      (id) => plane.sql("update placements set host_id = 'd' where tenant_id = $1 and service = 'postgres-1'", [id]),
    ],
    [
      'suspended',
      /Only a ready tenant/,
      (id) => plane.sql("update tenants set desired = 'suspended' where id = $1", [id]),
    ],
    ['failed', /Only a ready tenant/, (id) => plane.sql("update tenants set status = 'failed' where id = $1", [id])],
    [
      'deleted',
      /being deleted/,
      (id) => plane.sql("update tenants set desired = 'deleted', purge_after = now() where id = $1", [id]),
    ],
    ['purged', /no such tenant/i, (id) => plane.sql('delete from tenants where id = $1', [id])],
  ]
  for (const [name, error, change, given] of cases) {
    const { tenantId, read, end } = await rebalanceOf()
    await change(tenantId)
    const before = await placements.of(tenantId)
    t.equal(await beginMove(await read(), given), false, name)
    t.match(stepsOf(await read()).move, { state: 'skipped', error }, name)
    t.same(await placements.of(tenantId), before)
    await plane.sql('delete from host_states')
    await end()
  }
})

t.test('A switchover to a member on another host than planned is skipped', async (t) => {
  const { read, end } = await rebalanceOf()
  t.equal(await ledger.beginSwitchover(await read(), stepsOf(await read()).switchover, epoch), false)
  t.match(stepsOf(await read()).switchover, { state: 'skipped', error: /not on the host "d" any more/ })
  await end()
})

t.test('A canceled rebalance begins nothing', async (t) => {
  const { read, hostOf, end } = await rebalanceOf()
  const rebalance = await read()
  await plane.sql("update rebalances set state = 'canceling' where id = $1", [rebalance.id])
  t.equal(await beginMove(rebalance), false)
  t.equal(await hostOf(), 'c')
  await ledger.finish(rebalance, epoch)
  t.match(await read(), { state: 'canceled', moves: [{ state: 'skipped' }, { state: 'skipped' }] })
  await end()
})
