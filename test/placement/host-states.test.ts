// Hosts in the control database: what runs where, what is reserved, and the hosts that receive nothing.
import t from 'tap'
import { measureHosts } from '#control-plane/hosts/jobs.ts'
import type { ClusterOrigin } from '#control-plane/clusters/etcd-access.ts'
import { LeadershipLost } from '#control-plane/platform/leadership-lost.ts'
import { createPlacementStore } from '#control-plane/placement/store.ts'
import { assignMovingHosts } from '#control-plane/reconcile/assign-hosts.ts'
import { allocateServices, type ServiceRun } from '#control-plane/reconcile/converge-services.ts'
import { hostFailpointNames, noFailpoints, type Failpoint } from '#control-plane/reconcile/failpoints.ts'
import { createHostChoice } from '#control-plane/reconcile/host-choice.ts'
import { Observations } from '#control-plane/reconcile/observations.ts'
import { unobservedHome } from '#control-plane/reconcile/reconcile-store.ts'
import { createReconcileStore } from '#control-plane/reconcile/store.ts'
import type { Region } from '#control-plane/reconcile/region.ts'
import { ofModel } from '#control-plane/stacks/of-model.ts'
import { startPlane } from '#test/support/control-plane/plane.ts'
import { servingOn } from '../clusters/support.ts'

const plane = await startPlane(t)
const { epoch } = plane
const store = createReconcileStore(plane.database, plane.seal, plane.clock.now)
const placements = createPlacementStore(plane.database)
const regionId = plane.region().id
const { signal } = new AbortController()
const needs = ['postgres-1', 'postgres-2', 'postgres-3'].map((service) => ({ service, memoryBytes: 1_000 }))
const ofSingle = ['postgres', 'runtime'].map((service) => ({ service, memoryBytes: 1_000 }))
const all = { 'postgres-1': 'a', 'postgres-2': 'b', 'postgres-3': 'c' }
const notes: unknown[] = []
const setState = (host: string, state: 'active' | 'draining' | 'lost') =>
  plane.database.$transaction((transaction) =>
    placements.setState(regionId, host, state, { transaction, audit: (note) => void notes.push(note) }),
  )
/** Returns a run of the reconciler in a region with hosts that have this much memory. */
function runOn(
  bytes: Readonly<Record<string, number>>,
  failpoint: ServiceRun['failpoint'] = async () => undefined,
  { ofCluster = needs, origin = 'created' }: { ofCluster?: typeof needs; origin?: ClusterOrigin } = {},
) {
  const hostIds = Object.keys(bytes)
  const region: Partial<Region> = {
    spansHosts: true,
    engine: { hostIds, isDown: () => false } as unknown as NonNullable<Region['engine']>,
    subnets: 100,
    subnetsInUse: () => Promise.resolve([]),
    clusterOrigin: async () => origin,
    presentImages: async (images) => images,
    cluster: async ({ id }) => servingOn((await placements.of(id)).placement),
    needs: ({ isolation }) => Promise.resolve(isolation === 'database-per-tenant' ? ofSingle : ofCluster),
    capacities: async (reserved) =>
      hostIds.map((id) => ({ id, freeBytes: (bytes[id] ?? 0) - (reserved.get(id) ?? 0) })),
  }
  const run: Partial<ServiceRun> = {
    store,
    region: region as Region,
    epoch,
    failpoint,
    observations: new Observations(plane.clock),
    rejectedSubnets: new Map(),
  }
  return run as ServiceRun
}

async function snapshotOf(id: string) {
  const snapshot = await store.snapshot(id)
  if (snapshot === undefined) throw new Error('no tenant')
  return { ...snapshot, homeVersion: 'v' }
}

t.test('A placement is recorded with what it reserves, and ends with the tenant', async (t) => {
  const id = await plane.addTenant({ isolation: 'cluster-per-tenant' })
  t.same(await placements.assign(id, needs, all, epoch), all)
  t.match(await store.snapshot(id), { placement: all })
  t.same([...(await placements.reserved(regionId))].sort(), [
    ['a', 1_000],
    ['b', 1_000],
    ['c', 1_000],
  ])
  const larger = needs.map((need) => ({ ...need, memoryBytes: 2_000 }))
  t.same(await placements.assign(id, larger, { ...all, 'postgres-3': 'a' }, epoch), { ...all, 'postgres-3': 'a' })
  t.equal((await placements.reserved(regionId)).get('a'), 4_000)
  await t.rejects(placements.assign(id, needs, all, epoch - 1n), new LeadershipLost('Another control plane leads.'))
  await plane.sql('delete from tenants where id = $1', [id])
  t.equal((await placements.reserved(regionId)).size, 0)
})

