// The settings with which a tenant's functions and policies read the request, and what they set of the response.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { internalHeaderPrefix } from '@tenantry/contract'
import { sql, type Row, type Statement } from '../../database/statement.ts'
import { readResponseSettings, type ResponseSettings } from '../request/response-settings.ts'
import { preRequestStatement } from '../sql/call-sql.ts'
import type { RestRequest } from './rest-request.ts'

const setRequest =
  "select set_config('request.method', $1, true), set_config('request.path', $2, true)," +
  " set_config('request.headers', $3, true), set_config('request.cookies', $4, true)"
/** Settings that a function has made for a session must not reach the response of another caller. */
const clearResponse = sql(
  "select set_config('response.headers', '', true) as headers, set_config('response.status', '', true) as status",
)

/** Limits of the session. What the tenant's function has made of them must not apply to the next statement. */
const resetLimits = ['statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout', 'work_mem'].map(
  (name) => sql(`reset ${name}`),
)

/** The statement that reads what functions have set of the response. */
export const readResponse = sql(
  "select current_setting('response.headers', true) as headers, current_setting('response.status', true) as status",
)

/**
 * Returns the statements that precede those of the request: the settings, where something in the home mentions them, and
 * the call of the function that the tenant wants before each request.
 */
export function settingsOf(
  request: FastifyRequest,
  { catalog: { mentions, settings }, preferences: { timezone } }: Pick<RestRequest, 'catalog' | 'preferences'>,
): Statement[] {
  const statements: Statement[] = []
  if (timezone !== undefined) statements.push(sql("select set_config('timezone', $1, true)", timezone))
  if (mentions.request) {
    const { method, url, headers } = request
    const [path = ''] = url.split('?', 1)
    statements.push(
      sql(setRequest, method, path.slice('/rest/v1'.length), headersAsJson(headers), cookiesAsJson(headers)),
    )
  }
  if (mentions.response) statements.push(clearResponse)
  if (settings.db_pre_request !== null) statements.push(preRequestStatement(settings.db_pre_request), ...resetLimits)
  return statements
}

/** Headers that tenants' functions do not see: credentials, which Postgres may log, and cookies, which have their own setting. */
const hidden: ReadonlySet<string> = new Set(['authorization', 'apikey', 'cookie', 'proxy-authorization'])

function headersAsJson(headers: FastifyRequest['headers']): string {
  const shown: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !hidden.has(name) && !name.startsWith(internalHeaderPrefix)) shown[name] = String(value)
  return JSON.stringify(shown)
}

function cookiesAsJson({ cookie = '' }: FastifyRequest['headers']): string {
  const cookies = new Map<string, string>()
  for (const pair of cookie.split(';')) {
    const at = pair.indexOf('=')
    if (at > 0) cookies.set(pair.slice(0, at).trim(), pair.slice(at + 1).trim())
  }
  return JSON.stringify(Object.fromEntries(cookies))
}

/** The settings that functions have made for the responses in progress. */
const settings = new WeakMap<FastifyRequest, ResponseSettings>()

/** Remembers what functions have set of the response, from the row of `readResponse`. */
export function keepResponseSettings(request: FastifyRequest, row: Row | undefined): void {
  const text = (name: string) => (typeof row?.[name] === 'string' ? row[name] : '')
  const made = readResponseSettings(text('headers'), text('status'), request.basePath)
  if (made !== undefined) settings.set(request, made)
}

/** Types of contents that a browser does not run. */
const inert = /^(?:application\/(?:json|[\w.-]+\+json)|text\/(?:csv|plain)|image\/(?!svg)[\w.+-]+)(?:;|$)/i

/** Gives responses the status and the headers that functions have set, and prevents browsers from running their content. */
export function addResponseSettings(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    const made = settings.get(request)
    // An error is the service's own response.
    if (made !== undefined && reply.statusCode < 400) {
      reply.headers(made.headers)
      if (made.status !== undefined) void reply.status(made.status)
    }
    const type = reply.getHeader('content-type')
    if (typeof type === 'string' && !inert.test(type))
      reply.headers({ 'x-content-type-options': 'nosniff', 'content-security-policy': "sandbox; default-src 'none'" })
    const { statusCode } = reply
    if (statusCode !== 204 && statusCode !== 205 && statusCode !== 304) {
      done(null, payload)
      return
    }
    void reply.removeHeader('content-type')
    done(null, null)
  })
}
