// The loopback server for the other parts of the installation: liveness, and routes as this gateway has applied them.
import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { internalPaths, internalTokenHeader, isTenantId, type ErrorBody } from '@tenantry/contract'
import type { RouteTable } from '../routes/route-table.ts'

export interface InternalServerOptions {
  routes: RouteTable
  internalToken: string
}

export function createInternalServer({ routes, internalToken }: InternalServerOptions): Server {
  const expected = digest(internalToken)
  const routePrefix = internalPaths.route('')
  return createServer((request, response) => {
    const path = request.url ?? ''
    request.resume()
    if (request.method !== 'GET') {
      answer(response, 405, failure(405, 'METHOD_NOT_ALLOWED', 'Only GET is served here.'))
      return
    }
    if (path === internalPaths.live) {
      answer(response, 200, { status: 'healthy' })
      return
    }
    const token = request.headers[internalTokenHeader]
    if (typeof token !== 'string' || !timingSafeEqual(digest(token), expected)) {
      answer(response, 403, failure(403, 'FORBIDDEN', 'The internal token is missing or wrong.'))
      return
    }
    const tenantId = path.startsWith(routePrefix) ? path.slice(routePrefix.length) : ''
    const route = isTenantId(tenantId) ? routes.get(tenantId) : undefined
    if (route === undefined) answer(response, 404, failure(404, 'NOT_FOUND', 'No such route.'))
    else answer(response, 200, route)
  })
}

/** Of equal length whatever was sent, so that they can be compared in constant time. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

function failure(status: number, code: string, message: string): ErrorBody {
  return { statusCode: String(status), error: code.toLowerCase(), message, code }
}

function answer(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
}
