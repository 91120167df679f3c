// GET /keys/v1: the tenant's API keys and what verifies the tokens of its users, for its service role. Never a value.
import type { FastifyInstance } from 'fastify'
import { isLive } from '../tenancy/authenticate.ts'
import type { KeyUse } from '../tenancy/key-use.ts'

interface KeyRoutesOptions {
  /** The uses of API keys; undefined where other runtimes serve the same tenants, and none knows all uses. */
  uses: KeyUse | undefined
  now: () => Date
}

/** Adds the route. Members that the manifest of an earlier version lacks are null. */
export function addKeyRoutes(app: FastifyInstance, { uses, now }: KeyRoutesOptions): void {
  app.get('/keys/v1', { config: { access: 'service' } }, async ({ tenant }, reply) => {
    const {
      keys,
      jwt_secrets: secrets,
      jwt_secret_creations: creations,
      jwt_secret_expiries: expiries,
    } = tenant.manifest
    const at = now().getTime()
    const isValid = ({ expires_at: expiresAt }: { expires_at?: string | null }) => isLive(expiresAt, at)
    return reply.header('cache-control', 'no-store').send({
      keys: keys.filter(isValid).map(({ kind, sha256, prefix = null, ...times }) => ({
        name: `${kind}_key`,
        kind,
        prefix,
        created_at: times.created_at ?? null,
        expires_at: times.expires_at ?? null,
        last_used_at: isoTime(uses?.lastUse(tenant.id, sha256)),
      })),
      uses_known_since: isoTime(uses?.since),
      jwt_secrets: secrets
        .map((_, nth) => ({
          algorithm: 'HS256',
          created_at: creations?.[nth] ?? null,
          expires_at: expiries?.[nth] ?? null,
        }))
        .filter(isValid),
      public_keys: (tenant.manifest.jwks ?? []).map(({ kid, alg }) => ({ kid, algorithm: alg })),
    })
  })
}

function isoTime(milliseconds: number | undefined): string | null {
  return milliseconds === undefined ? null : new Date(milliseconds).toISOString()
}
