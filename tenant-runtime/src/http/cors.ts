// CORS for browsers: preflights on all paths, and the headers that a page may read of responses.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

const methods = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
const exposed =
  'Accept-Ranges, Content-Disposition, Content-Encoding, Content-Length, Content-Location, Content-Range, ' +
  'Content-Type, ETag, Last-Modified, Link, Location, Next-Cursor, Preference-Applied, Proxy-Status, Range-Unit, ' +
  'Retry-After, X-Relay-Error, X-Request-Id'
const allowedByDefault = 'authorization, apikey, content-type, prefer, range, x-client-info, x-upsert'

/**
 * Returns the CORS headers. Credentials are tokens in headers, never cookies, so any origin may call. A browser must not
 * give a script a response that it cached for a request without an origin (an image of a page), because that has no CORS
 * permission.
 */
export function corsHeaders({ headers: { origin } }: FastifyRequest): Record<string, string> {
  return {
    vary: 'Origin',
    ...(origin === undefined ? {} : { 'access-control-allow-origin': '*', 'access-control-expose-headers': exposed }),
  }
}

export function addCors(app: FastifyInstance): void {
  app.addHook('onSend', async (request, reply) => {
    const vary = reply.getHeader('vary')
    reply.headers(corsHeaders(request))
    if (typeof vary === 'string') reply.header('vary', `${vary}, Origin`)
  })
  app.options('/*', { config: { access: 'public' } }, async (request, reply) => sendPreflight(request, reply))
}

/** Whether a browser requests the permissions for a later request. */
export function isPreflight({ headers }: FastifyRequest): boolean {
  return headers['access-control-request-method'] !== undefined
}

/** Sends the permissions for a browser's later request. */
export function sendPreflight(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const requestedHeaders = request.headers['access-control-request-headers']
  return reply
    .status(204)
    .header('access-control-allow-origin', '*')
    .header('access-control-allow-methods', methods)
    .header('access-control-allow-headers', requestedHeaders ?? allowedByDefault)
    .header('access-control-max-age', '86400')
    .send()
}
