// Reads the operator's file of regions, in which tenants can be created.
import { hkdfSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readNetworks } from '@tenantry/contract'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { superuserWithFile, type PostgresUrl, type SuperuserUrl } from '../platform/superuser-url.ts'
import {
  type EtcdCredentials,
  hostOnRegionNetwork,
  regionEndpoints,
  overlaps,
  parseRange,
  type ContainerSettings,
  DockerSettings,
  type PartUrl,
  ProcessSettings,
  SwarmSettings,
} from '../stacks/index.ts'

const Url = Type.String({ pattern: '^https?://' })

const common = {
  id: Type.String({ pattern: '^[a-z][a-z0-9-]{0,31}$' }),
  /** The domain of tenants' host names, which are `{name}.{domain}`. */
  domain: Type.String({ minLength: 1 }),
  /** The URL of the tenants' gateway, e.g. `http://127.0.0.1:4401`. */
  gateway_url: Url,
  /**
   * The `host:port` of the tenants' `database_url`; by default the shared Postgres' own, or the gateway's Postgres
   * proxy.
   */
  database_host: Type.Optional(Type.String({ pattern: '^.+:[0-9]{1,5}$' })),
  /** Number of homes in shared databases that are made in advance, so that new tenants do not wait for them; 0 by default. */
  warm_homes: Type.Optional(Type.Integer({ minimum: 0, maximum: 200 })),
}

/** A region whose parts the operator has started. The embedded installation has one such region, `local`. */
const ProcessRegion = Type.Object(
  {
    ...common,
    engine: Type.Literal('process'),
    /** The superuser's URL of the region's shared Postgres, with the database `postgres`. */
    postgres_url: Type.String({ pattern: '^postgres(ql)?://' }),
    /** A file of the superuser's passwords, one in each line, the wanted one first. It replaces the password in the URL. */
    postgres_password_file: Type.Optional(Type.String({ minLength: 1 })),
    runtime_urls: Type.Array(Url, { minItems: 1 }),
    gateway_internal_urls: Type.Array(Url, { minItems: 1 }),
    /** The host of tenants' own services; absent: the region has only tenants that share. */
    processes: Type.Optional(ProcessSettings),
  },
  { additionalProperties: false },
)

/** A region whose parts the control plane creates on a Docker Engine. */
const DockerRegion = Type.Object(
  { ...common, engine: Type.Literal('docker'), docker: DockerSettings },
  { additionalProperties: false },
)

/** A region whose parts the control plane creates on several hosts that Docker Swarm connects. */
const SwarmRegion = Type.Object(
  { ...common, engine: Type.Literal('swarm'), swarm: SwarmSettings },
  { additionalProperties: false },
)

const RegionsFile = Type.Array(Type.Unknown(), { minItems: 1 })

/** A region with all its addresses, configured or derived. */
export interface RegionConfig extends Pick<
  Static<typeof ProcessRegion>,
  'id' | 'domain' | 'gateway_url' | 'postgres_url' | 'runtime_urls' | 'gateway_internal_urls'
> {
  engine: 'process' | 'docker' | 'swarm'
  database_host: string
  warm_homes?: number | undefined
  /** Settings of a region whose services are containers, on one host or on several. */
  docker: ContainerSettings | undefined
  /** IDs of the hosts of runtimes and gateways, by their URLs; absent in a region with one host. */
  hostByUrl?: ReadonlyMap<string, string>
  /** The host of tenants' own services, where they are processes. */
  processes?: ProcessSettings | undefined
  /** The superuser's password that the shared Postgres begins with, where the control plane creates it. */
  superuserPassword: string
  /** The superuser's URL, if its password can be replaced; otherwise, the password in `postgres_url` stays the same. */
  superuser?: SuperuserUrl | undefined
  /** The secret key of the shared runtimes' S3 storage; undefined without one. */
  s3SecretKey?: string | undefined
  /** Credentials of the etcd of a region with clusters; undefined in a region without, and in the operator's file. */
  etcd?: EtcdCredentials | undefined
}

/**
 * Reads the operator's file of regions.
 * @param masterKey the key that the passwords of parts are derived from that are created for the first time
 * @throws Error that names the position in the file
 */
