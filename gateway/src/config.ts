// Reads the environment into one frozen, validated Config. The error of a failed start names every missing or wrong
// variable.
import { ConfigurationError, Environment, gatewaySettings, logLevels, type LogLevel } from '@tenantry/contract'
import { Type, type Static, type TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { readEgress, readEgressHosts, type EgressConfig } from './egress/egress-config.ts'
import { readStorageRelay, type StorageRelayConfig } from './storage-relay/relay-config.ts'
import type { Limits } from './limits.ts'
import type { TenantAddresses } from './tenants/connection-bounds.ts'
import { parseIpv4Range, parseIpv4Ranges, type Ipv4Range as Range } from './tenants/ipv4-range.ts'

type Name = keyof typeof gatewaySettings

const port = '^(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$'
const count = '^[1-9][0-9]{0,6}$'
const rate = '^[1-9][0-9]{0,6}/[1-9][0-9]{0,6}$'
const domain = '^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$'

const Ipv4Ranges = Type.Refine(Type.String(), (text) => parseIpv4Ranges(text) !== undefined)
const Hosts = Type.Refine(Type.String(), (text) => readEgressHosts(text) !== undefined)
const Ipv4Range = Type.Refine(Type.String(), (text) => parseIpv4Range(text) !== undefined)

const Variables = Type.Object({
  TENANTRY_RESTARTS: Type.Optional(Type.String()),
  TENANTRY_HOST: Type.String({ minLength: 1 }),
  TENANTRY_PORT: Type.String({ pattern: port }),
  TENANTRY_SHARED_PORT: Type.Optional(Type.String({ pattern: '^[01]$' })),
  TENANTRY_INTERNAL_HOST: Type.String({ minLength: 1 }),
  TENANTRY_INTERNAL_PORT: Type.String({ pattern: port }),
  TENANTRY_POSTGRES_PORT: Type.Optional(Type.String({ pattern: port })),
  TENANTRY_POSTGRES_TLS_CERT_FILE: Type.Optional(Type.String({ minLength: 1 })),
  TENANTRY_POSTGRES_TLS_KEY_FILE: Type.Optional(Type.String({ minLength: 1 })),
  TENANTRY_POSTGRES_REQUIRE_TLS: Type.Optional(Type.String({ pattern: '^[01]$' })),
  TENANTRY_TENANT_RANGE: Type.Optional(Ipv4Range),
  TENANTRY_REGION_RANGE: Type.Optional(Ipv4Range),
  TENANTRY_TRUSTED_PROXIES: Type.Optional(Ipv4Ranges),
  TENANTRY_CONNECTIONS_PER_ADDRESS: Type.Optional(Type.String({ pattern: count })),
  TENANTRY_REQUESTS_PER_ADDRESS: Type.Optional(Type.String({ pattern: count })),
  TENANTRY_REQUESTS_PER_TENANT: Type.Optional(Type.String({ pattern: count })),
  TENANTRY_REJECTIONS_PER_ADDRESS: Type.Optional(Type.String({ pattern: rate })),
  TENANTRY_EGRESS_PORT: Type.Optional(Type.String({ pattern: port })),
  TENANTRY_EGRESS_STORAGE: Type.Optional(Hosts),
  TENANTRY_EGRESS_MAY_REACH: Type.Optional(Type.String()),
  TENANTRY_EGRESS_FORBIDDEN: Type.Optional(Type.String()),
  TENANTRY_STORAGE_RELAY_PORT: Type.Optional(Type.String({ pattern: port })),
  TENANTRY_S3_ENDPOINT: Type.Optional(Type.String({ minLength: 1 })),
  TENANTRY_S3_REGION: Type.Optional(Type.String({ minLength: 1 })),
  TENANTRY_S3_BUCKET: Type.Optional(Type.String({ minLength: 1 })),
  TENANTRY_S3_PREFIX: Type.Optional(Type.String({ pattern: '^(?:[\\w.-]+/)*$' })),
  TENANTRY_S3_PATH_STYLE: Type.Optional(Type.String({ pattern: '^[01]$' })),
  TENANTRY_S3_ACCESS_KEY_ID: Type.Optional(Type.String({ minLength: 1 })),
  TENANTRY_S3_SECRET_ACCESS_KEY_FILE: Type.Optional(Type.String({ minLength: 1 })),
  TENANTRY_ACCESS_LOG: Type.Optional(Type.String({ pattern: '^(?:0|1|0[.][0-9]{1,6})$' })),
  TENANTRY_CONTROL_URL: Type.String({ pattern: '^https?://[^/?#]+/?$' }),
  TENANTRY_INTERNAL_TOKEN_FILE: Type.String({ minLength: 1 }),
  TENANTRY_DATA: Type.String({ minLength: 1 }),
  TENANTRY_DOMAIN: Type.String({ pattern: domain, maxLength: 189 }),
  TENANTRY_SOURCE: Type.String({ pattern: '^[A-Za-z0-9._-]{1,128}$' }),
  TENANTRY_LOG_LEVEL: Type.Union(logLevels.map((level) => Type.Literal(level))),
} satisfies Record<Name, TSchema>)
type Variables = Static<typeof Variables>

const names = Object.keys(gatewaySettings) as Name[]
const required = new Set<string>(Variables.required)

const defaults = {
  TENANTRY_HOST: '127.0.0.1',
  TENANTRY_INTERNAL_HOST: '127.0.0.1',
  TENANTRY_DOMAIN: 'localhost',
  TENANTRY_SOURCE: 'gateway-local-0',
  TENANTRY_LOG_LEVEL: 'info',
}

export interface Config {
  /** The address that the public server listens on. */
  readonly host: string
  readonly port: number
  /** Whether other gateways listen on that port, too. */
  readonly isPortShared: boolean
  /** The address that the other parts call: the loopback address, unless they are on other machines or in containers. */
  readonly internalHost: string
  readonly internalPort: number
  /** The Postgres proxy to the tenants' databases, on the public host. */
  readonly postgres?: {
    readonly port: number
    /** The operator's certificate. Without it, the proxy uses one of the installation's own authority. */
    readonly tls?: { readonly certFile: string; readonly keyFile: string }
    /** Whether the proxy rejects logins without TLS; undefined for the default. */
    readonly requireTls?: boolean
  }
  /** The egress proxy, on the internal host. */
  readonly egress?: EgressConfig
  /** The storage relay, on the internal host. */
  readonly storageRelay?: StorageRelayConfig
  /** The range of tenants' addresses, whose connections are limited by address. */
  readonly tenantAddresses?: TenantAddresses
  /** Proxies whose forwarding headers are trusted. */
  readonly trustedProxies: readonly Range[]
  /** The control plane's URL, without a trailing slash. */
  readonly controlUrl: string
  readonly internalTokenFile: string
  /** The gateway's own directory. */
  readonly data: string
  /** The domain, in lower case, below which tenants are served: `{name}.{domain}`. */
  readonly domain: string
  /** The gateway's stable name in usage pushes. */
  readonly source: string
  readonly logLevel: LogLevel
  /** The share of the requests that is logged, from 0 to 1. */
  readonly accessLogShare?: number
  /** The limits that the operator has changed. */
  readonly limits?: Partial<Limits>
}

/** @throws ConfigurationError that names every variable that is missing or wrong, but never its value */
export function readConfig(variables: Readonly<Record<string, string | undefined>>): Config {
  const environment = new Environment(gatewaySettings, variables)
  const given: Record<string, string> = { ...defaults }
  for (const name of names) {
    const value = environment.optional(name)
    if (value !== undefined) given[name] = value
  }
  if (!Value.Check(Variables, given)) {
    const wrong = Object.entries(Variables.properties)
      .filter(([name, schema]) => (given[name] === undefined ? required.has(name) : !Value.Check(schema, given[name])))
      .map(([name]) => (given[name] === undefined ? `${name} is missing` : `${name} is not valid`))
    throw new ConfigurationError(`The gateway cannot start: ${wrong.join(', ')}.`)
  }
  return Object.freeze({
    host: given.TENANTRY_HOST,
    port: Number(given.TENANTRY_PORT),
    isPortShared: given.TENANTRY_SHARED_PORT === '1',
    internalHost: given.TENANTRY_INTERNAL_HOST,
    internalPort: Number(given.TENANTRY_INTERNAL_PORT),
    ...postgresOf(given),
    ...tenantAddressesOf(given),
    ...readEgress(environment),
    ...readStorageRelay(environment),
    trustedProxies: parseIpv4Ranges(given.TENANTRY_TRUSTED_PROXIES ?? '') ?? [],
    controlUrl: given.TENANTRY_CONTROL_URL.replace(/\/$/, ''),
    internalTokenFile: given.TENANTRY_INTERNAL_TOKEN_FILE,
    data: given.TENANTRY_DATA,
    domain: given.TENANTRY_DOMAIN,
    source: given.TENANTRY_SOURCE,
    logLevel: given.TENANTRY_LOG_LEVEL,
    ...limitsOf(given),
    ...(given.TENANTRY_ACCESS_LOG === undefined ? {} : { accessLogShare: Number(given.TENANTRY_ACCESS_LOG) }),
  })
}

function postgresOf(given: Variables): Pick<Config, 'postgres'> {
  const {
    TENANTRY_POSTGRES_PORT,
    TENANTRY_POSTGRES_TLS_CERT_FILE: certFile,
    TENANTRY_POSTGRES_TLS_KEY_FILE: keyFile,
    TENANTRY_POSTGRES_REQUIRE_TLS: required,
  } = given
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new ConfigurationError(
      'The gateway cannot start: TENANTRY_POSTGRES_TLS_CERT_FILE and TENANTRY_POSTGRES_TLS_KEY_FILE must both be set.',
    )
  }
  if (TENANTRY_POSTGRES_PORT === undefined) return {}
  const tls = certFile === undefined || keyFile === undefined ? {} : { tls: { certFile, keyFile } }
  const requireTls = required === undefined ? {} : { requireTls: required === '1' }
  return { postgres: { port: Number(TENANTRY_POSTGRES_PORT), ...tls, ...requireTls } }
}

