// The operator's configuration of a region whose services are containers, on one Docker Engine or on several hosts.
import { Type, type Static } from 'typebox'

const Image = Type.String({ minLength: 1, description: 'name:tag, name@sha256:… or sha256:…' })

const octet = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
const Ipv4Address = Type.String({ pattern: `^(?:${octet}\\.){3}${octet}$` })
const Seconds = Type.Integer({ minimum: 1, maximum: 315_360_000 })
const Backend = Type.Union([Type.Literal('local'), Type.Literal('s3')])

/** A bucket of an S3 server, and its access key. */
export const S3Bucket = Type.Object(
  {
    endpoint: Type.String({ pattern: '^https?://[^/?#@]+/?$' }),
    region: Type.Optional(Type.String({ minLength: 1 })),
    bucket: Type.String({ pattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$' }),
    prefix: Type.Optional(Type.String({ pattern: '^(?:[\\w.-]+/)*$' })),
    path_style: Type.Optional(Type.Boolean()),
    access_key_id: Type.String({ minLength: 1 }),
    /** File with the secret key, which the control plane reads when it starts. */
    secret_access_key_file: Type.String({ minLength: 1 }),
  },
  { additionalProperties: false },
)

/** The storage of the shared runtimes' files. */
const Storage = Type.Object(
  {
    backend: Backend,
    /** The other backend, while files are moved. */
    fallback: Type.Optional(Backend),
    s3: S3Bucket,
  },
  { additionalProperties: false },
)

/** The addresses at which a gateway of the region's own receives requests. */
const gatewayPorts = {
  port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  postgres_port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  /** Whether the port for SQL rejects logins without TLS. Absent: it accepts them. */
  require_sql_tls: Type.Optional(Type.Boolean()),
  /** IPv4 addresses of the proxies in front of all clients, as the gateway sees them. Absent if they are unknown. */
  trusted_proxies: Type.Optional(Type.Array(Ipv4Address, { minItems: 1, maxItems: 16 })),
}

/** Images of the clusters of a region: those of tenants, and on several hosts also the one that tenants share. */
const Clusters = Type.Object(
  {
    member_image: Image,
    etcd_image: Image,
    /** Number of tenants' clusters that are created in advance. */
    warm_stacks: Type.Optional(Type.Integer({ minimum: 0, maximum: 20 })),
  },
  { additionalProperties: false },
)

/** The settings of every region whose services are containers. */
const shared = {
  /** IPv4 range of all its networks, at least a /23. Nothing else on the host, and no other region, may use it. */
  network_range: Type.String(),
  /**
   * URL at which the region's gateway and shared runtimes reach the control plane; for an engine on another host, that
   * host's address on the region's network.
   */
  control_url: Type.String({ pattern: '^https?://' }),
  /** Number of runtimes that serve the tenants without a database of their own. */
  shared_runtimes: Type.Optional(Type.Integer({ minimum: 1, maximum: 16 })),
  /** Number of database stacks that are created in advance, so that tenants start faster. */
  warm_stacks: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  /** Seconds without a request after which a tenant's own stack is stopped; 0 or absent for never. */
  pause_after_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 30 * 86_400 })),
  /** The way out through the gateway's egress proxy; absent: no runtime reaches another host. */
  egress: Type.Optional(
    Type.Object(
      {
        /** Private networks that functions may reach. */
        may_reach: Type.Optional(Type.Array(Type.String())),
        /** Networks and addresses that functions never reach, such as the host's public addresses. */
        forbidden: Type.Optional(Type.Array(Type.String())),
      },
      { additionalProperties: false },
    ),
  ),
  storage: Type.Optional(Storage),
  /** Validity of signed URLs. */
  signed_urls: Type.Optional(
    Type.Object(
      { default_seconds: Type.Optional(Seconds), max_seconds: Type.Optional(Seconds) },
      { additionalProperties: false },
    ),
  ),
  /** Maximum length of the path of a new object, in bytes of UTF-8. */
  max_path_bytes: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_024 })),
  /** Whether realtime messages may be compressed. */
  realtime_compression: Type.Optional(Type.Boolean()),
}

/** The images of a region's services. */
const images = { postgres: Image, runtime: Image, gateway: Image }

