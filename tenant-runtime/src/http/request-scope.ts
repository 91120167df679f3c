// What the core puts on every request before an area's handler runs, and what every route must declare.
import type {} from 'fastify'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'

/**
 * Who may call a route; the start fails for a route that does not say. Row-level security decides about rows
 * and objects on top of it.
 * - `anyone`         anonymous callers too
 * - `authenticated`  a signed-in user or the service role, else 401
 * - `service`        the service role alone, else 401 or 403
 * - `signed`         the URL's own signature; the handler checks it, and then sets `admitted`
 * - `internal`       another part of the installation, for no tenant
 * - `live`           anybody, even without the internal token
 */
export type Access = 'anyone' | 'authenticated' | 'service' | 'signed' | 'internal' | 'live'

declare module 'fastify' {
  interface FastifyRequest {
    tenant: Tenant
    rls: RlsContext
    /**
     * Whether the caller may call the route. Until it is true, nothing of the tenant's data is read for the response, and an
     * error is sent as a rejection (`rejectedHeader`), which costs the tenant nothing.
     */
    admitted: boolean
    /** URL prefix under which the client sees the tenant: empty, or `/t/<name>`. */
    basePath: string
  }
  interface FastifyContextConfig {
    access?: Access
  }
}
