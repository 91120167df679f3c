// The content of watches: routes for gateways, manifests for runtimes.
import type { Route, RouteLimits, RoutePhase, TenantManifest } from '@tenantry/contract'
import { type RegionConfig, sharedRuntimeUrls } from '../regions/index.ts'
import { dedicatedDatabase, loginUrl, readOnlyDatabase } from '../homes/index.ts'
import type { Published, PublishedSource } from './watches.ts'
import { apiKeyPrefix, keyHash } from '../keys/index.ts'
import type { Seal } from '../platform/seal.ts'
import {
  clusterMembers,
  hostsOf,
  postgresAlias,
  type Isolation,
  parseRange,
  ports,
  processAddress,
  runtimeAliases,
  tenantSubnet,
} from '../stacks/index.ts'
import { type SecretKind, liveSecrets, toPublicKeys } from '../tenants/index.ts'
import type { Database, Prisma } from '../platform/database.ts'
import { type HomeLimits, toHeldRate, toRuntimeLimits } from '../quotas/index.ts'

const withAll = {
  plan: true,
  sharedDatabase: true,
  spendingLimit: true,
  placements: { where: { service: 'runtime' } },
  secrets: { orderBy: { createdAt: 'desc' } },
} as const
type Row = Prisma.TenantGetPayload<{ include: typeof withAll }>

const batchSize = 500

interface RuntimeLimits {
  /** Maximum bytes of one upload if its bucket sets no limit (specification, section 8). */
  maxUploadBytes: number
  homeLimits: HomeLimits
}

/** Creates the source of watches. */
export function createPublishedSource(
  database: Database,
  seal: Seal,
  regions: readonly RegionConfig[],
  { maxUploadBytes, homeLimits }: RuntimeLimits,
  now: () => Date,
): PublishedSource {
  const published = (row: Row, subnets: ReadonlyMap<string, number>): Published | undefined => {
    const region = regions.find(({ id }) => id === row.regionId)
    if (region === undefined) return undefined
    const dedicated = row.isolation !== 'schema-per-tenant'
    const own = ownAddresses(row, region, subnets.get(row.id))
    const postgres = dedicated ? own.postgres : hostAndPort(region.postgres_url)
    const route: Route = {
      tenant_id: row.id,
      name: row.name,
      generation: row.generation,
      // A check constraint limits this column to the phases.
      phase: row.routePhase as RoutePhase,
      dedicated,
      runtimes: dedicated ? own.runtimes : [...sharedRuntimeUrls(region, row.id)],
      ...(postgres === undefined ? {} : { postgres }),
      home_database: row.sharedDatabase?.name ?? dedicatedDatabase,
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
        requests_per_month: toNumber(row.plan.requestsPerMonth),
        connections: row.plan.realtimeConnections,
        rate: toHeldRate(row).limit,
        ...spendingReached(row.spendingLimit?.rejectsUntil, now()),
      },
      ...(row.desired === 'suspended' ? { reason: suspendReason(row), payment_required: row.paymentRequired } : {}),
    }
    const isServed = row.homeVersion !== null && postgres !== undefined
    return {
      tenantId: row.id,
      region: region.id,
      route,
      manifest: isServed ? manifest(row, region, postgres) : undefined,
      ...(dedicated && spansHosts(region) ? { siblings: own.runtimes.length - 1 } : {}),
    }
  }

  /** The oldest base backup can be older than the period that the archive covers. */
  const extraFileDays = 2

  const manifest = (row: Row, region: RegionConfig, postgres: string): TenantManifest => {
    const { texts, expiries, creations } = liveSecrets(row.id, row.secrets, seal, now())
    const newest = (kind: SecretKind) => texts[kind][0] ?? ''
    const dedicated = row.isolation !== 'schema-per-tenant'
    const server = dedicated ? `postgresql://${postgres}` : region.postgres_url
    const homeDatabase = dedicated ? dedicatedDatabase : (row.sharedDatabase?.name ?? '')
    const urls = (role: 'runtime' | 'ddl'): [string, ...string[]] => {
      const [newest = '', ...older] = texts[`${role}_password`].map((password) =>
        loginUrl(server, homeDatabase, row.id, role, password),
      )
      // During a rotation, the login has an older password until all runtimes know the newest one.
      return row.servicePasswordsDue ? [older.pop() ?? newest, ...older, newest] : [newest]
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
        ...(isInCluster(row.isolation, region) ? { members: memberAddresses } : {}),
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
        file_bytes: toNumber(row.plan.fileBytes),
        document_bytes: toNumber(row.plan.documentBytes),
        max_upload_bytes: maxUploadBytes,
        requests_per_month: toNumber(row.plan.requestsPerMonth),
        connections: row.plan.realtimeConnections,
        ...toRuntimeLimits(homeLimits, row.plan.id),
      },
      ...unserved(row),
      ...(row.archiveDays === null ? {} : { retain_files_seconds: (row.archiveDays + extraFileDays) * 86_400 }),
    }
  }

  /** Returns the numbers of the subnets of tenants whose services are processes. Others are reached by their names. */
  const subnetsOf = async (rows: readonly Row[]): Promise<Map<string, number>> => {
    const hosts = new Set(regions.filter(({ processes }) => processes !== undefined).map(({ id }) => id))
    const ids = rows
      .filter(({ isolation, regionId }) => isolation !== 'schema-per-tenant' && hosts.has(regionId))
      .map(({ id }) => id)
    if (ids.length === 0) return new Map()
    const subnets = await database.subnet.findMany({ where: { stackId: { in: ids } } })
    return new Map(subnets.map(({ stackId, number }) => [stackId, number]))
  }

  return {
    async *all() {
      let after = ''
      for (;;) {
        const rows = await database.tenant.findMany({
          where: { id: { gt: after } },
          orderBy: { id: 'asc' },
          take: batchSize,
          include: withAll,
        })
        const subnets = await subnetsOf(rows)
        for (const row of rows) {
          const entry = published(row, subnets)
          if (entry !== undefined) yield entry
          after = row.id
        }
        if (rows.length < batchSize) return
      }
    },
    async some(tenantIds) {
      const rows = await database.tenant.findMany({ where: { id: { in: [...tenantIds] } }, include: withAll })
      const subnets = await subnetsOf(rows)
      return rows.flatMap((row) => published(row, subnets) ?? [])
    },
  }
}

