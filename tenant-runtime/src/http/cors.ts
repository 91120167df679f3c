// Browsers: preflights on all paths, and what a page may read of our answers.
import type { FastifyInstance, FastifyRequest } from 'fastify'

const methods = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
const exposed = 'Content-Range, Content-Location, Content-Length, Content-Type, ETag, Last-Modified, Location, Range-Unit, Retry-After, X-Relay-Error, X-Request-Id'
const allowedByDefault = 'authorization, apikey, content-type, prefer, range, x-client-info, x-upsert'

/** Credentials are tokens in headers, never cookies, so any origin may call. */
export function corsHeaders({ headers: { origin } }: FastifyRequest): Record<string, string> {
  return origin === undefined ? {} : { 'access-control-allow-origin': '*', 'access-control-expose-headers': exposed }
}

export function addCors(app: FastifyInstance): void {
  app.addHook('onSend', async (request, reply) => {
    reply.headers(corsHeaders(request))
  })
  app.options('/*', { config: { access: 'anyone' } }, async (request, reply) => {
    const asked = request.headers['access-control-request-headers']
    return reply
      .status(204)
      .header('access-control-allow-origin', '*')
      .header('access-control-allow-methods', methods)
      .header('access-control-allow-headers', asked ?? allowedByDefault)
      .header('access-control-max-age', '86400')
      .send()
  })
}
