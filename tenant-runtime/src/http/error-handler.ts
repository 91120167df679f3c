// The only place that makes error bodies: ours, Fastify's and the validator's errors in one form.
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { rejectedHeader, violationOf, type ErrorBody } from '@tenantry/contract'
import { databaseError } from '../database/database-error.ts'
import { RuntimeError } from '../errors.ts'
import { corsHeaders } from './cors.ts'

export function addErrorHandler(app: FastifyInstance): void {
  app.setErrorHandler((error: FastifyError | Error, request, reply) => {
    const shown = toRuntimeError(error)
    if (shown.status >= 500) {
      // Operators look after the service. Why a tenant's code failed is for the tenant, in its answer and its logs.
      if (shown.isOfTenant) request.log.debug({ tenant: request.tenant.id, code: shown.code }, "a tenant's code failed")
      else request.log.error({ err: error, url: request.url }, 'request failed')
    }
    if (shown.retryAfter !== undefined) reply.header('retry-after', String(shown.retryAfter))
    if (shown.status === 401) reply.header('www-authenticate', 'Bearer')
    // Fastify would close the connection on a body that is too large, and the kernel reset it with the answer unread:
    // the gateway has its own limit for what comes after an answer.
    reply.removeHeader('connection')
    request.raw.resume()
    return reply.status(shown.status).type('application/json; charset=utf-8').send(errorBody(shown))
  })
  app.setNotFoundHandler((request, reply) => {
    const error = new RuntimeError('NOT_FOUND', `there is no ${request.method} ${request.url.split('?')[0] ?? ''}`)
    return reply.status(404).send(errorBody(error))
  })
}

/** A URL that Fastify itself can't read gets so far as to no route and no hook. */
export function rejectBadUrl(cause: Error, request: FastifyRequest, reply: FastifyReply): void {
  const error = new RuntimeError('BAD_REQUEST', 'the URL is malformed: a percent sign of its own is written as %25', {
    cause,
  })
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
    return new RuntimeError('BODY_TOO_LARGE', 'the body is too large', { cause: error })
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new RuntimeError('BAD_REQUEST', 'the body has a content type that is not taken here', { cause: error })
  if (code === 'FST_ERR_CTP_EMPTY_JSON_BODY')
    return new RuntimeError('INVALID_JSON', 'the body is empty, but its content type says JSON', { cause: error })
  if (error instanceof SyntaxError || code === 'FST_ERR_CTP_INVALID_JSON_BODY')
    return new RuntimeError('INVALID_JSON', 'the body is no well-formed JSON', { cause: error })
  if (typeof status === 'number' && status >= 400 && status < 500)
    return new RuntimeError('BAD_REQUEST', 'the request is malformed', { cause: error })
  return internal(error)
}

function internal(cause: unknown): RuntimeError {
  return new RuntimeError('INTERNAL', 'something went wrong here; the log knows what', { cause })
}

function fromValidation(error: FastifyError): RuntimeError {
  const inQuery = error.validationContext === 'querystring'
  const violation = violationOf(error.validation?.[0])
  const { name } = violation
  switch (violation.kind) {
    case 'unknown':
      return inQuery
        ? new RuntimeError('UNKNOWN_PARAMETER', `unknown query parameter "${name}"`, { cause: error })
        : new RuntimeError('UNKNOWN_FIELD', `unknown field "${name}"`, { cause: error })
    case 'missing':
      return new RuntimeError('MISSING_FIELD', `field "${name}" is required`, { cause: error })
  }
  if (name === '')
    return new RuntimeError('BAD_REQUEST', `the ${inQuery ? 'query' : 'body'} ${violation.wanted}`, { cause: error })
  return new RuntimeError('BAD_REQUEST', `${inQuery ? 'query parameter' : 'field'} "${name}" ${violation.wanted}`, {
    cause: error,
  })
}
