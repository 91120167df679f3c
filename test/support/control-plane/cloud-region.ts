// The region `cloud` on a fake engine. Each tenant gets its own services. All work on homes succeeds without a database.
import type { InternalToken } from '@tenantry/contract'
import type { Clock } from '#control-plane/platform/clock.ts'
import type { HomeDatabases } from '#control-plane/homes/home-databases.ts'
import type { HomeServer } from '#control-plane/homes/home-server.ts'
import { createRegion, type Region } from '#control-plane/reconcile/region.ts'
import type { RegionConfig } from '#control-plane/regions/region-config.ts'
import { placed } from '#control-plane/stacks/placed.ts'
import { stateOf } from '#test/clusters/support.ts'
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

/** A host of the region, with the memory that services of tenants can have. */
export interface CloudHost {
  id: string
  zone?: string
  bytes: number
}

/** Whether there is a region `cloud`; with the memory of its host `cloud-1`, or with its hosts, services are placed on these. */
export type CloudOption = boolean | { hostBytes: number } | { hosts: readonly CloudHost[] }

const hostsOf = (cloud: CloudOption | undefined): readonly CloudHost[] | undefined => {
  if (typeof cloud !== 'object') return undefined
  return 'hosts' in cloud ? cloud.hosts : [{ id: 'cloud-1', bytes: cloud.hostBytes }]
}

/** Returns the configuration of the region. */
export function cloudConfigOf(cloud: CloudOption): RegionConfig {
  const { docker } = cloudConfig
  if (docker === undefined || typeof cloud !== 'object' || !('hosts' in cloud)) return cloudConfig
  const s3 = {
    endpoint: 'http://s3.invalid',
    bucket: 'files',
    access_key_id: 'id',
    secret_access_key_file: '/nowhere',
  }
  return {
    ...cloudConfig,
    engine: 'swarm',
    docker: {
      images: { ...docker.images, gateway: 'tenantry/gateway:1' },
      control_url: docker.control_url,
      network_range: '10.99.0.0/16',
      gateway: { port: 8080, postgres_port: 5432 },
      hosts: cloud.hosts.map(({ id, zone }, at) => ({
        id,
        host: `unix:///nowhere/${id}`,
        address: `10.98.0.${at + 1}`,
        ...(zone === undefined ? {} : { zone }),
      })),
      control_containers: [{ host: cloud.hosts[0]?.id ?? '', container: 'control' }],
      clusters: { member_image: 'tenantry/cluster-member:1', etcd_image: 'tenantry/etcd:1' },
      storage: { backend: 's3', s3 },
    },
  }
}

export function cloudRegion(options: {
  config: RegionConfig
  engine: FakeEngine
  homes: HomeDatabases
  internalToken: InternalToken
  clock: Clock
  cloud?: CloudOption | undefined
}): Region {
  const { engine } = options
  const region = createRegion({ ...options, migrations: [], maxObjects: 2_000 })
  const hosts = hostsOf(options.cloud)
  const alone = { ...region, home: () => home, awaitDatabase: () => Promise.resolve() }
  if (hosts === undefined) return alone
  engine.hostIds = hosts.map(({ id }) => id)
  return {
    ...alone,
    spansHosts: true,
    capacities: async (reserved) =>
      hosts.map(({ id, zone, bytes }) => ({ id, zone, freeBytes: bytes - (reserved.get(id) ?? 0) })),
    stack: async (tenant, signal) => {
      const stack = await region.stack(tenant, signal)
      return region.spansHosts ? stack : placed(stack, tenant.placement)
    },
    ownCluster: undefined,
    ownStack: () => Promise.resolve(undefined),
    openCluster: () => Promise.resolve(),
    clusterOrigin: () => Promise.resolve('none'),
    closeCluster: () => Promise.resolve(),
    replaceEtcdMember: () => Promise.resolve(),
    cluster: async ({ id, isolation }) => {
      if (isolation !== 'cluster-per-tenant') return undefined
      const containers = engine.stacks.get(id)?.containers ?? []
      // On several hosts, the name of a member contains its host.
      const names = ['postgres-1', 'postgres-2', 'postgres-3'].map((name) => {
        const host = containers.find(({ labels }) => labels.service === name)?.host
        return [name, host === undefined ? {} : { name: `${name}-${host}` }] as const
      })
      return stateOf(engine.primaries.get(id) ?? 'postgres-1', Object.fromEntries(names))
    },
    readyRouters: () => Promise.resolve(new Set(['router-1', 'router-2'])),
    switchOver: async (id, _from, to) => {
      engine.primaries.set(id, to)
      return undefined
    },
  }
}