t.test('The state of a host wakes its tenants, and clusters leave it', async (t) => {
  const [there, elsewhere] = [
    await plane.addTenant({ isolation: 'cluster-per-tenant' }),
    await plane.addTenant({ isolation: 'cluster-per-tenant' }),
  ]
  await placements.assign(there, needs, all, epoch)
  await placements.assign(elsewhere, needs, { 'postgres-1': 'a', 'postgres-2': 'b', 'postgres-3': 'a' }, epoch)
  const unsettled = async () =>
    (await store.unsettled('')).map(({ id }) => id).filter((id) => [there, elsewhere].includes(id))
  const before = await unsettled()
  await setState('c', 'draining')
  t.same([...(await placements.states(regionId))], [['c', 'draining']])
  t.same(notes.pop(), { action: 'host.state', target: 'c', detail: { region: regionId, state: 'draining' } })
  const woken = await plane.sql("select tenant_id from changes where kind = 'wanted' and tenant_id = any($1)", [
    [there, elsewhere],
  ])
  t.same(
    woken.map(({ tenant_id: id }) => id),
    [there],
  )
  t.same(
    (await unsettled()).filter((id) => !before.includes(id)),
    before.includes(there) ? [] : [there],
  )

  const roomy = { a: 10_000, b: 10_000, c: 10_000, d: 10_000 }
  const run = runOn(roomy)
  const snapshot = await snapshotOf(there)
  const { placement } = await allocateServices(snapshot, run, signal)
  t.same(placement, { ...all, 'postgres-3': 'd' }, 'the free host, and no other service moves')
  await setState('b', 'draining')
  const next = await allocateServices(await snapshotOf(there), run, signal)
  t.not(next.placement['postgres-2'], 'b', 'the next one follows when the first has the data')
  await placements.assign(there, needs, all, epoch)
  for (const desired of ['suspended', 'paused'] as const) {
    const stopped = await allocateServices({ ...(await snapshotOf(there)), desired }, run, signal)
    t.same(stopped.placement, all, 'a stopped cluster stays where its data is')
  }
  await setState('b', 'lost')
  const lost = { ...(await snapshotOf(there)), desired: 'suspended' } as const
  t.same((await allocateServices(lost, run, signal)).placement, all, 'also on a lost host')
  const unobserved = { ...lost, homeVersion: unobservedHome }
  t.same((await allocateServices(unobserved, run, signal)).placement, all, 'also after a recovery')
  const beginning = await allocateServices(unobserved, runOn(roomy, undefined, { origin: 'none' }), signal)
  t.same(beginning.placement, { ...all, 'postgres-2': 'd' }, 'unless it was lost with its region')
  await setState('b', 'active')
  const single = await plane.addTenant({ isolation: 'database-per-tenant' })
  const onHost = { postgres: 'c', runtime: 'c' }
  await placements.assign(single, ofSingle, onHost, epoch)
  const stays = await allocateServices(await snapshotOf(single), run, signal)
  t.same(stays.placement, onHost, 'a single database stays where its data is')
  await setState('c', 'active')
  t.equal((await placements.states(regionId)).size, 0)
  await plane.sql('delete from tenants where id = any($1)', [[there, elsewhere, single]])
})

