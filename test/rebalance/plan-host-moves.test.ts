// Plans of rebalances over hosts, without a server: which services move, and which switchovers spread the primaries.
import fc from 'fast-check'
import t from 'tap'
import { chooseHosts } from '#control-plane/placement/choose-hosts.ts'
import {
  isSpreadWorse,
  maxPlannedHostMoves,
  planHostMoves,
  type HostLoad,
  type PlacedCluster,
} from '#control-plane/rebalance/plan-host-moves.ts'
import { effort, seed } from '#test/support/effort.ts'

const members = ['postgres-1', 'postgres-2', 'postgres-3']
const services = [...members, 'router-1', 'router-2', 'runtime-1', 'runtime-2']
const memoryOf = (service: string) =>
  service.startsWith('postgres') ? 1_000 : service.startsWith('runtime') ? 500 : 10
const reserved = Object.fromEntries(services.map((service) => [service, memoryOf(service)]))

function cluster(tenantId: string, hosts: string, change: Partial<PlacedCluster> = {}): PlacedCluster {
  const placement = Object.fromEntries(hosts.split(' ').map((host, at) => [services[at] ?? '', host]))
  const primary = change.primary ?? 'postgres-1'
  const candidates = members.filter((member) => member !== primary)
  return { tenantId, placement, reserved, primary, candidates, isMovable: true, ...change }
}

function hostsWith(sizes: Readonly<Record<string, number>>, clusters: readonly PlacedCluster[], zones: string[] = []) {
  return Object.entries(sizes).map(([id, totalBytes], at): HostLoad => {
    const own = clusters.flatMap(({ placement }) => Object.keys(placement).filter((name) => placement[name] === id))
    const used = own.reduce((sum, service) => sum + memoryOf(service), 0)
    return { id, totalBytes, freeBytes: totalBytes - used, zone: zones[at] }
  })
}

t.test('Services go from the fullest host to a new one, but not the primary, and not to a sibling', async (t) => {
  const clusters = ['x', 'y'].map((id) => cluster(id, 'a b c a b a b'))
  const hosts = hostsWith({ a: 4_000, b: 4_000, c: 4_000, d: 4_000 }, clusters)
  const { serviceMoves, after } = planHostMoves(hosts, clusters)
  t.ok(serviceMoves.length > 0)
  for (const { service, to, bytes } of serviceMoves) {
    t.not(service, 'postgres-1')
    t.equal(bytes, memoryOf(service))
    t.not(to, 'a')
  }
  t.same(
    serviceMoves.map(({ tenantId, service }) => `${tenantId} ${service}`).sort(),
    [...new Set(serviceMoves.map(({ tenantId, service }) => `${tenantId} ${service}`))].sort(),
    'each moves once',
  )
  const parts = after.map(({ freeBytes, totalBytes }) => freeBytes / totalBytes)
  const before = hosts.map(({ freeBytes, totalBytes }) => freeBytes / totalBytes)
  t.ok(Math.min(...parts) > Math.min(...before))
  t.equal(
    after.reduce((sum, one) => sum + one.services, 0),
    14,
  )
})

t.test('Hosts that are about equal, or that only routers could balance, stay as they are', async (t) => {
  const clusters = [cluster('x', 'a b c a b a b')]
  t.same(planHostMoves(hostsWith({ a: 50_000, b: 50_000, c: 50_000 }, clusters), clusters).serviceMoves, [])
  t.same(planHostMoves(hostsWith({ a: 2_000, b: 2_000, c: 1_200 }, clusters), clusters).serviceMoves, [])
  t.same(planHostMoves([], clusters), { serviceMoves: [], switchovers: [], after: [] })
})

t.test('Tenants that cannot move now stay, and their primaries count', async (t) => {
  const busy = ['x', 'y', 'z'].map((id) => cluster(id, 'a b c a b a b', { isMovable: false }))
  const { serviceMoves, switchovers, after } = planHostMoves(
    hostsWith({ a: 9_000, b: 9_000, c: 9_000, d: 9_000 }, busy),
    busy,
  )
  t.same([serviceMoves, switchovers], [[], []])
  t.same(
    after.map(({ primaries }) => primaries),
    [3, 0, 0, 0],
  )
})

t.test('Switchovers spread the primaries, and only to members that can take over and do not move', async (t) => {
  const clusters = ['x', 'y', 'z'].map((id) => cluster(id, 'a b c b c a b'))
  const hosts = hostsWith({ a: 90_000, b: 90_000, c: 90_000 }, clusters)
  t.same(planHostMoves(hosts, clusters).switchovers, [
    { tenantId: 'x', from: 'a', to: 'b', service: 'postgres-1', targetService: 'postgres-2' },
    { tenantId: 'y', from: 'a', to: 'c', service: 'postgres-1', targetService: 'postgres-3' },
  ])
  const [x] = clusters
  const stuck = clusters.map((one) => ({ ...one, candidates: one === x ? ['postgres-3'] : [] }))
  t.match(planHostMoves(hosts, stuck).switchovers, [{ tenantId: 'x', to: 'c' }])
  const draining = hosts.filter(({ id }) => id !== 'b')
  t.match(planHostMoves(draining, clusters).switchovers, [{ tenantId: 'x', to: 'c' }], 'none to a host that drains')
})