function limitsOf(given: Variables): Pick<Config, 'limits'> {
  const [perSecond, burst] = given.TENANTRY_REJECTIONS_PER_ADDRESS?.split('/') ?? []
  const changed: [keyof Limits, string | undefined][] = [
    ['connectionsPerAddress', given.TENANTRY_CONNECTIONS_PER_ADDRESS],
    ['requestsPerTenant', given.TENANTRY_REQUESTS_PER_TENANT],
    ['requestsPerAddress', given.TENANTRY_REQUESTS_PER_ADDRESS],
    ['rejectionsPerSecond', perSecond],
    ['rejectionsBurst', burst],
  ]
  const set = changed.filter(([, value]) => value !== undefined).map(([name, value]) => [name, Number(value)])
  return set.length === 0 ? {} : { limits: Object.fromEntries(set) as Partial<Limits> }
}

function tenantAddressesOf({
  TENANTRY_TENANT_RANGE,
  TENANTRY_REGION_RANGE,
}: Variables): Pick<Config, 'tenantAddresses'> {
  const range = parseIpv4Range(TENANTRY_TENANT_RANGE ?? '')
  const except = parseIpv4Range(TENANTRY_REGION_RANGE ?? '')
  return range === undefined ? {} : { tenantAddresses: { range, ...(except === undefined ? {} : { except }) } }
}