t.test('For a larger plan, members with data do not leave their hosts together', async (t) => {
  const id = await plane.addTenant({ isolation: 'cluster-per-tenant' })
  await placements.assign(id, needs, all, epoch)
  const larger = needs.map((need) => ({ ...need, memoryBytes: 2_000 }))
  const assigned = async (bytes: Readonly<Record<string, number>>, desired: 'active' | 'suspended' | 'paused') =>
    allocateServices({ ...(await snapshotOf(id)), desired }, runOn(bytes, undefined, { ofCluster: larger }), signal)
  const full = { a: 1_000, b: 1_000, c: 1_000, d: 9_000, e: 9_000, f: 9_000 }
  for (const desired of ['suspended', 'paused', 'active'] as const) {
    const { placement, lacksMemory } = await assigned(full, desired)
    t.same(placement, all, desired)
    t.equal(lacksMemory, true)
  }
  const fits = { a: 2_000, b: 1_000, c: 2_000, d: 9_000 }
  t.same((await assigned(fits, 'paused')).placement, all, 'none of a stopped cluster')
  await setState('c', 'lost')
  const replaced = await assigned({ a: 1_000, b: 1_000, c: 1_000, d: 9_000 }, 'active')
  t.same(replaced.placement, { ...all, 'postgres-3': 'd' }, 'a lost host is left with the former sizes')
  t.equal(replaced.lacksMemory, true)
  t.equal((await placements.reserved(regionId)).get('d'), 1_000)
  await setState('c', 'active')
  await placements.assign(id, needs, all, epoch)
  const moved = await assigned(fits, 'active')
  t.same(moved.placement, { ...all, 'postgres-2': 'd' }, 'one of a running cluster, whose others have the data')
  t.equal(moved.lacksMemory, undefined)
  t.same((await placements.of(id)).reserved, { 'postgres-1': 2_000, 'postgres-2': 2_000, 'postgres-3': 2_000 })
  await plane.sql('delete from tenants where id = $1', [id])
})

t.test('A cluster that a backup has filled moves one member at a time before its home is recorded', async (t) => {
  const id = await plane.addTenant({ isolation: 'cluster-per-tenant' })
  await setState('a', 'draining')
  await setState('b', 'draining')
  const moved = async (origin: ClusterOrigin) => {
    await placements.assign(id, needs, all, epoch)
    const run = runOn({ a: 0, b: 0, c: 9_000, d: 9_000, e: 9_000 }, undefined, { origin })
    const { placement } = await allocateServices({ ...(await snapshotOf(id)), homeVersion: undefined }, run, signal)
    return Object.keys(all).filter((member) => placement[member] !== (all as Record<string, string>)[member])
  }
  t.same(await moved('adopted'), ['postgres-1'])
  t.same(await moved('created'), ['postgres-1', 'postgres-2'], 'an empty one has nothing to copy')
  await setState('a', 'active')
  await setState('b', 'active')
  await plane.sql('delete from tenants where id = $1', [id])
})

t.test('A move gives a tenant services on other hosts, and the reconciler moves none of them', async (t) => {
  const id = await plane.addTenant({ isolation: 'database-per-tenant' })
  const onHost = { postgres: 'a', runtime: 'a' }
  await placements.assign(id, ofSingle, onHost, epoch)
  const images = { postgres: 'p', runtime: 'r' }
  const moving = { isolation: 'cluster-per-tenant', images } as const
  const run = runOn({ a: 3_500, b: 1_000, c: 1_000 })
  const assigned = async (bytes: Readonly<Record<string, number>>) => {
    const { region } = runOn(bytes)
    const deps = { region, placements, failpoint: run.failpoint, epoch }
    return assignMovingHosts({ ...(await snapshotOf(id)), moving }, deps, signal)
  }
  t.equal(
    (await assignMovingHosts(await snapshotOf(id), { ...run, placements }, signal)).placement['postgres-1'],
    undefined,
  )
  await t.rejects(assigned({ a: 3_500, b: 999, c: 999 }), { code: 'REGION_FULL' })
  t.same((await placements.of(id)).placement, onHost, 'nothing is recorded')
  const { placement, reserved } = await assigned({ a: 3_500, b: 1_000, c: 1_000 })
  const cluster = ofModel(placement, 'cluster-per-tenant')
  t.same(Object.values(cluster).sort(), ['a', 'b', 'c'])
  t.same(placement, { ...cluster, ...onHost })
  t.equal(Object.keys(reserved).length, 5)

  await setState('b', 'draining')
  const snapshot = { ...(await snapshotOf(id)), moving }
  t.same((await allocateServices(snapshot, run, signal)).placement, placement, 'during the move, all stay')
  t.same((await assigned({ a: 500, b: 0, c: 0 })).placement, placement, 'a second attempt finds them')
  const switched = { ...snapshot, isolation: 'cluster-per-tenant' as const }
  await plane.sql('delete from placements where tenant_id = $1 and service = any($2)', [id, Object.keys(onHost)])
  const after = (await allocateServices(switched, runOn({ a: 9_000, b: 9_000, c: 9_000 }), signal)).placement
  t.notOk(Object.values(after).includes('b'), 'after it, the members leave the host')
  t.equal(after['postgres'], undefined)
  await setState('b', 'active')
  await plane.sql('delete from tenants where id = $1', [id])
})

