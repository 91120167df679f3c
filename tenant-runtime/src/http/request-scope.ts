// The members that the core adds to every request before a module's handler runs, and the access that every route must
// declare.
import type {} from 'fastify'
import type { Reservation } from '../bounds/index.ts'
import type { SentSession } from '../tenancy/developer-sessions.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import type { BodyReader } from './body-reader.ts'

/**
 * The callers that a route admits. The start fails for a route that does not declare it. Row-level security decides about
 * rows and objects in addition.
 * - `public`         anonymous callers too
 * - `authenticated`  a signed-in user or the service role, else 401
 * - `service`        the service role alone, else 401 or 403
 * - `signed`         the URL's own signature; the handler checks it, and then sets `admitted`
 * - `internal`       another part of the installation, for no tenant
 * - `metrics`        a program that reads metrics, with the internal token in either header
 * - `live`           all clients, even without the internal token
 */
export type Access = 'public' | 'authenticated' | 'service' | 'signed' | 'internal' | 'metrics' | 'live'

declare module 'fastify' {
  interface FastifyRequest {
    tenant: Tenant
    rls: RlsContext
    /**
     * Whether the caller may call the route. Until it is true, the response uses none of the tenant's data, and an error is
     * sent as a rejection (`rejectedHeader`), which is free for the tenant.
     */
    admitted: boolean
    /** The memory of the body, until the response; null without a body in memory. */
    bodyReservation: Reservation | null
    /** The URL prefix under which the client sees the tenant: empty, or `/t/<name>`. */
    basePath: string
    /** The valid session of a developer whose cookie the request has, even without its CSRF token; null without one. */
    developerSession: SentSession | null
  }
  interface FastifyInstance {
    /** Reads the bodies of requests. Every parser of a content type that buffers uses it. */
    bodies: BodyReader
  }
  interface FastifyContextConfig {
    access?: Access
  }
}
