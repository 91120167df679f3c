// The cluster of the control database: its own etcd, members of Postgres and routers. Pure.
import {
  clusterServices,
  type EtcdCredentials,
  etcdClusterPassword,
  etcdServices,
  memberNumbers,
  SecretText,
  sharedClusterSettings,
  type Service,
} from '../stacks/index.ts'
import { databaseRange } from './platform-networks.ts'
import type { PlatformOptions } from './platform-options.ts'

/** Name of the cluster for Patroni, and of its user of etcd (images/etcd/etcd-access.sh). */
const clusterId = 'control-database'
/** Name of the routers on the network of the control database. */
export const databaseName = 'database'
const megabyte = 2 ** 20
const resources = { memoryBytes: 1_024 * megabyte, cpuMillis: 2_000, pids: 256 }
const settings = sharedClusterSettings({ max_connections: 100, shared_buffers: '128MB', max_locks_per_transaction: 64 })

/** Secrets of the cluster. */
export interface DatabaseSecrets {
  etcd: EtcdCredentials
  superuserPassword: string
}

/** A container of the control database on one host. */
export interface DatabaseService extends Service {
  host: string
  /** Replaces the image's entrypoint. */
  entrypoint?: readonly string[]
}

/**
 * The first member of etcd gives the cluster its user, until it succeeds: the other members may not have started yet. The image's own
 * entrypoint is the main process.
 */
const etcdWithUser = [
  '/usr/bin/tini',
  '--',
  '/bin/bash',
  '-c',
  `(until /usr/local/bin/etcd-access add ${clusterId} < /run/secrets/user-password; do sleep 5; done) & exec /usr/local/bin/etcd-start`,
]

/** Returns the services, on the first three hosts. */
export function controlDatabase(
  options: PlatformOptions,
  { etcd, superuserPassword }: DatabaseSecrets,
): DatabaseService[] {
  const [first = '', second = '', third = ''] = options.hosts.map(({ id }) => id)
  const hosts = { 1: first, 2: second, 3: third }
  const placement = {
    ...Object.fromEntries(memberNumbers.map((member) => [`postgres-${member}`, hosts[member]])),
    'router-1': first,
    'router-2': second,
  }
  const members = clusterServices({
    id: clusterId,
    image: 'tenantry/cluster-member:latest',
    restarts: 0,
    resources,
    etcd,
    settings,
    ownParameters: {},
    superuserPassword,
    routerAlias: databaseName,
    hosts: placement,
    spansHosts: true,
  }).map((service) => ({ ...service, host: hostOf(placement, service.name) }))
  const stores = etcdServices('tenantry/etcd:latest', databaseRange(options), etcd, hosts).map((service, at) => {
    const host = service.host ?? ''
    if (at > 0) return { ...service, host }
    const password = { 'user-password': new SecretText(`${etcdClusterPassword(etcd, clusterId)}\n`) }
    return { ...service, host, secrets: { ...service.secrets, ...password }, entrypoint: etcdWithUser }
  })
  return [...stores, ...members]
}

function hostOf(placement: Readonly<Record<string, string>>, service: string): string {
  return placement[service] ?? ''
}
