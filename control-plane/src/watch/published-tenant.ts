// What gateways and runtimes receive about one tenant: the route and the manifest, made from the tenant's row. Pure.
import type { RateLimit, Route, RouteLimits, RoutePhase, TenantManifest } from '@tenantry/contract'
import { type RegionConfig, sharedRuntimeUrls } from '../regions/index.ts'
import { dedicatedDatabase, loginUrl, readOnlyDatabase } from '../homes/index.ts'
import { apiKeyPrefix, keyHash } from '../keys/index.ts'
import type { Seal } from '../platform/seal.ts'
import {
  clusterMembers,
  hostsOf,
  postgresAlias,
  parseRange,
  ports,
  processAddress,
  runtimeAliases,
  tenantSubnet,
} from '../stacks/index.ts'
import { type SecretKind, liveSecrets, readSecretsText, toPublicKeys } from '../tenants/index.ts'
import { type HomeLimits, toHeldRate, toRuntimeLimits } from '../quotas/index.ts'
import type { PublishedRow, PublishedText } from './store-published-rows.ts'
import type { Published } from './watches.ts'

/** Limits of all runtimes. */
export interface RuntimeLimits {
  /** Maximum bytes of one upload if its bucket sets no limit (specification, section 8). */
  maxUploadBytes: number
  homeLimits: HomeLimits
}

interface PublishedOptions {
  seal: Seal
  limits: RuntimeLimits
  now: () => Date
}

/** The oldest base backup can be older than the period that the archive covers. */
const extraFileDays = 2

/**
 * The entry of a tenant. Its parts are made when they are needed: all entries are in memory, and opening a tenant's
 * secrets takes most of the time of making its parts.
 */
export class PublishedTenant implements Published {
  readonly tenantId: string
  readonly region: string
  /** The row, as JSON. */
  readonly version: string
  readonly #config: RegionConfig
  readonly #options: PublishedOptions

  constructor({ id, text }: PublishedText, config: RegionConfig, options: PublishedOptions) {
    this.tenantId = id
    this.region = config.id
    this.version = text
    this.#config = config
    this.#options = options
  }

