// Makes all error bodies: maps the runtime's own errors, Fastify's and the validator's to one form.
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LimitedReports, rejectedHeader, violationOf, type ErrorBody } from '@tenantry/contract'
import { databaseError } from '../database/database-error.ts'
import { RuntimeError } from '../errors.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { corsHeaders } from './cors.ts'

/** Adds the handlers of errors and of unknown paths. `elapsed` returns monotonic milliseconds. */
export function addErrorHandler(app: FastifyInstance, elapsed: () => number): void {
  const reports = new LimitedReports<string>(elapsed)
  app.setErrorHandler((error: FastifyError | Error, request, reply) => {
    const runtimeError = toRuntimeError(error)
    if (runtimeError.status >= 500) {
      // Operators are responsible for the service. Failures of a tenant's code are reported to the tenant, in the response
      // and its logs.
      if (runtimeError.isOfTenant)
        request.log.debug({ tenant: request.tenant.id, code: runtimeError.code }, "A tenant's code failed.")
      else if (runtimeError.isLoad) {
        const tenant = (request.tenant as Tenant | null)?.id
        if (reports.isDue(`${tenant} ${runtimeError.code}`))
          request.log.warn(
            { tenant, code: runtimeError.code, reason: runtimeError.message },
            'Requests of a tenant fail under load. Further ones are not logged for a minute.',
          )
      } else request.log.error({ err: error, url: request.url }, 'A request failed.')
    }
    if (runtimeError.retryAfter !== undefined) reply.header('retry-after', String(runtimeError.retryAfter))
    if (runtimeError.status === 401) reply.header('www-authenticate', 'Bearer')
    reply.headers(runtimeError.headers)
    // Fastify would close the connection after a body that is too large, and the kernel would reset it before the client
    // has read the response. The gateway has its own limit for what comes after a response.
    reply.removeHeader('connection')
    request.raw.resume()
    cutRest(request)
    return reply.status(runtimeError.status).type('application/json; charset=utf-8').send(errorBody(runtimeError))
  })
  app.setNotFoundHandler((request, reply) => {
    const error = new RuntimeError(
      'NOT_FOUND',
      `There is no ${request.method} ${(request.url.split('?')[0] ?? '').slice(0, 100)}.`,
    )
    return reply.status(404).send(errorBody(error))
  })
}

/** The milliseconds for which the rest of a rejected body is read and dropped, so that its sender gets the response. */
const restMilliseconds = 30_000

/** Ends the connection of a client that continues to send the body of a rejected request. */
function cutRest({ raw }: FastifyRequest): void {
  if (raw.complete) return
  const timer = setTimeout(() => raw.destroy(), restMilliseconds)
  timer.unref()
  raw.once('close', () => clearTimeout(timer))
}

/** Rejects a URL that Fastify itself cannot parse, for which no route and no hook runs. */
export function rejectBadUrl(cause: Error, request: FastifyRequest, reply: FastifyReply): void {
  const error = new RuntimeError(
    'BAD_REQUEST',
    'The URL is malformed. A literal percent sign must be encoded as %25.',
    {
      cause,
    },
  )
  void reply
    .status(error.status)
    .headers({ ...corsHeaders(request), [rejectedHeader]: '1' })
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(errorBody(error)))
}

export function errorBody(error: RuntimeError): ErrorBody & Record<string, unknown> {
  return {
    statusCode: String(error.status),
    error: error.tag,
    message: error.message,
    code: error.code,
    ...error.extra,
  }
}

function toRuntimeError(thrown: unknown): RuntimeError {
  const error = databaseError(thrown)
  if (error instanceof RuntimeError) return error
  if (!(error instanceof Error)) return internal(error)
  if ('validation' in error && Array.isArray(error.validation)) return fromValidation(error as FastifyError)
  const code = 'code' in error ? error.code : undefined
  const status = 'statusCode' in error ? error.statusCode : undefined
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new RuntimeError('BODY_TOO_LARGE', 'The body is too large.', { cause: error })
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new RuntimeError('BAD_REQUEST', 'The content type of the body is not supported here.', { cause: error })
  if (code === 'FST_ERR_CTP_EMPTY_JSON_BODY')
    return new RuntimeError('INVALID_JSON', 'The body is empty, but its content type is JSON.', { cause: error })
  if (error instanceof SyntaxError || code === 'FST_ERR_CTP_INVALID_JSON_BODY')
    return new RuntimeError('INVALID_JSON', 'The body is not valid JSON.', { cause: error })
  if (typeof status === 'number' && status >= 400 && status < 500)
    return new RuntimeError('BAD_REQUEST', 'The request is malformed.', { cause: error })
  return internal(error)
}

function internal(cause: unknown): RuntimeError {
  return new RuntimeError('INTERNAL', 'An internal error occurred.', { cause })
}

function fromValidation(error: FastifyError): RuntimeError {
  const inQuery = error.validationContext === 'querystring'
  const violation = violationOf(error.validation?.[0])
  const { name } = violation
  switch (violation.kind) {
    case 'unknown':
      return inQuery
        ? new RuntimeError('UNKNOWN_PARAMETER', `Unknown query parameter "${name}".`, { cause: error })
        : new RuntimeError('UNKNOWN_FIELD', `Unknown field "${name}".`, { cause: error })
    case 'missing':
      return new RuntimeError('MISSING_FIELD', `Field "${name}" is required.`, { cause: error })
  }
  if (name === '')
    return new RuntimeError('BAD_REQUEST', `The ${inQuery ? 'query' : 'body'} ${violation.wanted}.`, { cause: error })
  return new RuntimeError('BAD_REQUEST', `${inQuery ? 'Query parameter' : 'Field'} "${name}" ${violation.wanted}.`, {
    cause: error,
  })
}
