// GET /usage/v1: a tenant's usage and quota at its own URL, for its service role. The control plane has them, and is called
// for this tenant alone.
import { internalPaths, internalTokenHeader, sentToken, type InternalToken } from '@tenantry/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { RuntimeError } from '../errors.ts'

export interface UsageRoutesDeps {
  controlUrl: string
  internalToken: InternalToken
  fetch: typeof globalThis.fetch
}

const requestMilliseconds = 10_000
const maxResponseBytes = 4 * 1024 * 1024

type UsageRequest = FastifyRequest<{ Params: { month?: string }; Querystring: Record<string, string | string[]> }>

export function addUsageRoutes(app: FastifyInstance, { controlUrl, internalToken, fetch }: UsageRoutesDeps): void {
  const respond = async (request: UsageRequest, reply: FastifyReply) => {
    const url = new URL(internalPaths.ownUsage(request.tenant.id), controlUrl)
    for (const [name, value] of Object.entries(request.query)) {
      if (name !== 'granularity' && name !== 'resource')
        throw new RuntimeError(
          'BAD_REQUEST',
          `Unknown query parameter ${JSON.stringify(name.slice(0, 100))}. Allowed: granularity, resource.`,
        )
      if (typeof value !== 'string' || !/^\w{1,100}$/.test(value))
        throw new RuntimeError('BAD_REQUEST', `Query parameter "${name}" must be one word.`)
      url.searchParams.set(name, value)
    }
    const { month } = request.params
    if (month !== undefined && !/^\d{4}-\d{2}$/.test(month))
      throw new RuntimeError('BAD_REQUEST', 'The month must be YYYY-MM.')
    if (month !== undefined) url.searchParams.set('month', month)
    const response = await send(url, request.headers.accept)
    return reply.status(response.status).type(response.type).header('cache-control', 'no-store').send(response.text)
  }

  /**
   * Calls the control plane.
   * @param accept the caller's Accept header: JSON or CSV
   * @throws RuntimeError USAGE_UNAVAILABLE
   */
  const send = async (url: URL, accept = '*/*'): Promise<{ status: number; type: string; text: string }> => {
    try {
      const response = await fetch(url, {
        headers: { [internalTokenHeader]: sentToken(internalToken), accept },
        signal: AbortSignal.timeout(requestMilliseconds),
      })
      const text = await response.text()
      // Rejections, for example of a month that has not begun, are forwarded to the caller.
      if (response.status >= 500 || text.length > maxResponseBytes)
        throw new Error(`The control plane responded with status ${response.status}.`)
      const isCsv = response.headers.get('content-type')?.startsWith('text/csv') === true
      return { status: response.status, type: `${isCsv ? 'text/csv' : 'application/json'}; charset=utf-8`, text }
    } catch (cause) {
      throw new RuntimeError('USAGE_UNAVAILABLE', 'The usage is currently not available. Retry the request later.', {
        cause,
      })
    }
  }

  for (const path of ['/usage/v1', '/usage/v1/', '/usage/v1/:month'])
    app.get(path, { config: { access: 'service' } }, respond)
}