t.test('A replacement of a lost host is remembered until the restore has succeeded or failed', async (t) => {
  const id = await plane.addTenant({ isolation: 'database-per-tenant' })
  const on = (host: string) => ({ postgres: host, runtime: host })
  await placements.assign(id, ofSingle, on('a'), epoch)
  const { region } = runOn({ a: 0, b: 10_000, c: 5_000 })
  const hosts = createHostChoice({
    regions: new Map([[regionId, region]]),
    placements,
    failpoint: () => undefined,
  })
  t.equal(await hosts.replace(await snapshotOf(id), epoch, signal), undefined, 'a host that is not lost may return')

  await setState('a', 'lost')
  t.match(await hosts.replace(await snapshotOf(id), epoch, signal), { placement: on('b'), isReplaced: true })
  t.match(await snapshotOf(id), { placement: on('b'), isReplaced: true }, 'also for another leader')
  await setState('b', 'lost')
  t.match(await hosts.replace(await snapshotOf(id), epoch, signal), { placement: on('c'), isReplaced: true })
  await t.rejects(hosts.endReplacement(id, false, epoch - 1n), new LeadershipLost('Another control plane leads.'))
  await hosts.endReplacement(id, false, epoch)
  const before = await snapshotOf(id)
  t.match(before, { placement: on('a') }, 'the first of the lost hosts has the data')
  t.equal(before.isReplaced, undefined)

  await hosts.replace(before, epoch, signal)
  await hosts.endReplacement(id, true, epoch)
  const after = await snapshotOf(id)
  t.match(after, { placement: on('c') })
  t.equal(after.isReplaced, undefined)
  await setState('a', 'active')
  await setState('b', 'active')
  await plane.sql('delete from tenants where id = $1', [id])
})

t.test('A full region is reported, and nothing is recorded', async (t) => {
  const id = await plane.addTenant({ isolation: 'cluster-per-tenant' })
  await t.rejects(allocateServices(await snapshotOf(id), runOn({ a: 999 }), signal), {
    code: 'REGION_FULL',
  })
  t.same((await store.snapshot(id))?.placement, {})
})

