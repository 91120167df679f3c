// The content of watches: routes for gateways, manifests for runtimes.
import type { Route, RoutePhase, TenantManifest } from '@tenantry/contract'
import { type RegionConfig, sharedRuntimeUrls } from '../regions/index.ts'
import { dedicatedDatabase, loginUrl, readOnlyDatabase } from '../homes/index.ts'
import type { Published, PublishedSource } from './watches.ts'
import { keyHash } from '../keys/index.ts'
import type { Seal } from '../platform/seal.ts'
import { componentAlias, type Isolation, ports, runtimeAliases } from '../stacks/index.ts'
import { type SecretKind, liveSecrets, toPublicKeys } from '../tenants/index.ts'
import type { Database, Prisma } from '../platform/database.ts'
import { type HomeLimits, toHeldRate, toRuntimeLimits } from '../quotas/index.ts'

const withAll = { plan: true, sharedDatabase: true, secrets: { orderBy: { createdAt: 'desc' } } } as const
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
  const published = (row: Row): Published | undefined => {
    const region = regions.find(({ id }) => id === row.regionId)
    if (region === undefined) return undefined
    const dedicated = row.isolation !== 'schema-per-tenant'
    const route: Route = {
      tenant_id: row.id,
      name: row.name,
      generation: row.generation,
      // A check constraint limits this column to the phases.
      phase: row.routePhase as RoutePhase,
      dedicated,
      runtimes: dedicated
        ? runtimeAliases(row.id, row.isolation as Isolation).map((alias) => `http://${alias}:${ports.runtime}`)
        : [...sharedRuntimeUrls(region, row.id)],
      postgres: dedicated
        ? `${componentAlias(row.id, 'postgres')}:${ports.postgres}`
        : hostAndPort(region.postgres_url),
      ...(row.isolation === 'cluster-per-tenant'
        ? {
            read_only: {
              postgres: `${componentAlias(row.id, 'postgres')}:${ports.postgresReplicas}`,
              alias: readOnlyDatabase,
              database: dedicatedDatabase,
            },
          }
        : {}),
      limits: {
        requests_per_month: toNumber(row.plan.requestsPerMonth),
        connections: row.plan.realtimeConnections,
        rate: toHeldRate(row).limit,
      },
      ...(row.desired === 'suspended'
        ? {
            reason: row.suspendReason ?? 'The operator has suspended the tenant.',
            payment_required: row.paymentRequired,
          }
        : {}),
    }
    return { tenantId: row.id, route, manifest: row.homeVersion === null ? undefined : manifest(row, region) }
  }

  /** The oldest base backup can be older than the period that the archive covers. */
  const extraFileDays = 2

  const manifest = (row: Row, region: RegionConfig): TenantManifest => {
    const { texts, expiries } = liveSecrets(row.id, row.secrets, seal, now())
    const newest = (kind: SecretKind) => texts[kind][0] ?? ''
    const dedicated = row.isolation !== 'schema-per-tenant'
    const server = dedicated
      ? `postgresql://${componentAlias(row.id, 'postgres')}:${ports.postgres}`
      : region.postgres_url
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
        return { kind, sha256: keyHash(text), ...(expiresAt == null ? {} : { expires_at: expiresAt }) }
      })
    return {
      tenant_id: row.id,
      name: row.name,
      generation: row.generation,
      home: {
        url,
        ddl_url: ddlUrl,
        ...(others.length === 0 ? {} : { other_urls: others, other_ddl_urls: ddlOthers }),
        schema: row.id,
      },
      keys: [...keys('publishable'), ...keys('secret')],
      jwt_secrets: texts.jwt_secret,
      jwt_secret_expiries: expiries.jwt_secret,
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
      ...(row.archiveDays === null ? {} : { retain_files_seconds: (row.archiveDays + extraFileDays) * 86_400 }),
    }
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
        for (const row of rows) {
          const entry = published(row)
          if (entry !== undefined) yield entry
          after = row.id
        }
        if (rows.length < batchSize) return
      }
    },
    async some(tenantIds) {
      const rows = await database.tenant.findMany({ where: { id: { in: [...tenantIds] } }, include: withAll })
      return rows.flatMap((row) => published(row) ?? [])
    },
  }
}

/** Returns the address in a URL, in which a Unix socket's directory is percent-encoded. */
function hostAndPort(postgresUrl: string): string {
  const { hostname, port } = new URL(postgresUrl)
  return `${decodeURIComponent(hostname)}:${port === '' ? ports.postgres : port}`
}

function toNumber(value: bigint | null): number | null {
  return value === null ? null : Number(value)
}
