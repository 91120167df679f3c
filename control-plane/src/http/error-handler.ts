// The only place that makes error bodies: ours, Fastify's and the validator's errors in one form.
import type { FastifyError, FastifyInstance } from 'fastify'
import { violationOf, type ErrorBody, type ValidationError } from '@tenantry/contract'
import { EngineError } from '../engines/index.ts'
import { ControlError } from '../platform/errors.ts'
import { fromEngine } from './engine-errors.ts'

/** Makes every error, and every unknown route, a body of the one error form (specification, section 7). */
export function addErrorHandler(app: FastifyInstance): void {
  app.setErrorHandler((error: FastifyError | Error, request, reply) => {
    const shown = toControlError(error)
    if (shown.status >= 500) request.log.error({ err: error }, 'request failed')
    if (shown.status === 503 || shown.status === 423) reply.header('retry-after', '1')
    if (shown.status === 401) reply.header('www-authenticate', 'Bearer')
    return reply.status(shown.status).type('application/json; charset=utf-8').send(errorBody(shown))
  })
  app.setNotFoundHandler((request, reply) => {
    const error = new ControlError('NOT_FOUND', `there is no ${request.method} ${request.url.split('?')[0] ?? ''}`)
    return reply.status(404).send(errorBody(error))
  })
}

/** What a caller sent is quoted, but not page after page of it. */
const maxMessageLength = 1_000

/** The body of an error; a message of more than 1,000 characters is cut. */
export function errorBody(error: ControlError): ErrorBody & Record<string, unknown> {
  const message =
    error.message.length > maxMessageLength
      ? `${error.message.slice(0, maxMessageLength).toWellFormed()} …`
      : error.message
  return { statusCode: String(error.status), error: error.tag, message, code: error.code, ...error.detail }
}

/** What a caller is shown for an error of any kind; what is not expected becomes INTERNAL, without its text. */
export function toControlError(error: FastifyError | Error): ControlError {
  if (error instanceof ControlError) return error
  if (error instanceof EngineError) return fromEngine(error)
  if ('validation' in error && Array.isArray(error.validation)) return fromValidation(error)
  switch ('code' in error ? error.code : undefined) {
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return new ControlError('INVALID_JSON', 'the body is empty, but its content type says JSON', { cause: error })
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new ControlError('UNSUPPORTED_MEDIA_TYPE', 'the body must be JSON (Content-Type: application/json)', {
        cause: error,
      })
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ControlError('BODY_TOO_LARGE', 'the body is larger than 64 KB', { cause: error })
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new ControlError('BAD_REQUEST', 'the path is malformed', { cause: error })
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new ControlError('BAD_REQUEST', 'the body is not as long as Content-Length says', { cause: error })
  }
  const status = 'statusCode' in error ? error.statusCode : undefined
  if (error instanceof SyntaxError || status === 400)
    return new ControlError('INVALID_JSON', 'the body is no well-formed JSON', { cause: error })
  if (status !== undefined && status >= 400 && status < 500)
    return new ControlError('BAD_REQUEST', 'the request is malformed', { cause: error })
  if (isUnreachable(error))
    return new ControlError('UNAVAILABLE', 'the control database does not answer', { cause: error })
  return new ControlError('INTERNAL', 'something went wrong here; the log knows what', { cause: error })
}

/** Prisma's and the driver's ways of saying that there is no database. */
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
        ? new ControlError('UNKNOWN_PARAMETER', `unknown query parameter "${name}"`, { cause: error })
        : new ControlError('UNKNOWN_FIELD', `unknown field "${name}"`, { cause: error })
    case 'missing':
      return inQuery
        ? new ControlError('INVALID_PARAMETER', `query parameter "${name}" is required`, { cause: error })
        : new ControlError('MISSING_FIELD', `field "${name}" is required`, { cause: error })
  }
  const wanted = wantedOfUnion(errors) ?? violation.wanted
  if (inQuery) {
    // Texts are all that a query holds: another type is a list of them.
    const what = failure?.keyword === 'type' ? 'may stand only once' : wanted
    return new ControlError('INVALID_PARAMETER', `query parameter "${name}" ${what}`, { cause: error })
  }
  if (failure?.keyword === 'minProperties')
    return new ControlError('INVALID_FIELD', 'the body changes nothing: it has no fields', { cause: error })
  if (name === '') return new ControlError('INVALID_FIELD', `the body ${wanted}`, { cause: error })
  return new ControlError('INVALID_FIELD', `field "${name}" ${wanted}`, { cause: error })
}

/** Of a value of the wrong type that may have one of several, all are named. */
function wantedOfUnion(errors: readonly ValidationError[]): string | undefined {
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
