// GET /internal/v1/tls/ask: reports whether a certificate may be obtained for a host name. The proxy in front of the
// gateway calls it before each new certificate, so that no client can make it request certificates for foreign names.
import type { FastifyPluginAsync } from 'fastify'
import { Type, type Static } from 'typebox'
import { ControlError } from '../platform/errors.ts'
import type { RegionConfig } from '../regions/index.ts'

interface RequestTlsDeps {
  regions: readonly Pick<RegionConfig, 'id' | 'domain' | 'gateway_url'>[]
  hosts: {
    /** Whether a tenant of the region has this name. */
    has(name: string, region: string): Promise<boolean>
  }
}

const Query = Type.Object({ domain: Type.String({ minLength: 1, maxLength: 253 }) }, { additionalProperties: false })
type Query = Static<typeof Query>

/**
 * Adds the route. It responds with 404 to every other name, for any reason. It needs no key, because the host itself
 * reveals the same.
 */
export function requestTls({ regions, hosts }: RequestTlsDeps): FastifyPluginAsync {
  return async (app) => {
    app.get<{ Querystring: Query }>(
      '/internal/v1/tls/ask',
      { config: { scopes: 'public' }, schema: { hide: true, querystring: Query } },
      async ({ query }) => {
        const domain = query.domain.toLowerCase()
        for (const region of regions) {
          if (isOwnName(domain, region)) return { domain }
          const name = tenantNameOf(domain, region)
          if (name !== undefined && (await hosts.has(name, region.id))) return { domain }
        }
        throw new ControlError('NOT_FOUND', 'There is no such host.')
      },
    )
  }
}

/** Whether a domain is one at which tenants are served by path. */
function isOwnName(domain: string, region: RequestTlsDeps['regions'][number]): boolean {
  return domain === region.domain || domain === new URL(region.gateway_url).hostname
}

/** Returns the one label before the region's domain. */
function tenantNameOf(domain: string, { domain: parent }: RequestTlsDeps['regions'][number]): string | undefined {
  const name = domain.endsWith(`.${parent}`) ? domain.slice(0, -parent.length - 1) : ''
  return /^[a-z][a-z0-9-]{0,62}$/.test(name) ? name : undefined
}