export function readRegions(text: string, masterKey: Buffer): RegionConfig[] {
  let file: unknown
  try {
    file = JSON.parse(text)
  } catch (cause) {
    throw new Error('TENANTRY_REGIONS_FILE is not valid JSON', { cause })
  }
  if (!Value.Check(RegionsFile, file)) throw new Error('TENANTRY_REGIONS_FILE must hold an array of regions')
  const regions = file.map((region, at) => readRegion(region, at, masterKey))
  if (new Set(regions.map((region) => region.id)).size !== regions.length)
    throw new Error('TENANTRY_REGIONS_FILE names a region twice')
  rejectSharedRanges(regions)
  return regions
}

/**
 * Rejects regions with a common range. The control plane finds the parts of a region only by their address, whichever
 * host they are on.
 */
function rejectSharedRanges(regions: readonly RegionConfig[]): void {
  const ranges = regions.flatMap(({ id, docker }) =>
    docker === undefined ? [] : [{ id, range: parseRange(docker.network_range) }],
  )
  for (const [at, one] of ranges.entries()) {
    const other = ranges.slice(0, at).find(({ range }) => overlaps(range, one.range))
    if (other !== undefined)
      throw new Error(`TENANTRY_REGIONS_FILE: the regions "${other.id}" and "${one.id}" have a network_range in common`)
  }
}

function readRegion(region: unknown, at: number, masterKey: Buffer): RegionConfig {
  const schema = schemaOf(region)
  if (!Value.Check(schema, region)) {
    const [first] = Value.Errors(schema, region)
    throw new Error(`TENANTRY_REGIONS_FILE/${at}${first?.instancePath ?? ''}: ${first?.message ?? 'invalid'}`)
  }
  if (region.engine === 'docker') return dockerRegion(region, at, masterKey)
  return region.engine === 'swarm'
    ? swarmRegion(region, at, masterKey)
    : {
        ...region,
        database_host: region.database_host ?? new URL(region.postgres_url).host,
        docker: undefined,
        superuserPassword: '',
        superuser: superuserByFile(region, at),
      }
}

/** Returns the schema of a region in the file by its engine. */
function schemaOf(region: unknown): typeof DockerRegion | typeof SwarmRegion | typeof ProcessRegion {
  const engine = typeof region === 'object' && region !== null && 'engine' in region ? region.engine : undefined
  return engine === 'docker' ? DockerRegion : engine === 'swarm' ? SwarmRegion : ProcessRegion
}

/** @throws ConfigurationError for a file that cannot be used */
function superuserByFile(region: Static<typeof ProcessRegion>, at: number): SuperuserUrl | undefined {
  const { postgres_url: url, postgres_password_file: file } = region
  if (file === undefined) return undefined
  return superuserWithFile(url, file, `TENANTRY_REGIONS_FILE/${at}/postgres_password_file`)
}

/** Returns the superuser's URL of the region's shared Postgres. */
export function superuserOf({
  superuser,
  postgres_url,
}: Pick<RegionConfig, 'superuser' | 'postgres_url'>): PostgresUrl {
  return superuser ?? postgres_url
}

function dockerRegion({ docker, ...region }: Static<typeof DockerRegion>, at: number, masterKey: Buffer): RegionConfig {
  const unreachable = whyUnreachable(docker)
  if (unreachable !== undefined) throw new Error(`TENANTRY_REGIONS_FILE/${at}/docker/control_url: ${unreachable}`)
  const { gateway } = docker
  const publicHost =
    'port' in gateway
      ? `${gateway.host_address}:${gateway.postgres_port}`
      : `${new URL(region.gateway_url).hostname}:5432`
  return containerRegion({ ...region, database_host: region.database_host ?? publicHost, docker }, at, masterKey)
}

function swarmRegion({ swarm, ...region }: Static<typeof SwarmRegion>, at: number, masterKey: Buffer): RegionConfig {
  const ids = swarm.hosts.map(({ id }) => id)
  const fail = (field: string, message: string): never => {
    throw new Error(`TENANTRY_REGIONS_FILE/${at}/swarm/${field}: ${message}`)
  }
  if (new Set(ids).size !== ids.length) fail('hosts', 'two hosts have the same ID')
  for (const field of ['control_containers', 'proxy_containers'] as const) {
    const unknown = swarm[field]?.find(({ host }) => !ids.includes(host))
    if (unknown !== undefined) fail(field, `there is no host "${unknown.host}"`)
  }
  if (swarm.storage !== undefined && (swarm.storage.backend !== 's3' || swarm.storage.fallback !== undefined))
    fail('storage', 'runtimes on several hosts have no volume in common. "backend" must be "s3", without a "fallback"')
  const publicHost = `${new URL(region.gateway_url).hostname}:${swarm.gateway.postgres_port}`
  const config = { ...region, database_host: region.database_host ?? publicHost, docker: swarm }
  return containerRegion(config, at, masterKey)
}

