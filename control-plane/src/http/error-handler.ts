// Converts all errors, Fastify's and the validator's included, to error bodies of one form.
import type { FastifyError, FastifyInstance } from 'fastify'
import { violationOf, type ErrorBody, type ValidationError } from '@tenantry/contract'
import { EngineError } from '../engines/index.ts'
import { ControlError } from '../platform/errors.ts'
import { fromEngine } from './engine-errors.ts'

/** Adds handlers that respond to every error and every unknown route in one form (specification, section 7). */
export function addErrorHandler(app: FastifyInstance): void {
  app.setErrorHandler((error: FastifyError | Error, request, reply) => {
    const controlError = toControlError(error)
    if (controlError.status >= 500) request.log.error({ err: error }, 'The request failed.')
    if (controlError.status === 503 || controlError.status === 423) reply.header('retry-after', '1')
    if (controlError.status === 401) reply.header('www-authenticate', 'Bearer')
    return reply.status(controlError.status).type('application/json; charset=utf-8').send(errorBody(controlError))
  })
  app.setNotFoundHandler((request, reply) => {
    const error = new ControlError('NOT_FOUND', `There is no ${request.method} ${request.url.split('?')[0] ?? ''}.`)
    return reply.status(404).send(errorBody(error))
  })
}

/** Maximum number of characters of a message, which may quote the request. */
const maxMessageLength = 1_000

/** The body of an error; a message of more than 1,000 characters is cut. */
export function errorBody(error: ControlError): ErrorBody & Record<string, unknown> {
  const message =
    error.message.length > maxMessageLength
      ? `${error.message.slice(0, maxMessageLength).toWellFormed()} …`
      : error.message
  return { statusCode: String(error.status), error: error.tag, message, code: error.code, ...error.detail }
}

/** Converts an error of any kind. An unexpected one becomes INTERNAL, without its text. */
export function toControlError(error: FastifyError | Error): ControlError {
  if (error instanceof ControlError) return error
  if (error instanceof EngineError) return fromEngine(error)
  if ('validation' in error && Array.isArray(error.validation)) return fromValidation(error)
  switch ('code' in error ? error.code : undefined) {
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return new ControlError('INVALID_JSON', 'The body is empty, but its Content-Type is JSON.', { cause: error })
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new ControlError('UNSUPPORTED_MEDIA_TYPE', 'The body must be JSON (Content-Type: application/json).', {
        cause: error,
      })
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ControlError('BODY_TOO_LARGE', 'The body must not be larger than 64 KB.', { cause: error })
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new ControlError('BAD_REQUEST', 'The path is malformed.', { cause: error })
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new ControlError('BAD_REQUEST', 'The body is not as long as its Content-Length.', { cause: error })
  }
  const status = 'statusCode' in error ? error.statusCode : undefined
  if (error instanceof SyntaxError || status === 400)
    return new ControlError('INVALID_JSON', 'The body is not well-formed JSON.', { cause: error })
  if (status !== undefined && status >= 400 && status < 500)
    return new ControlError('BAD_REQUEST', 'The request is malformed.', { cause: error })
  if (isUnreachable(error))
    return new ControlError('UNAVAILABLE', 'The control database does not respond.', { cause: error })
  return new ControlError('INTERNAL', "Internal error. The control plane's log has the details.", { cause: error })
}

/** Whether an error of Prisma or of the driver reports an unreachable database. */
function isUnreachable(error: Error): boolean {
  const code = 'code' in error ? error.code : undefined
  return (
    code === 'ECONNREFUSED' ||
    code === 'P1001' ||
    code === 'P1002' ||
    code === 'P1008' ||
    code === 'P1017' ||
    code === 'P2024'
  )
}

function fromValidation(error: FastifyError): ControlError {
  const errors = error.validation ?? []
  const [failure] = errors
  const inQuery = error.validationContext === 'querystring'
  const violation = violationOf(failure)
  const { name } = violation
  switch (violation.kind) {
    case 'unknown':
      return inQuery
        ? new ControlError('UNKNOWN_PARAMETER', `Unknown query parameter "${name}".`, { cause: error })
        : new ControlError('UNKNOWN_FIELD', `Unknown field "${name}".`, { cause: error })
    case 'missing':
      return inQuery
        ? new ControlError('INVALID_PARAMETER', `Query parameter "${name}" is required.`, { cause: error })
        : new ControlError('MISSING_FIELD', `Field "${name}" is required.`, { cause: error })
  }
  const expected = typesOfUnion(errors) ?? violation.wanted
  if (inQuery) {
    // All query parameters are texts, so another type is a list of them.
    const rule = failure?.keyword === 'type' ? 'must not be repeated' : expected
    return new ControlError('INVALID_PARAMETER', `Query parameter "${name}" ${rule}.`, { cause: error })
  }
  if (failure?.keyword === 'minProperties')
    return new ControlError('INVALID_FIELD', 'The body must change at least one field.', { cause: error })
  if (name === '') return new ControlError('INVALID_FIELD', `The body ${expected}.`, { cause: error })
  return new ControlError('INVALID_FIELD', `Field "${name}" ${expected}.`, { cause: error })
}

/** Lists all allowed types of a union for a value of the wrong type. */
function typesOfUnion(errors: readonly ValidationError[]): string | undefined {
  const [error] = errors
  if (error?.keyword !== 'type') return undefined
  const here = errors.filter(({ instancePath }) => instancePath === error.instancePath)
  if (!here.some(({ keyword }) => keyword === 'anyOf')) return undefined
  const constants = here
    .filter(({ keyword }) => keyword === 'const')
    .map(({ schemaPath }) => schemaPath.replace(/const$/, 'type'))
  const possible = here.flatMap(({ keyword, schemaPath, params }) => {
    if (keyword === 'const') return [JSON.stringify(params['allowedValue'])]
    return keyword === 'type' && !constants.includes(schemaPath) ? [String(params['type'])] : []
  })
  return `must be ${[...new Set(possible)].join(' or ')}`
}
