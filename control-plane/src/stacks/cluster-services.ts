// The services of a cluster of Postgres, of a tenant's own or of a region's: three members under Patroni, two routers to the primary. Pure.
import { memberNumbers, type EtcdCredentials, type MemberNumber } from './etcd-services.ts'
import { clientTlsEnvironment, memberTlsFiles } from './member-tls.ts'
import {
  clusterPasswords,
  patroniConfiguration,
  patroniPort,
  type ClusterPasswords,
  type ClusterSettings,
} from './patroni-settings.ts'
import type { Placement } from './placed.ts'
import { SecretText } from './secret-text.ts'
import type { HealthCheck, Resources, Service, Volume } from './stack.ts'
import { postgresUser } from './tenant-services.ts'

const megabyte = 2 ** 20
const routerResources: Resources = { memoryBytes: 64 * megabyte, cpuMillis: 500, pids: 32 }
/** Memory of Patroni, in addition to that of Postgres. */
const patroniBytes = 128 * megabyte
/** Port of the routers' health check inside their containers. */
export const routerHealthPort = 8009

/** Names of the services of the members of Postgres in a cluster, which are their host names on the cluster's network. */
export const clusterMembers = ['postgres-1', 'postgres-2', 'postgres-3'] as const

/** Whether a service is a member of a cluster. */
export function isClusterMember(service: string): boolean {
  return clusterMembers.some((member) => member === service)
}

/** Names of the services of the routers to the primary. */
export const clusterRouters = ['router-1', 'router-2'] as const

interface ClusterServicesInput {
  /** ID of the stack, which is the name of the cluster for Patroni and etcd. */
  id: string
  image: string
  restarts: number
  /** Limits of each member's Postgres. */
  resources: Resources
  etcd: EtcdCredentials
  /** Settings that Patroni stores in etcd when the cluster begins. */
  settings: ClusterSettings
  /** Settings of Postgres that a member applies at its next start. */
  ownParameters: Readonly<Record<string, string>>
  /** Password with which the superuser of a new cluster connects over TCP. Absent: it cannot. */
  superuserPassword?: string
  /** Name of the routers on the cluster's network. */
  routerAlias: string
  /** Hosts of the members, which their names contain, in a region with several. */
  hosts: Placement
  /** Whether the members are on several hosts, so that they copy from each other over TLS only. */
  spansHosts: boolean
}

/** The volumes of the members. One may be missing, because Patroni copies the data from another member. */
export const clusterVolumes: readonly Volume[] = memberNumbers.map((member) => ({
  name: `data-${member}`,
  mustExist: false,
  isGuarded: false,
}))

/** Returns the members and the routers, without hosts. */
export function clusterServices(input: ClusterServicesInput): Service[] {
  const passwords = clusterPasswords(input.etcd, input.id)
  return [
    ...memberNumbers.map((member) => memberService(input, passwords, member)),
    ...clusterRouters.map((name) => routerService(input, name)),
  ]
}

/**
 * Returns the name of a member for Patroni. It contains the host, because the former container of a member may still run on a host that
 * does not respond, and Patroni takes two members of one name for one, also as the primary.
 */
export function memberIdentity(service: string, host: string | undefined): string {
  return host === undefined ? service : `${service}-${host}`
}

function memberService(input: ClusterServicesInput, passwords: ClusterPasswords, member: MemberNumber): Service {
  const { id, image, resources, restarts, etcd, settings, ownParameters, superuserPassword, hosts, spansHosts } = input
  const name = `postgres-${member}`
  const identity = memberIdentity(name, hosts[name])
  return {
    name,
    image,
    command: ['member'],
    environment: { TENANTRY_RESTARTS: String(restarts), ...(spansHosts ? clientTlsEnvironment : {}) },
    secrets: {
      'patroni.yml': new SecretText(
        patroniConfiguration({
          cluster: id,
          member: identity,
          passwords,
          settings,
          ownParameters,
          superuserPassword,
          hasTls: spansHosts,
        }),
      ),
      'etcd-ca.pem': new SecretText(etcd.authority),
      ...(spansHosts ? memberTlsFiles(etcd, id) : {}),
    },
    volumes: { [`data-${member}`]: '/var/lib/postgresql' },
    scratch: { '/tmp': 'size=64m,mode=1777', '/run/postgresql': 'size=1m,mode=0700,uid=10002,gid=10002' },
    networks: [{ network: 'net', aliases: identity === name ? [name] : [name, identity] }],
    published: [],
    isAttached: false,
    // A member that copies the data or replays its log must not be killed for that.
    health: check(patroniPort, '/liveness', 3_600),
    resources: { ...resources, memoryBytes: resources.memoryBytes + patroniBytes },
    user: postgresUser,
    stopSeconds: 30,
    replace: 'stop-first',
  }
}

function routerService({ image, routerAlias, restarts }: ClusterServicesInput, name: string): Service {
  return {
    name,
    image,
    command: ['router'],
    environment: { TENANTRY_RESTARTS: String(restarts) },
    secrets: {},
    volumes: {},
    scratch: { '/tmp': 'size=1m,mode=1777' },
    // Clients try the addresses of an alias in turn.
    networks: [{ network: 'net', aliases: [routerAlias] }],
    published: [],
    isAttached: false,
    health: check(routerHealthPort, '/'),
    resources: routerResources,
    user: postgresUser,
    stopSeconds: 5,
    replace: 'stop-first',
  }
}

/** Returns a health check. Its interval is long, because each check is a process in a container. */
function check(port: number, path: string, startSeconds = 20): HealthCheck {
  return {
    command: ['/usr/local/bin/is-ok', String(port), path],
    intervalSeconds: 60,
    timeoutSeconds: 10,
    retries: 2,
    startSeconds,
  }
}
