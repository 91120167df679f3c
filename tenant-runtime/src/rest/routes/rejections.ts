// Rejections in PostgREST's form of requests that no route of the interface handles: unknown paths and methods, and invalid
// tokens.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RuntimeError } from '../../errors.ts'
import { restError } from '../rest-error.ts'
import { publicRoute } from './rest-request.ts'

const prefix = '/rest/v1'

export async function addRejections(app: FastifyInstance): Promise<void> {
  app.setErrorHandler((error, { url }) => {
    // The reload is not a part of PostgREST's interface.
    throw isOfToken(error) && url.startsWith(prefix) ? tokenError(error) : error
  })
  for (const [url, method] of [
    ...['PUT', 'PATCH', 'DELETE'].map((method) => [`${prefix}/rpc/:name`, method] as const),
    ...['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [`${prefix}/`, method] as const),
  ])
    app.route({
      method,
      url,
      ...publicRoute,
      // The body is not read.
      preParsing: async (request) => {
        throw noSuchRoute(request)
      },
      handler: async () => undefined,
    })
  await app.register(
    async (unknown) => {
      unknown.setNotFoundHandler((request) => {
        throw noSuchRoute(request)
      })
    },
    { prefix },
  )
}

function noSuchRoute({ method, url }: FastifyRequest): RuntimeError {
  const [path = ''] = url.split('?', 1)
  const [first, second, ...others] = path
    .slice(prefix.length)
    .split('/')
    .filter((segment) => segment !== '')
  if (others.length === 0 && first === 'rpc' && second !== undefined)
    return restError('METHOD_NOT_ALLOWED', { code: 'PGRST101', message: `Cannot use the ${method} method on RPC` })
  if (second !== undefined)
    return restError('NOT_FOUND', { code: 'PGRST125', message: 'Invalid path specified in request URL' })
  return restError('METHOD_NOT_ALLOWED', { code: 'PGRST117', message: `Unsupported HTTP method: ${method}` })
}

function isOfToken(error: unknown): error is RuntimeError {
  return error instanceof RuntimeError && error.code === 'INVALID_TOKEN'
}

function tokenError(error: RuntimeError): RuntimeError {
  return error.isExpired
    ? restError('INVALID_TOKEN', { code: 'PGRST303', message: 'JWT expired', cause: error })
    : restError('INVALID_TOKEN', { code: 'PGRST301', message: error.message, cause: error })
}