  get #row(): PublishedRow {
    return JSON.parse(this.version) as PublishedRow
  }

  get route(): Route {
    return routeOf(this.#row, this.#config, this.#options.now())
  }

  get manifest(): TenantManifest | undefined {
    const row = this.#row
    const postgres = row.home_version === null ? undefined : postgresOf(row, this.#config)
    return postgres === undefined ? undefined : manifestOf(row, this.#config, postgres, this.#options)
  }

  get siblings(): number | undefined {
    const row = this.#row
    return isShared(row) || !spansHosts(this.#config) ? undefined : ownAddresses(row, this.#config).runtimes.length - 1
  }
}

function routeOf(row: PublishedRow, region: RegionConfig, now: Date): Route {
  const dedicated = !isShared(row)
  const postgres = postgresOf(row, region)
  return {
    tenant_id: row.id,
    name: row.name,
    generation: row.generation,
    // A check constraint limits this column to the phases.
    phase: row.route_phase as RoutePhase,
    dedicated,
    runtimes: dedicated ? ownAddresses(row, region).runtimes : [...sharedRuntimeUrls(region, row.id)],
    ...(postgres === undefined ? {} : { postgres }),
    home_database: row.home_database ?? dedicatedDatabase,
    ...(row.isolation === 'cluster-per-tenant'
      ? {
          read_only: {
            postgres: `${postgresAlias(row.id, row.isolation)}:${ports.postgresReplicas}`,
            alias: readOnlyDatabase,
            database: dedicatedDatabase,
          },
        }
      : {}),
    limits: {
      requests_per_month: row.requests_per_month,
      connections: row.realtime_connections,
      rate: heldRate(row),
      ...spendingReached(row.rejects_until, now),
    },
    ...(row.desired === 'suspended' ? { reason: suspendReason(row), payment_required: row.payment_required } : {}),
  }
}

function manifestOf(
  row: PublishedRow,
  region: RegionConfig,
  postgres: string,
  { seal, limits, now }: PublishedOptions,
): TenantManifest {
  const { texts, expiries, creations } = liveSecrets(row.id, readSecretsText(row.secrets), seal, now())
  const newest = (kind: SecretKind) => texts[kind][0] ?? ''
  const dedicated = !isShared(row)
  const server = dedicated ? `postgresql://${postgres}` : region.postgres_url
  const homeDatabase = dedicated ? dedicatedDatabase : (row.home_database ?? '')
  const urls = (role: 'runtime' | 'ddl'): [string, ...string[]] => {
    const [newest = '', ...older] = texts[`${role}_password`].map((password) =>
      loginUrl(server, homeDatabase, row.id, role, password),
    )
    // During a rotation, the login has an older password until all runtimes know the newest one.
    return row.service_passwords_due ? [older.pop() ?? newest, ...older, newest] : [newest]
  }
  const [[url, ...others], [ddlUrl, ...ddlOthers]] = [urls('runtime'), urls('ddl')]
  const keys = (kind: 'publishable' | 'secret') =>
    texts[`${kind}_key`].map((text, at) => {
      const expiresAt = expiries[`${kind}_key`][at]
      const createdAt = creations[`${kind}_key`][at]
      return {
        kind,
        sha256: keyHash(text),
        prefix: apiKeyPrefix(text),
        ...(createdAt === undefined ? {} : { created_at: createdAt }),
        ...(expiresAt == null ? {} : { expires_at: expiresAt }),
      }
    })
  return {
    tenant_id: row.id,
    name: row.name,
    generation: row.generation,
    home: {
      url,
      ddl_url: ddlUrl,
      admin_url: loginUrl(server, homeDatabase, row.id, 'admin', newest('admin_password')),
      ...(others.length === 0 ? {} : { other_urls: others, other_ddl_urls: ddlOthers }),
      ...(isInCluster(row, region) ? { members: memberAddresses } : {}),
      schema: row.id,
    },
    keys: [...keys('publishable'), ...keys('secret')],
    jwt_secrets: texts.jwt_secret,
    jwt_secret_expiries: expiries.jwt_secret,
    jwt_secret_creations: creations.jwt_secret,
    jwks: toPublicKeys(row.jwks),
    signing_secret: newest('signing_secret'),
    former_signing_secrets: texts.signing_secret.flatMap((secret, at) => {
      const expiresAt = expiries.signing_secret[at]
      return expiresAt == null ? [] : [{ secret, expires_at: expiresAt }]
    }),
    limits: {
      file_bytes: row.file_bytes,
      document_bytes: row.document_bytes,
      max_upload_bytes: limits.maxUploadBytes,
      requests_per_month: row.requests_per_month,
      connections: row.realtime_connections,
      ...toRuntimeLimits(limits.homeLimits, row.plan_id),
    },
    ...unserved(row),
    ...(row.archive_days === null ? {} : { retain_files_seconds: (row.archive_days + extraFileDays) * 86_400 }),
  }
}

/** Returns the rate that applies to the tenant; null for an unlimited one. */
function heldRate(row: PublishedRow): RateLimit | null {
  return toHeldRate({
    ratePerSecond: row.rate_per_second,
    rateBurst: row.rate_burst,
    rateUnlimited: row.rate_unlimited,
    plan: { ratePerSecond: row.plan_rate_per_second, rateBurst: row.plan_rate_burst },
  }).limit
}

function isShared({ isolation }: Pick<PublishedRow, 'isolation'>): boolean {
  return isolation === 'schema-per-tenant'
}

/** Returns host and port of the tenant's Postgres; undefined for a new tenant whose services have no addresses yet. */
function postgresOf(row: PublishedRow, region: RegionConfig): string | undefined {
  return isShared(row) ? hostAndPort(region.postgres_url) : ownAddresses(row, region).postgres
}

/** Returns the addresses of a tenant's own services: names on its network, or loopback addresses of its processes. */
function ownAddresses(
  { id, isolation, runtime_host: runtimeHost, subnet }: PublishedRow,
  { processes }: RegionConfig,
): { runtimes: string[]; postgres?: string } {
  if (processes === undefined) {
    // The services of a single database are on one host.
    const host = runtimeHost ?? undefined
    return {
      runtimes: runtimeAliases(id, isolation, host).map((alias) => `http://${alias}:${ports.runtime}`),
      postgres: `${postgresAlias(id, isolation, host)}:${ports.postgres}`,
    }
  }
  // A new tenant has no addresses yet, and its route is not ready.
  if (subnet === null) return { runtimes: [] }
  const own = tenantSubnet(parseRange(processes.address_range), subnet)
  return {
    runtimes: [`http://${processAddress(own, 'runtime')}:${processes.runtime_port}`],
    postgres: `${processAddress(own, 'postgres')}:${processes.postgres_port}`,
  }
}

/** Names and ports of a cluster's members on its network. */
const memberAddresses = clusterMembers.map((name) => `${name}:${ports.postgres}`)

/** Whether a tenant's Postgres is a cluster: one of its own, or the one that tenants of a region on several hosts share. */
function isInCluster(row: PublishedRow, region: RegionConfig): boolean {
  return isShared(row) ? spansHosts(region) : row.isolation === 'cluster-per-tenant'
}

function spansHosts({ docker }: Pick<RegionConfig, 'docker'>): boolean {
  return docker !== undefined && hostsOf(docker).length > 0
}

/** Returns the address in a URL, in which a Unix socket's directory is percent-encoded. */
function hostAndPort(postgresUrl: string): string {
  const { hostname, port } = new URL(postgresUrl)
  return `${decodeURIComponent(hostname)}:${port === '' ? ports.postgres : port}`
}

/** Returns the end of the time in which the tenant's requests are rejected because of its spending limit, if it is not over. */
function spendingReached(rejectsUntil: string | null, at: Date): Pick<RouteLimits, 'spending_reached_until'> {
  const until = rejectsUntil === null ? undefined : new Date(rejectsUntil)
  return until === undefined || until <= at ? {} : { spending_reached_until: until.toISOString() }
}

/**
 * Returns why gateways reject all requests, from the moment at which their routes do. It ends when the tenant is to be served
 * again, so that its runtimes accept connections before its gateways do.
 */
function unserved(row: PublishedRow): Pick<TenantManifest, 'unserved'> {
  if (row.desired !== row.route_phase) return {}
  if (row.desired === 'suspended') return { unserved: { phase: 'suspended', reason: suspendReason(row) } }
  return row.desired === 'deleted' ? { unserved: { phase: 'deleted' } } : {}
}

/** Returns the public reason of a suspension. */
function suspendReason({ suspend_reason: reason }: PublishedRow): string {
  return reason ?? 'The operator has suspended the tenant.'
}