/** A region whose services are containers, as the operator's file has it. */
type ContainerRegion = (Omit<Static<typeof DockerRegion>, 'docker'> | Omit<Static<typeof SwarmRegion>, 'swarm'>) & {
  database_host: string
  docker: ContainerSettings
}

function containerRegion({ docker, ...region }: ContainerRegion, at: number, masterKey: Buffer): RegionConfig {
  const superuserPassword = Buffer.from(hkdfSync('sha256', masterKey, '', `region:${region.id}:postgres`, 32)).toString(
    'base64url',
  )
  let endpoints: ReturnType<typeof regionEndpoints>
  try {
    endpoints = regionEndpoints(region.id, docker)
  } catch (cause) {
    throw new Error(
      `TENANTRY_REGIONS_FILE/${at}/${region.engine}/network_range: ${cause instanceof Error ? cause.message : 'invalid'}`,
      { cause },
    )
  }
  const path = `TENANTRY_REGIONS_FILE/${at}/${region.engine}`
  checkEgress(docker, path)
  const urlsOf = (parts: readonly PartUrl[]) => parts.map(({ url }) => url)
  const onHosts = [...endpoints.runtimes, ...endpoints.gateways].flatMap(({ url, host }) =>
    host === undefined ? [] : [[url, host] as const],
  )
  return {
    ...region,
    docker,
    superuserPassword,
    s3SecretKey: secretKeyOf(docker, path),
    postgres_url: `postgresql://postgres:${superuserPassword}@${endpoints.postgresHost}/postgres`,
    runtime_urls: urlsOf(endpoints.runtimes),
    gateway_internal_urls: urlsOf(endpoints.gateways),
    ...(onHosts.length === 0 ? {} : { hostByUrl: new Map(onHosts) }),
  }
}

/** @throws Error for networks that are invalid, or that the control plane does not pass to the gateway */
function checkEgress({ egress, storage, gateway }: ContainerSettings, path: string): void {
  const fail = (field: string, message: string, cause?: unknown): never => {
    throw new Error(`${path}/${field}: ${message}`, { cause })
  }
  if (storage !== undefined && egress === undefined)
    fail('storage', 'the runtimes reach an S3 server only through the egress proxy. Add "egress": {}')
  if (storage !== undefined && storage.backend === storage.fallback)
    fail('storage', '"backend" and "fallback" must differ')
  for (const field of ['may_reach', 'forbidden'] as const) {
    const networks = egress?.[field]
    if (networks === undefined) continue
    if ('container' in gateway)
      fail(
        `egress/${field}`,
        'the gateway is a container of yours. Use its settings TENANTRY_EGRESS_MAY_REACH and TENANTRY_EGRESS_FORBIDDEN',
      )
    try {
      readNetworks(networks)
    } catch (cause) {
      fail(`egress/${field}`, cause instanceof Error ? cause.message : 'invalid', cause)
    }
  }
}

function secretKeyOf({ storage }: ContainerSettings, path: string): string | undefined {
  if (storage === undefined) return undefined
  try {
    return readFileSync(storage.s3.secret_access_key_file, 'utf8').trim()
  } catch (cause) {
    throw new Error(`${path}/storage/s3/secret_access_key_file: the file cannot be read`, { cause })
  }
}

/**
 * Returns why the region's containers can't reach the control plane. They only have a network without access to other
 * networks.
 */
function whyUnreachable(docker: DockerSettings): string | undefined {
  const isElsewhere = !docker.host.startsWith('unix:') && docker.control_container === undefined
  const host = hostOnRegionNetwork(docker)
  if (!isElsewhere || URL.parse(docker.control_url)?.hostname === host) return undefined
  return (
    `the engine is on another host, whose containers can reach the control plane only at http://${host}:PORT. ` +
    'deploy/remote-host forwards that address (docs/operate/remote-region.md)'
  )
}
