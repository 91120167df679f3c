// POST /console/v1/realtime-token: exchanges the session for tokens that a WebSocket can send. A browser's WebSocket has no headers,
// and an address can be logged, so the token in the address is anonymous.
import { SignJWT } from 'jose'
import type { FastifyInstance } from 'fastify'
import type { Tenant } from '../tenancy/tenant.ts'

const tokenSeconds = 900

/** Adds the route, for the service role. `now` returns the current time. */
export function addRealtimeToken(app: FastifyInstance, now: () => Date): void {
  app.post('/console/v1/realtime-token', { config: { access: 'service' } }, async ({ tenant }, reply) => {
    const expires = Math.floor(now().getTime() / 1000) + tokenSeconds
    const sign = (role: 'anon' | 'service_role') => signToken(tenant, role, expires)
    return reply.header('cache-control', 'no-store').send({
      connect_token: await sign('anon'),
      access_token: await sign('service_role'),
      expires_at: new Date(expires * 1000).toISOString(),
    })
  })
}

function signToken({ manifest }: Tenant, role: string, expires: number): Promise<string> {
  const [secret = ''] = manifest.jwt_secrets
  return new SignJWT({ role })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setExpirationTime(expires)
    .sign(Buffer.from(secret))
}