/** Starts the job that measures three hosts, which counts one as lost after a minute. Those in `silent` do not respond. */
function startMeasuring(silent: ReadonlySet<string>, failpoint: Failpoint = noFailpoints) {
  const engine = {
    hostIds: ['a', 'b', 'c'],
    isDown: (id: string) => silent.has(id),
    observe: () => Promise.resolve({ containers: [], networks: [], volumes: [], unlabelledVolumes: [] }),
    // A host that has lost its power does not reject connections.
    info: (signal: AbortSignal, id = '') =>
      silent.has(id)
        ? new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('no response'))))
        : Promise.resolve({ name: id, apiVersion: '1', memoryBytes: 1, cpus: 1, disk: undefined, warnings: [] }),
  }
  const config = { ...plane.region(), docker: { ...plane.region().docker, hosts: [], lost_after_seconds: 60 } }
  const regions = new Map([[regionId, { config, engine, stackId: 'x' } as unknown as Region]])
  const job = measureHosts({
    store: { record: () => Promise.resolve(), evict: () => undefined },
    regions,
    clock: plane.clock,
    placements,
    failpoint,
    log: plane.log,
  })
  const lost = new AbortController()
  const running = job({ epoch, lost: lost.signal })
  /** Lets time pass, in steps between which the job reads and writes. */
  const pass = async (seconds: number, step = 1) => {
    for (let passed = 0; passed < seconds; passed += step) {
      plane.clock.pass(step)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  const stop = () => lost.abort()
  const end = async () => {
    stop()
    await running
  }
  return { pass, stop, end }
}

const states = async () => [...(await placements.states(regionId))]

t.test('A silent host is lost after its time, unless most hosts are silent, and returns by itself', async (t) => {
  const silent = new Set<string>()
  const { pass, end } = startMeasuring(silent)
  silent.add('c')
  await pass(30)
  t.same(await states(), [], 'not yet')
  await pass(240)
  t.same(await states(), [['c', 'lost']])
  silent.add('b')
  await pass(240)
  t.same(await states(), [['c', 'lost']], 'two of three are no proof')
  silent.clear()
  await pass(60)
  t.same(await states(), [], 'its return is noticed')
  await setState('a', 'lost')
  await pass(240)
  t.same(await states(), [['a', 'lost']], "an operator's decision stays")
  await end()
  await setState('a', 'active')
})

t.test('A control plane that is killed while it records a lost host is followed by one that records it', async (t) => {
  const recordedAt = { 'lost.before': [], 'lost.recorded': [['c', 'lost']] } as const
  const silent = new Set(['c'])
  for (const name of hostFailpointNames) {
    const passes: string[] = []
    const dying = startMeasuring(silent, (reached) => {
      if (reached !== name) return
      passes.push(reached)
      dying.stop()
      throw new Error('killed')
    })
    await dying.pass(200, 5)
    await dying.end()
    t.same(passes, [name])
    t.same(await states(), recordedAt[name], name)
    const next = startMeasuring(silent)
    await next.pass(200, 5)
    await next.end()
    t.same(await states(), [['c', 'lost']], 'the next one records it')
    await placements.noteLost(regionId, 'c', false, epoch)
  }
})

t.test('Tenants that are created at once do not reserve the same memory', async (t) => {
  const ids = await Promise.all([1, 2, 3].map(() => plane.addTenant({ isolation: 'cluster-per-tenant' })))
  const before = await placements.reserved(regionId)
  t.equal(before.size, 0, 'nothing else is there')
  const allocated = await Promise.allSettled(
    // Two tenants fit.
    ids.map(async (id) => allocateServices(await snapshotOf(id), runOn({ a: 3_000, b: 3_000 }), signal)),
  )
  t.same(allocated.map(({ status }) => status).sort(), ['fulfilled', 'fulfilled', 'rejected'])
  t.same([...(await placements.reserved(regionId))].sort(), [
    ['a', 3_000],
    ['b', 3_000],
  ])
})

t.test('A control plane that is killed while it places services leaves all of them placed, or none', async (t) => {
  await plane.sql('delete from tenants where region_id = $1', [regionId])
  const recordedAt = { 'allocate.chosen': 0, 'allocate.placed': 3 } as const
  for (const [name, recorded] of Object.entries(recordedAt)) {
    const id = await plane.addTenant({ isolation: 'cluster-per-tenant' })
    const hosts = { a: 10_000, b: 10_000, c: 10_000 }
    const dying = runOn(hosts, async (reached) => {
      if (reached === name) throw new Error('killed')
    })
    await t.rejects(allocateServices(await snapshotOf(id), dying, signal), { message: 'killed' })
    const left = (await snapshotOf(id)).placement
    t.equal(Object.keys(left).length, recorded, name)
    const { placement } = await allocateServices(await snapshotOf(id), runOn(hosts), signal)
    t.equal(new Set(Object.values(placement)).size, 3)
    if (recorded > 0) t.same(placement, left, 'what was recorded stays')
    t.same([...(await placements.reserved(regionId)).values()], [1_000, 1_000, 1_000], 'reserved once')

    await setState('c', 'draining')
    const moving = runOn({ ...hosts, d: 10_000 }, dying.failpoint)
    await t.rejects(allocateServices(await snapshotOf(id), moving, signal), { message: 'killed' })
    const moved = await allocateServices(await snapshotOf(id), runOn({ ...hosts, d: 10_000 }), signal)
    t.same(new Set(Object.values(moved.placement)), new Set(['a', 'b', 'd']), 'the drain is completed')
    t.equal((await placements.reserved(regionId)).get('c'), undefined)
    await setState('c', 'active')
    await plane.sql('delete from tenants where id = $1', [id])
  }
})
