// The region `cloud` on a fake engine. Each tenant gets its own services. All work on homes succeeds without a database.
import type { InternalToken } from '@tenantry/contract'
import type { Clock } from '#control-plane/platform/clock.ts'
import type { HomeDatabases } from '#control-plane/homes/home-databases.ts'
import type { HomeServer } from '#control-plane/homes/home-server.ts'
import { createRegion, type Region } from '#control-plane/reconcile/region.ts'
import type { RegionConfig } from '#control-plane/regions/region-config.ts'
import type { FakeEngine } from './fake-engine.ts'

export const cloudConfig: RegionConfig = {
  id: 'cloud',
  engine: 'docker',
  domain: 'cloud.test',
  gateway_url: 'http://127.0.0.1:4501',
  postgres_url: 'postgresql://postgres@cloud.invalid/postgres',
  runtime_urls: ['http://runtime.invalid'],
  gateway_internal_urls: ['http://gateway.invalid'],
  database_host: 'cloud.test:4503',
  superuserPassword: 'none',
  docker: {
    host: 'unix:///nowhere',
    network_range: '10.99.0.0/20',
    images: { postgres: 'tenantry/postgres:1', runtime: 'tenantry/tenant-runtime:1' },
    control_url: 'http://control.invalid',
    gateway: { container: 'the-gateway' },
  },
}

const home: HomeServer = {
  prepare: async (created) => created(),
  repair: () => Promise.resolve('to be migrated' as const),
  create: () => Promise.resolve('whole'),
  migrate: () => Promise.resolve({ lost: [] }),
  check: () => Promise.resolve(),
  setSqlLogin: () => Promise.resolve(),
  setSqlPassword: () => Promise.resolve(),
  setServicePasswords: () => Promise.resolve(),
  endSessions: () => Promise.resolve(),
  openLogins: () => Promise.resolve(),
  drop: () => Promise.resolve(),
  dropSchema: () => Promise.resolve(),
}

export function cloudRegion(options: {
  engine: FakeEngine
  homes: HomeDatabases
  internalToken: InternalToken
  clock: Clock
  /** Memory of its host `cloud-1`, on which services are placed as in a region with several hosts; otherwise there is no such host. */
  cloud?: boolean | { hostBytes: number } | undefined
}): Region {
  const region = createRegion({ ...options, config: cloudConfig, migrations: [], maxObjects: 2_000 })
  const hostBytes = typeof options.cloud === 'object' ? options.cloud.hostBytes : undefined
  return {
    ...region,
    home: () => home,
    awaitDatabase: () => Promise.resolve(),
    ...(hostBytes === undefined
      ? {}
      : {
          spansHosts: true,
          capacities: async (reserved) => [{ id: 'cloud-1', freeBytes: hostBytes - (reserved.get('cloud-1') ?? 0) }],
        }),
  }
}