/** Returns the addresses of a tenant's own services: names on its network, or loopback addresses of its processes. */
function ownAddresses(
  { id, isolation: model, placements }: Pick<Row, 'id' | 'isolation' | 'placements'>,
  { processes }: RegionConfig,
  subnet: number | undefined,
): { runtimes: string[]; postgres?: string } {
  if (processes === undefined) {
    // A check constraint limits the column to the models.
    const isolation = model as Isolation
    // The services of a single database are on one host.
    const host = placements[0]?.hostId
    return {
      runtimes: runtimeAliases(id, isolation, host).map((alias) => `http://${alias}:${ports.runtime}`),
      postgres: `${postgresAlias(id, isolation, host)}:${ports.postgres}`,
    }
  }
  // A new tenant has no addresses yet, and its route is not ready.
  if (subnet === undefined) return { runtimes: [] }
  const own = tenantSubnet(parseRange(processes.address_range), subnet)
  return {
    runtimes: [`http://${processAddress(own, 'runtime')}:${processes.runtime_port}`],
    postgres: `${processAddress(own, 'postgres')}:${processes.postgres_port}`,
  }
}

/** Names and ports of a cluster's members on its network. */
const memberAddresses = clusterMembers.map((name) => `${name}:${ports.postgres}`)

/** Whether a tenant's Postgres is a cluster: one of its own, or the one that tenants of a region on several hosts share. */
function isInCluster(isolation: string, region: RegionConfig): boolean {
  if (isolation !== 'schema-per-tenant') return isolation === 'cluster-per-tenant'
  return spansHosts(region)
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
function spendingReached(until: Date | null | undefined, at: Date): Pick<RouteLimits, 'spending_reached_until'> {
  return until == null || until <= at ? {} : { spending_reached_until: until.toISOString() }
}

/**
 * Returns why gateways reject all requests, from the moment at which their routes do. It ends when the tenant is to be served
 * again, so that its runtimes accept connections before its gateways do.
 */
function unserved(row: Row): Pick<TenantManifest, 'unserved'> {
  if (row.desired !== row.routePhase) return {}
  if (row.desired === 'suspended') return { unserved: { phase: 'suspended', reason: suspendReason(row) } }
  return row.desired === 'deleted' ? { unserved: { phase: 'deleted' } } : {}
}

/** Returns the public reason of a suspension. */
function suspendReason({ suspendReason: reason }: Row): string {
  return reason ?? 'The operator has suspended the tenant.'
}

function toNumber(value: bigint | null): number | null {
  return value === null ? null : Number(value)
}
