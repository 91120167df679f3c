// GET /internal/v1/tls/ask: may a certificate be got for this host name? Asked by the proxy in front of the gateway before
// each new one, so that nobody makes it ask a certificate authority for names that are not ours.
import type { FastifyPluginAsync } from 'fastify'
import { Type, type Static } from 'typebox'
import { ControlError } from '../platform/errors.ts'
import type { RegionConfig } from '../regions/index.ts'

interface RequestTlsDeps {
  regions: readonly Pick<RegionConfig, 'id' | 'domain' | 'gateway_url'>[]
  hosts: {
    /** Is there a tenant of this name in the region? */
    has(name: string, region: string): Promise<boolean>
  }
}

const Query = Type.Object({ domain: Type.String({ minLength: 1, maxLength: 253 }) }, { additionalProperties: false })
type Query = Static<typeof Query>

/** Answers 404 for every other name, whatever is wrong with it. No key: it tells nothing that the host itself does not. */
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
        throw new ControlError('NOT_FOUND', 'there is nothing here')
      },
    )
  }
}

/** Where tenants are served by path. */
function isOwnName(domain: string, region: RequestTlsDeps['regions'][number]): boolean {
  return domain === region.domain || domain === new URL(region.gateway_url).hostname
}

/** The one label before the region's domain. */
function tenantNameOf(domain: string, { domain: parent }: RequestTlsDeps['regions'][number]): string | undefined {
  const name = domain.endsWith(`.${parent}`) ? domain.slice(0, -parent.length - 1) : ''
  return /^[a-z][a-z0-9-]{0,62}$/.test(name) ? name : undefined
}
