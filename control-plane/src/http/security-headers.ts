// Headers that protect browsers, on every response.
import type { FastifyInstance } from 'fastify'

/** The policy of data: it loads nothing and is shown in no frame. */
const dataPolicy = "default-src 'none'; frame-ancestors 'none'"
/** The policy of the page of the API's documentation, which has its own scripts and styles. */
const documentationPolicy = "frame-ancestors 'none'"

/** Adds the headers. A route may set its own `Content-Security-Policy` and `Cache-Control`. */
export function addSecurityHeaders(app: FastifyInstance, documentation: string): void {
  app.addHook('onSend', async (request, reply) => {
    reply.header('x-content-type-options', 'nosniff')
    reply.header('referrer-policy', 'no-referrer')
    reply.header('x-frame-options', 'DENY')
    reply.header('x-request-id', request.id)
    const isDocumentation = request.url === documentation || request.url.startsWith(`${documentation}/`)
    if (!reply.hasHeader('content-security-policy'))
      reply.header('content-security-policy', isDocumentation ? documentationPolicy : dataPolicy)
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
  })
}
