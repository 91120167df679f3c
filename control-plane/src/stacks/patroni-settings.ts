// The configuration of Patroni on one member of a cluster. Pure.
import { movableSettings, sharedServerSettings } from './shared-server-settings.ts'
import { derivedPassword, etcdClientHosts, type EtcdCredentials } from './etcd-services.ts'
import { clientTlsSettings, serverTlsParameters } from './member-tls.ts'

/** Port of Patroni's REST interface inside the containers of members. */
export const patroniPort = 8008
/** Prefix of all keys of clusters in etcd. The keys of a cluster are below `PREFIX/ID/` (images/etcd/etcd-access.sh). */
const namespace = '/tenantry/'

/**
 * The rules of elections, which Patroni stores in etcd once. After the loss of a primary, another member is elected after
 * `ttl` seconds and one loop.
 */
const elections = {
  ttl: 20,
  loop_wait: 2,
  // A loop and two retries must end within the TTL.
  retry_timeout: 8,
  // A primary whose Postgres crashed is replaced at once.
  primary_start_timeout: 0,
  // A commit is confirmed by a replica, also when no replica is available: then writes wait.
  synchronous_mode: 'quorum',
  synchronous_mode_strict: true,
  synchronous_node_count: 1,
  // While etcd is unavailable, the primary continues as long as it reaches all members.
  failsafe_mode: true,
} as const

/** The rules of elections of members on several hosts. */
const hostElections = {
  ...elections,
  // The slot of a member that has left counts as a member for reads during a failover. It must last longer than the lease of a primary.
  member_slots_ttl: 60,
} as const

/** Replication slots that Patroni does not remove: those of moves. */
const movingSlots = { type: 'logical', plugin: 'pgoutput' } as const

/** Settings of Postgres in every cluster. */
const commonParameters = {
  max_wal_size: '512MB',
  min_wal_size: '80MB',
  // What a replica may still need after its return. A replica that needs more is copied again.
  wal_keep_size: '128MB',
  ...movableSettings,
  temp_file_limit: '1GB',
  max_parallel_workers_per_gather: 0,
  authentication_timeout: '10s',
  password_encryption: 'scram-sha-256',
  jit: 'off',
  logging_collector: 'off',
} as const

/** Settings that Patroni stores in etcd when a cluster begins: the rules of elections, and settings that are equal on all members. */
export type ClusterSettings = ReturnType<typeof settingsWith>

function settingsWith(own: Readonly<Record<string, string | number>>, spansHosts: boolean) {
  // The order of the names stays, because another text of the configuration would replace the members of existing clusters.
  const parameters = { ...own, ...commonParameters, ...own }
  return {
    ...(spansHosts ? hostElections : elections),
    ignore_slots: [movingSlots],
    postgresql: { use_pg_rewind: true, use_slots: true, parameters },
  }
}

/**
 * Returns the settings of a tenant's cluster, the same for all sizes: Postgres reads most of them only at a start, and a
 * start of all members at once would be an outage.
 * @param spansHosts whether its members are on several hosts
 */
export function clusterSettings(spansHosts: boolean): ClusterSettings {
  return settingsWith({ max_connections: 100, reserved_connections: 54, shared_buffers: '128MB' }, spansHosts)
}

/**
 * Returns the settings of a cluster on several hosts that tenants of a region, or the control planes, share.
 * @param size settings that depend on its size
 */
export function sharedClusterSettings(size: Readonly<Record<string, string | number>>): ClusterSettings {
  return settingsWith({ ...sharedServerSettings, ...size }, true)
}

/**
 * Returns the rules of pg_hba.conf. Tenants' logins arrive through the routers.
 * @param isShared whether the superuser connects over TCP, as the control plane does to a database that tenants share
 * @param hasTls whether members reject each other's connections without TLS
 */
function hostAccess(isShared: boolean, hasTls: boolean): string[] {
  const members = hasTls ? 'hostssl' : 'host'
  return [
    'local all,replication postgres peer',
    'local all all reject',
    `${members} replication replicator samenet scram-sha-256`,
    `${members} postgres rewind samenet scram-sha-256`,
    isShared ? 'host all replicator,rewind all reject' : 'host all postgres,replicator,rewind all reject',
    'host replication all all reject',
    'host all all all scram-sha-256',
  ]
}

