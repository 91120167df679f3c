// The etcd of a region with clusters: three members, with TLS. Each cluster elects its primary in it. Pure.
import { hkdfSync } from 'node:crypto'
import { onHost } from './on-host.ts'
import { SecretText } from './secret-text.ts'
import type { Resources, Service, Volume } from './stack.ts'
import { regionAddress, type Range } from './subnets.ts'

/** Credentials of a region's etcd. They are created once and stored sealed. */
export interface EtcdCredentials {
  /** Certificate of the authority that signed `certificate`, PEM. */
  authority: string
  /** Certificate of all members, for clients and for each other, PEM. */
  certificate: string
  /** Private key of the certificate, PEM. */
  privateKey: string
  /** Random text from which the passwords of the region's clusters are derived. */
  seed: string
}

/** Numbers of etcd's members, and of a cluster's. */
export const memberNumbers = [1, 2, 3] as const
/** Number of a member of etcd, or of a cluster. */
export type MemberNumber = (typeof memberNumbers)[number]

/** Ports of etcd inside its containers. */
const etcdPorts = { client: 2379, peer: 2380, health: 2381 } as const
/** Last number of the first member's address on the region's network. */
const firstOctet = 12
const etcdUser = '10004:10004'
const megabyte = 2 ** 20
const resources: Resources = { memoryBytes: 192 * megabyte, cpuMillis: 1_000, pids: 128 }

/** Returns the name of a member's service, which is its name on all networks, too. */
export function etcdName(member: MemberNumber): string {
  return `etcd-${member}`
}

/** Addresses of all members for clients, as `host:port`. */
export const etcdClientHosts: readonly string[] = memberNumbers.map(
  (member) => `${etcdName(member)}:${etcdPorts.client}`,
)

/** Returns the names and addresses for which the certificate must be valid. */
export function etcdHosts(range: Range): string[] {
  return [
    ...memberNumbers.map(etcdName),
    ...memberNumbers.map((member) => addressOf(range, member)),
    'localhost',
    '127.0.0.1',
  ]
}

function addressOf(range: Range, member: MemberNumber): string {
  return regionAddress(range, firstOctet + member - 1)
}

/** Returns the password of one purpose. It is always the same for the same seed. */
export function derivedPassword({ seed }: Pick<EtcdCredentials, 'seed'>, purpose: string): string {
  return Buffer.from(hkdfSync('sha256', seed, '', purpose, 32)).toString('base64url')
}

/** IDs of the members' hosts; undefined on an engine with one host. */
type MemberHosts = Readonly<Record<MemberNumber, string | undefined>>

/** Returns the volumes of the members. @param hasClusters whether they hold the state of clusters */
export function etcdVolumes(hasClusters: boolean, hosts: MemberHosts): Volume[] {
  return memberNumbers.map((member) => ({
    name: etcdName(member),
    mustExist: hasClusters,
    isGuarded: false,
    ...onHost({ host: hosts[member] }),
  }))
}

/**
 * Returns the times of a member's elections. A new leader extends all leases by them, also that of a primary which the same host had. On
 * one engine, all members share a disk, and its delays with the tenants.
 */
function electionTimes(host: string | undefined): Record<string, string> {
  const heartbeatMs = host === undefined ? 250 : 150
  return { ETCD_HEARTBEAT_INTERVAL: String(heartbeatMs), ETCD_ELECTION_TIMEOUT: String(10 * heartbeatMs) }
}

/**
 * Returns etcd's members. They have fixed addresses for each other, because a member on many networks finds several
 * addresses for a name. Clients need a password, and members a certificate. The image decides whether an empty member begins a
 * cluster or enters one (images/etcd/etcd-start.sh).
 */
export function etcdServices(image: string, range: Range, credentials: EtcdCredentials, hosts: MemberHosts): Service[] {
  const secrets = {
    'ca.pem': new SecretText(credentials.authority),
    'certificate.pem': new SecretText(credentials.certificate),
    'key.pem': new SecretText(credentials.privateKey),
    'root-password': new SecretText(derivedPassword(credentials, 'etcd:root')),
  }
  const peerUrl = (member: MemberNumber) => `https://${addressOf(range, member)}:${etcdPorts.peer}`
  return memberNumbers.map((member) => ({
    name: etcdName(member),
    ...onHost({ host: hosts[member] }),
    image,
    command: [],
    environment: {
      ETCD_NAME: etcdName(member),
      ETCD_DATA_DIR: '/var/lib/etcd/data',
      ETCD_LISTEN_CLIENT_URLS: `https://0.0.0.0:${etcdPorts.client}`,
      ETCD_ADVERTISE_CLIENT_URLS: `https://${etcdName(member)}:${etcdPorts.client}`,
      // Tenants' networks have no route to this address.
      ETCD_LISTEN_PEER_URLS: peerUrl(member),
      ETCD_INITIAL_ADVERTISE_PEER_URLS: peerUrl(member),
      ETCD_INITIAL_CLUSTER: memberNumbers.map((each) => `${etcdName(each)}=${peerUrl(each)}`).join(','),
      ETCD_LISTEN_METRICS_URLS: `http://127.0.0.1:${etcdPorts.health}`,
      ETCD_CERT_FILE: '/run/secrets/certificate.pem',
      ETCD_KEY_FILE: '/run/secrets/key.pem',
      ETCD_PEER_CERT_FILE: '/run/secrets/certificate.pem',
      ETCD_PEER_KEY_FILE: '/run/secrets/key.pem',
      ETCD_PEER_TRUSTED_CA_FILE: '/run/secrets/ca.pem',
      ETCD_PEER_CLIENT_CERT_AUTH: 'true',
      ETCD_AUTO_COMPACTION_MODE: 'periodic',
      ETCD_AUTO_COMPACTION_RETENTION: '1h',
      ETCD_SNAPSHOT_COUNT: '10000',
      ...electionTimes(hosts[member]),
      // Passwords are random, so a slow hash protects nothing.
      ETCD_BCRYPT_COST: '4',
      ETCD_LOG_LEVEL: 'warn',
    },
    secrets,
    volumes: { [etcdName(member)]: '/var/lib/etcd' },
    scratch: { '/tmp': 'size=16m,mode=1777' },
    networks: [{ network: 'net', aliases: [etcdName(member)], address: addressOf(range, member) }],
    published: [],
    // The members of each cluster reach it on the cluster's own network.
    isAttached: true,
    health: {
      command: ['/usr/local/bin/is-ok', String(etcdPorts.health), '/health?serializable=true'],
      intervalSeconds: 60,
      timeoutSeconds: 10,
      retries: 2,
      startSeconds: 60,
    },
    resources,
    user: etcdUser,
    stopSeconds: 15,
    replace: 'stop-first',
  }))
}
