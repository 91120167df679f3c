// The watch over tenants' stores: which runtimes it queries, which reports it accepts, and the resulting metrics.
import t from 'tap'
import type { StorageState, TenantStorageState } from '@tenantry/contract'
import { createStorageWatch } from '#control-plane/disk/jobs-storage.ts'
import { createMetrics } from '#control-plane/metrics.ts'
import type { RegionConfig } from '#control-plane/regions/region-config.ts'
import { startPlane } from '#test/support/control-plane/plane.ts'

const plane = await startPlane(t)
const { signal } = new AbortController()
const state = (phantoms: number, orphans: number, backlog: number): TenantStorageState => ({
  phantoms,
  orphans,
  backlog,
})

t.test('Reports of shared and own runtimes are summed, and silent runtimes are skipped', async (t) => {
  const [own, silent, paused] = [
    await plane.addTenant(),
    await plane.addTenant(),
    await plane.addTenant({ desired: 'paused', status: 'paused' }),
  ]
  const config: RegionConfig = {
    ...plane.region(),
    runtime_urls: ['http://a', 'http://b', 'http://away'],
    gateway_internal_urls: ['http://gate', 'http://gate-2'],
  }
  const queried: string[] = []
  const reported: Record<string, StorageState | undefined> = {
    'http://a': { tenants: { t_1: state(1, 2, 3), t_2: state(10, 0, 0) } },
    'http://b': { tenants: {} },
    // This runtime also reports another tenant, which the watch ignores.
    [own]: { tenants: { [own]: state(100, 200, 300), t_1: state(5_000, 5_000, 5_000) } },
  }
  const respond = (caller: string) => {
    queried.push(caller)
    const stated = reported[caller]
    if (stated === undefined) throw new Error('no response')
    return stated
  }
  const metrics = createMetrics({ all: () => new Map() }, () => new Date())
  const watch = createStorageWatch(
    { config, gatewayUrls: () => config.gateway_internal_urls },
    {
      ...plane,
      measure: metrics.storage,
      probe: {
        storageState: async (url) => respond(url),
        tenantStorageState: async (url, id) => (url === 'http://gate' ? respond(id) : respond('the other gateway')),
      },
    },
  )
  const read = async () => (await metrics.text()).split('\n').filter((line) => line.startsWith('tenantry_storage_'))
  t.same(await read(), [])
  t.ok((await watch.poll(signal)) > 0)
  t.same(
    queried.sort(),
    ['http://a', 'http://b', 'http://away', own, silent].sort(),
    'each runtime once, and no paused tenant',
  )
  t.notOk(queried.includes(paused))
  t.same(await read(), [
    `tenantry_storage_phantoms{region="${config.id}"} 111`,
    `tenantry_storage_orphans{region="${config.id}"} 202`,
    `tenantry_storage_backlog{region="${config.id}"} 303`,
  ])
  reported['http://a'] = { tenants: {} }
  reported[own] = undefined
  await watch.poll(signal)
  t.ok(
    (await read()).every((line) => line.endsWith(' 0')),
    'repaired state is no longer reported',
  )
})