/** The address of a Docker Engine. */
const engineAddress = {
  /** Address: `unix:///var/run/docker.sock`, `tcp://host:2376` with TLS, or `ssh://user@host`. */
  host: Type.String({ pattern: '^(unix|tcp|ssh)://' }),
  /** Directory of ca.pem, cert.pem and key.pem; required for `tcp://`. */
  tls_directory: Type.Optional(Type.String()),
}

/** Settings of a region on a Docker Engine, in the operator's file of regions. */
export const DockerSettings = Type.Object(
  {
    ...engineAddress,
    images: Type.Object({ ...images, gateway: Type.Optional(Image) }, { additionalProperties: false }),
    /** An existing gateway (docker-compose), or the host's address and ports of the control plane's own. */
    gateway: Type.Union([
      Type.Object({ container: Type.String({ minLength: 1 }) }, { additionalProperties: false }),
      Type.Object({ host_address: Type.String(), ...gatewayPorts }, { additionalProperties: false }),
    ]),
    /** Container of the control plane, which is attached to the region's network; absent if it runs on the host. */
    control_container: Type.Optional(Type.String({ minLength: 1 })),
    /** Absent: the region has no clusters, and no etcd runs for them. */
    clusters: Type.Optional(Clusters),
    ...shared,
  },
  { additionalProperties: false },
)
export type DockerSettings = Static<typeof DockerSettings>

/** A part of names in DNS, which have 63 characters at most. */
const HostId = Type.String({ pattern: '^[a-z][a-z0-9-]{0,30}$' })

const HostSettings = Type.Object(
  {
    id: HostId,
    ...engineAddress,
    /** IPv4 address at which its gateway receives requests. */
    address: Ipv4Address,
    /** Hosts of one zone may fail together, for example because they share a power supply. Absent: a zone of its own. */
    zone: Type.Optional(Type.String({ minLength: 1 })),
  },
  { additionalProperties: false },
)
/** A host of a region on several hosts. */
export type HostSettings = Static<typeof HostSettings>

/** Maximum number of hosts of a region. Each has a gateway with a fixed address on the region's network. */
const maxHosts = 16

const ContainerOfHost = Type.Object(
  { host: HostId, container: Type.String({ minLength: 1 }) },
  { additionalProperties: false },
)

/** Settings of a region on several hosts that Docker Swarm connects, in the operator's file of regions. */
export const SwarmSettings = Type.Object(
  {
    hosts: Type.Array(HostSettings, { minItems: 1, maxItems: maxHosts }),
    images: Type.Object(images, { additionalProperties: false }),
    /** The ports of the gateways, one of which runs on each host. */
    gateway: Type.Object(gatewayPorts, { additionalProperties: false }),
    /** Containers of the control planes, which are attached to the region's network. */
    control_containers: Type.Array(ContainerOfHost, { minItems: 1, maxItems: 4 }),
    /**
     * Containers of the proxies with TLS in front of the gateways, which are attached to the network on which the gateways are
     * published. The gateways trust them. Absent: none.
     */
    proxy_containers: Type.Optional(Type.Array(ContainerOfHost, { minItems: 1, maxItems: maxHosts })),
    clusters: Clusters,
    /** Seconds without a response after which a host counts as lost; 600 if absent. */
    lost_after_seconds: Type.Optional(Type.Integer({ minimum: 30, maximum: 86_400 })),
    /**
     * Whether Docker encrypts the networks that are created from now on. The kernel of each host must have ESP, because an encrypted
     * network passes no packets otherwise. Absent: it does not.
     */
    encrypted_networks: Type.Optional(Type.Boolean()),
    ...shared,
  },
  { additionalProperties: false },
)
export type SwarmSettings = Static<typeof SwarmSettings>

/** Settings of a region whose services are containers, on one host or on several. */
export type ContainerSettings = DockerSettings | SwarmSettings

/** Whether the region's networks are encrypted between its hosts. In a region on one host, there is nothing to encrypt. */
export function hasEncryptedNetworks(settings: ContainerSettings): boolean {
  return 'hosts' in settings && settings.encrypted_networks === true
}

/** Returns the hosts of a region on several; none for a region on one. */
export function hostsOf(settings: ContainerSettings): readonly HostSettings[] {
  return 'hosts' in settings ? settings.hosts : []
}