/** Name of the user of Patroni's REST interface that may change the cluster. */
export const patroniUser = 'patroni'

/** Returns the password of that user in a cluster. @param cluster ID of its stack */
export function patroniPassword(etcd: Pick<EtcdCredentials, 'seed'>, cluster: string): string {
  return derivedPassword(etcd, `patroni:${cluster}`)
}

interface PatroniInput {
  /** ID of the cluster's stack. */
  cluster: string
  /** Name of the member for Patroni, and one of its names on the cluster's network. No two containers may have the same at once. */
  member: string
  passwords: ClusterPasswords
  settings: ClusterSettings
  /** Settings of Postgres that a member applies at its next start. */
  ownParameters: Readonly<Record<string, string>>
  /** Password with which the superuser of a new cluster connects over TCP; undefined if it cannot. */
  superuserPassword: string | undefined
  /** Whether members copy from each other over TLS only. */
  hasTls: boolean
}

/** Returns the purpose from which the password of a cluster's user of etcd is derived. */
export const etcdPasswordPurpose = (cluster: string): string => `etcd:${cluster}`

/** Returns the passwords of the roles with which members copy from each other, by role. */
export function memberPasswords(
  etcd: Pick<EtcdCredentials, 'seed'>,
  cluster: string,
): Record<'replicator' | 'rewind', string> {
  return {
    replicator: derivedPassword(etcd, `replication:${cluster}`),
    rewind: derivedPassword(etcd, `rewind:${cluster}`),
  }
}

/** The passwords of a cluster, which all its members have. */
export type ClusterPasswords = ReturnType<typeof clusterPasswords>

/** Derives the passwords of a cluster. */
export function clusterPasswords(etcd: Pick<EtcdCredentials, 'seed'>, cluster: string) {
  return {
    ...memberPasswords(etcd, cluster),
    restApi: patroniPassword(etcd, cluster),
    etcd: derivedPassword(etcd, etcdPasswordPurpose(cluster)),
  }
}

/** Returns the configuration as JSON, which is valid YAML. It contains passwords. */
export function patroniConfiguration(input: PatroniInput): string {
  const { cluster, member, passwords, settings, ownParameters, superuserPassword, hasTls } = input
  const client = hasTls ? clientTlsSettings : {}
  return JSON.stringify({
    scope: cluster,
    namespace,
    name: member,
    restapi: {
      listen: `0.0.0.0:${patroniPort}`,
      connect_address: `${member}:${patroniPort}`,
      // Only calls that change the cluster need it.
      authentication: { username: patroniUser, password: passwords.restApi },
    },
    etcd3: {
      hosts: etcdClientHosts,
      protocol: 'https',
      cacert: '/run/secrets/etcd-ca.pem',
      username: cluster,
      password: passwords.etcd,
    },
    bootstrap: {
      dcs: settings,
      initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }, 'data-checksums'],
      post_bootstrap: '/usr/local/bin/prepare-cluster',
    },
    postgresql: {
      listen: '0.0.0.0:5432',
      connect_address: `${member}:5432`,
      data_dir: '/var/lib/postgresql/17/data',
      bin_dir: '/usr/lib/postgresql/17/bin',
      pgpass: '/tmp/pgpass',
      use_unix_socket: true,
      // Otherwise a copy waits for the next checkpoint, for minutes.
      basebackup: [{ checkpoint: 'fast' }],
      // A member whose data cannot follow the primary copies everything again.
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
      authentication: {
        superuser: {
          username: 'postgres',
          ...(superuserPassword === undefined ? {} : { password: superuserPassword }),
        },
        replication: { username: 'replicator', password: passwords.replicator, ...client },
        rewind: { username: 'rewind', password: passwords.rewind, ...client },
      },
      parameters: {
        unix_socket_directories: '/run/postgresql',
        ...ownParameters,
        ...(hasTls ? serverTlsParameters : {}),
      },
      pg_hba: hostAccess(superuserPassword !== undefined, hasTls),
    },
    watchdog: { mode: 'off' },
    log: { deduplicate_heartbeat_logs: true },
  })
}
