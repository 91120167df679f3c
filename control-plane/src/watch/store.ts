// The content of watches: routes for gateways, manifests for runtimes.
import type { Route, RoutePhase, TenantManifest } from '@tenantry/contract'
import type { RegionConfig } from '../regions/index.ts'
import { dedicatedDatabase, loginUrl } from '../homes/index.ts'
import type { Published, PublishedSource } from './watch-hub.ts'
import { keyHash } from '../keys/index.ts'
import type { Seal } from '../platform/seal.ts'
import { componentAlias, ports } from '../stacks/index.ts'
import { type SecretKind, liveSecrets } from '../tenants/index.ts'
import type { Database, Prisma } from '../platform/database.ts'
import { toHeldRate } from '../quotas/index.ts'

const withAll = { plan: true, sharedDatabase: true, secrets: { orderBy: { createdAt: 'desc' } } } as const
type Row = Prisma.TenantGetPayload<{ include: typeof withAll }>

const batchSize = 500

/**
 * Creates the source of watches. @param maxUploadBytes of one upload if its bucket sets no limit (specification,
 * section 8)
 */
export function createPublishedSource(
  database: Database,
  seal: Seal,
  regions: readonly RegionConfig[],
  maxUploadBytes: number,
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
      runtimes: dedicated ? [`http://${componentAlias(row.id, 'runtime')}:${ports.runtime}`] : region.runtime_urls,
      postgres: dedicated
        ? `${componentAlias(row.id, 'postgres')}:${ports.postgres}`
        : hostAndPort(region.postgres_url),
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

  const manifest = (row: Row, region: RegionConfig): TenantManifest => {
    const { texts } = liveSecrets(row.id, row.secrets, seal, now())
    const newest = (kind: SecretKind) => texts[kind][0] ?? ''
    const dedicated = row.isolation !== 'schema-per-tenant'
    const server = dedicated
      ? `postgresql://${componentAlias(row.id, 'postgres')}:${ports.postgres}`
      : region.postgres_url
    const homeDatabase = dedicated ? dedicatedDatabase : (row.sharedDatabase?.name ?? '')
    const login = (role: 'runtime' | 'ddl') => loginUrl(server, homeDatabase, row.id, role, newest(`${role}_password`))
    const keys = (kind: 'publishable' | 'secret') =>
      texts[`${kind}_key`].map((text) => ({ kind, sha256: keyHash(text) }))
    return {
      tenant_id: row.id,
      name: row.name,
      generation: row.generation,
      home: { url: login('runtime'), ddl_url: login('ddl'), schema: row.id },
      keys: [...keys('publishable'), ...keys('secret')],
      jwt_secrets: texts.jwt_secret,
      signing_secret: newest('signing_secret'),
      limits: {
        file_bytes: toNumber(row.plan.fileBytes),
        document_bytes: toNumber(row.plan.documentBytes),
        max_upload_bytes: maxUploadBytes,
        requests_per_month: toNumber(row.plan.requestsPerMonth),
        connections: row.plan.realtimeConnections,
      },
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

function hostAndPort(postgresUrl: string): string {
  const { hostname, port } = new URL(postgresUrl)
  return `${hostname}:${port === '' ? ports.postgres : port}`
}

function toNumber(value: bigint | null): number | null {
  return value === null ? null : Number(value)
}
