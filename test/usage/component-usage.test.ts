// The present usage of a tenant's own services: of one Postgres and runtime, or of each service of a cluster.
import t from 'tap'
import { systemClock } from '#control-plane/platform/clock.ts'
import { componentUsage } from '#control-plane/usage/component-usage.ts'
import type { TenantStatusSource } from '#control-plane/health/index.ts'

const volumes = { data: 1, 'data-1': 11, 'data-2': 12, 'data-3': 13, files: 5 }
const stats = { cpuNanoseconds: 2e9, memoryBytes: 7 }
const sourceOf = (services: readonly string[]) =>
  ({
    snapshot: { id: 't_0123456789abcdef0123' },
    engine: {
      stats: async () => Object.fromEntries(services.map((service) => [service, stats])),
      volumeBytes: async () => volumes,
    },
  }) as unknown as TenantStatusSource
const running = (disk: number | null) => ({ cpu_seconds: 2, memory_bytes: 7, disk_bytes: disk })
const none = { cpu_seconds: null, memory_bytes: null, disk_bytes: null }

t.test('A tenant with one Postgres has two components', async (t) => {
  t.same(await componentUsage(systemClock, sourceOf(['postgres', 'runtime']), 'database-per-tenant'), {
    postgres: running(1),
    runtime: running(5),
  })
  t.same(await componentUsage(systemClock, undefined, 'database-per-tenant'), { postgres: none, runtime: none })
})

t.test('A cluster has the usage of each service, and the disk of each member', async (t) => {
  const services = ['postgres-1', 'postgres-3', 'router-1', 'runtime-1', 'runtime-2']
  t.same(await componentUsage(systemClock, sourceOf(services), 'cluster-per-tenant'), {
    'postgres-1': running(11),
    'postgres-2': { ...none, disk_bytes: 12 },
    'postgres-3': running(13),
    'router-1': running(null),
    'router-2': none,
    'runtime-1': running(5),
    'runtime-2': running(null),
  })
})
