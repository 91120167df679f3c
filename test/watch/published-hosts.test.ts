// The addresses of a tenant's own services in a region on several hosts: those of a single database contain its host.
import t from 'tap'
import { createPlacementStore } from '#control-plane/placement/store.ts'
import type { RegionConfig } from '#control-plane/regions/region-config.ts'
import { createPublishedSource } from '#control-plane/watch/store.ts'
import { startPlane } from '#test/support/control-plane/plane.ts'

const plane = await startPlane(t)
const docker = { hosts: [{ id: 'a' }, { id: 'b' }, { id: 'c' }] } as unknown as NonNullable<RegionConfig['docker']>
const limits = {
  maxUploadBytes: 1,
  homeLimits: { functions: {}, schemas: {}, events: {}, invocations: {}, realtime: {} },
}
const regions = [{ ...plane.region(), docker }]
const source = createPublishedSource(plane.database, plane.seal, regions, limits, plane.clock.now)
const placements = createPlacementStore(plane.database)

/** Returns the hosts of the addresses that gateways and the tenant's runtimes receive. */
async function addresses(id: string) {
  const [entry] = await source.some(new Set([id]))
  const hostOf = (url: string) => new URL(url).hostname
  return {
    runtimes: entry?.route.runtimes.map(hostOf),
    postgres: entry?.route.postgres?.split(':')[0],
    home: hostOf(entry?.manifest?.home.url ?? ''),
  }
}
const assign = (id: string, placement: Record<string, string>) => {
  const needs = Object.keys(placement).map((service) => ({ service, memoryBytes: 1 }))
  return placements.assign(id, needs, placement, plane.epoch)
}

t.test('A single database is addressed on its host, also while a cluster is created', async (t) => {
  const id = await plane.addTenant()
  await assign(id, { postgres: 'b', runtime: 'b' })
  const expected = { runtimes: [`${id}-runtime-b`], postgres: `${id}-postgres-b`, home: `${id}-postgres-b` }
  t.same(await addresses(id), expected)
  await assign(id, { 'postgres-1': 'a', 'postgres-2': 'b', 'postgres-3': 'c', 'runtime-1': 'a', 'runtime-2': 'c' })
  t.same(await addresses(id), expected)
})

t.test('A cluster is addressed by its primary, wherever that is', async (t) => {
  const id = await plane.addTenant({ isolation: 'cluster-per-tenant' })
  await assign(id, { 'postgres-1': 'a', 'postgres-2': 'b', 'postgres-3': 'c', 'runtime-1': 'a', 'runtime-2': 'c' })
  t.match(await addresses(id), { postgres: `${id}-primary`, home: `${id}-primary` })
})
