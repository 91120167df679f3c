// The watch over tenants' stores: whom it asks, whom it believes, and what the metrics tell then.
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

t.test(
  "what shared runtimes and tenants' own ones tell is summed, and whoever does not answer is passed by",
  async (t) => {
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
    const requested: string[] = []
    const reported: Record<string, StorageState | undefined> = {
      'http://a': { tenants: { t_1: state(1, 2, 3), t_2: state(10, 0, 0) } },
      'http://b': { tenants: {} },
      // It speaks of others as well: that is not its to say.
      [own]: { tenants: { [own]: state(100, 200, 300), t_1: state(5_000, 5_000, 5_000) } },
    }
    const response = (caller: string) => {
      requested.push(caller)
      const stated = reported[caller]
      if (stated === undefined) throw new Error('no answer')
      return stated
    }
    const metrics = createMetrics({ all: () => new Map() }, () => new Date())
    const watch = createStorageWatch(
      { config },
      {
        ...plane,
        measure: metrics.storage,
        probe: {
          storageState: async (url) => response(url),
          tenantStorageState: async (url, id) => (url === 'http://gate' ? response(id) : response('the other gateway')),
        },
      },
    )
    const read = async () => (await metrics.text()).split('\n').filter((line) => line.startsWith('tenantry_storage_'))
    t.same(await read(), [])
    t.ok((await watch.poll(signal)) > 0)
    t.same(
      requested.sort(),
      ['http://a', 'http://b', 'http://away', own, silent].sort(),
      'each once, and nobody who is paused',
    )
    t.notOk(requested.includes(paused))
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
      'what was mended is not told any more',
    )
  },
)