t.test('Zones are not given up for memory', async (t) => {
  const { placement } = cluster('x', 'a b c a b a b')
  const zoned = (zones: string[]) => ['a', 'b', 'c', 'd'].map((id, at) => ({ id, zone: zones[at] }))
  const move = { service: 'postgres-1', to: 'd' }
  t.equal(isSpreadWorse(placement, move, zoned(['1', '2', '3', '3'])), true)
  t.equal(isSpreadWorse(placement, move, zoned(['1', '1', '3', '4'])), false)
  t.equal(isSpreadWorse(placement, { ...move, to: 'b' }, zoned([])), true)
  t.equal(isSpreadWorse(placement, { service: 'postgres-1', to: 'c' }, zoned([])), true)
})

t.test('Of any hosts and clusters, a plan balances, and never makes anything worse', async (t) => {
  t.comment(`seed ${seed}`)
  const host = fc.record({
    bytes: fc.integer({ min: 3_000, max: 40_000 }),
    zone: fc.constantFrom('x', 'y', undefined),
    isRoomyFirst: fc.boolean(),
  })
  const tenant = fc.record({
    primary: fc.constantFrom(...members, undefined),
    lagging: fc.option(fc.constantFrom(...members), { nil: undefined }),
    isMovable: fc.boolean(),
    skew: fc.array(fc.integer({ min: 0, max: 100_000 }), { minLength: 6, maxLength: 6 }),
  })
  fc.assert(
    fc.property(
      fc.array(host, { minLength: 1, maxLength: 6 }),
      fc.array(tenant, { maxLength: 12 }),
      (givenHosts, tenants) => {
        const ids = givenHosts.map((_, at) => `h${at}`)
        const needs = services.map((service) => ({ service, memoryBytes: memoryOf(service) }))
        const clusters = tenants.map(({ primary, lagging, isMovable, skew }, at): PlacedCluster => {
          const roomy = ids.map((id, n) => ({ id, zone: givenHosts[n]?.zone, freeBytes: 1_000_000 + (skew[n] ?? 0) }))
          const placement = chooseHosts(needs, roomy, {}, false) ?? {}
          const candidates = primary === undefined ? [] : members.filter((one) => one !== primary && one !== lagging)
          return { tenantId: `t${at}`, placement, reserved, primary, candidates, isMovable }
        })
        const sizes = Object.fromEntries(givenHosts.map(({ bytes }, at) => [`h${at}`, bytes]))
        const hosts = hostsWith(
          sizes,
          clusters,
          givenHosts.map(({ zone }) => zone ?? ''),
        ).map((one) => ({ ...one, zone: one.zone === '' ? undefined : one.zone }))
        const { serviceMoves, switchovers, after } = planHostMoves(hosts, clusters)
        const free = new Map(hosts.map((one) => [one.id, { ...one }]))
        const parts = () => [...free.values()].map(({ freeBytes, totalBytes }) => freeBytes / totalBytes)
        const placements = new Map(clusters.map(({ tenantId, placement }) => [tenantId, placement]))
        const of = (id: string) => clusters.find(({ tenantId }) => tenantId === id)
        let last = Math.min(...parts())
        for (const { tenantId, service, from, to, bytes } of serviceMoves) {
          const [source, target, placement] = [free.get(from), free.get(to), placements.get(tenantId) ?? {}]
          if (source === undefined || target === undefined || placement[service] !== from) return false
          if (service === of(tenantId)?.primary || of(tenantId)?.isMovable !== true) return false
          if (isSpreadWorse(placement, { service, to }, hosts) || bytes > target.freeBytes) return false
          source.freeBytes += bytes
          target.freeBytes -= bytes
          placements.set(tenantId, { ...placement, [service]: to })
          const minimum = Math.min(...parts())
          if (minimum < last - 1e-9) return false
          last = minimum
        }
        const count = (id: string) =>
          clusters.filter(
            ({ tenantId, primary }) => primary !== undefined && placements.get(tenantId)?.[primary] === id,
          ).length
        const primaries = new Map(ids.map((id) => [id, count(id)]))
        for (const { tenantId, from, to, service, targetService } of switchovers) {
          const one = of(tenantId)
          if (one?.primary !== service || !one.candidates.includes(targetService) || !one.isMovable) return false
          if (placements.get(tenantId)?.[service] !== from || placements.get(tenantId)?.[targetService] !== to)
            return false
          if ((primaries.get(from) ?? 0) - (primaries.get(to) ?? 0) < 2) return false
          primaries.set(from, (primaries.get(from) ?? 0) - 1)
          primaries.set(to, (primaries.get(to) ?? 0) + 1)
        }
        return (
          Math.max(serviceMoves.length, switchovers.length) <= maxPlannedHostMoves &&
          new Set(serviceMoves.map(({ tenantId, service }) => `${tenantId} ${service}`)).size === serviceMoves.length &&
          new Set(switchovers.map(({ tenantId }) => tenantId)).size === switchovers.length &&
          after.every(
            ({ id, freeBytes, primaries: here }) => freeBytes === free.get(id)?.freeBytes && here === primaries.get(id),
          )
        )
      },
    ),
    { seed, numRuns: effort({ small: 300, full: 20_000 }) },
  )
})
