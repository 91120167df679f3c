// Sends responses. The text that Postgres made is sent unchanged.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { contentType, type Format } from '../request/read-accept.ts'
import { planContentType, type PlanRequest } from '../request/read-plan-request.ts'
import type { Preferences } from '../request/read-preferences.ts'
import type { ReadPlan } from '../plan/plan.ts'
import { restError } from '../rest-error.ts'
import { csvHeader } from '../sql/response-sql.ts'
import type { RestResponse } from './response.ts'

/**
 * Sends rows in the requested format.
 * @throws RuntimeError NOT_ACCEPTABLE (PGRST116) when one row was requested and the result has another number
 */
export function sendRows(
  reply: FastifyReply,
  status: number,
  { body, n }: RestResponse,
  plan: ReadPlan,
  format: Format,
): FastifyReply {
  void reply.status(status).type(contentType(format))
  if (format.kind === 'media') return reply.send(mediaBody(format, body))
  if (format.kind === 'csv') return reply.send(`${csvHeader(plan, n)}\n${body}`)
  if (format.kind === 'json' && format.singular) {
    if (n !== 1) {
      // These headers belong to the response that is not sent.
      for (const name of ['content-range', 'content-location', 'preference-applied', 'link', 'next-cursor'])
        void reply.removeHeader(name)
      throw notOne(n)
    }
    return reply.send(elementOf(body))
  }
  return reply.send(body)
}

/** Sends the plan of the request's statement. */
export function sendPlan(reply: FastifyReply, explain: PlanRequest, { body }: RestResponse): FastifyReply {
  return reply.status(200).type(planContentType(explain)).send(body)
}

/** Returns the content of a media type, from the text that Postgres made of it. */
export function mediaBody({ handler }: Extract<Format, { kind: 'media' }>, body: string): string | Buffer {
  return handler.base === 'bytea' ? Buffer.from(body, 'base64') : body
}

/** Returns the only object of an array. */
export function elementOf(body: string): string {
  return body.slice(1, -1)
}

export function notOne(n: number, cause?: unknown) {
  return restError('NOT_ACCEPTABLE', {
    code: 'PGRST116',
    message: 'Cannot coerce the result to a single JSON object',
    details: `The result contains ${n} rows`,
    cause,
  })
}

/** Returns a range such as `0-24/3573458`, with `*` for unknown parts. */
export function contentRange(offset: number, n: number, total: number | undefined): string {
  return `${n === 0 ? '*' : `${offset}-${offset + n - 1}`}/${total ?? '*'}`
}

/** Heads of responses must stay below the limits of clients and proxies. */
const maxLocationLength = 4_096

/** Returns the URL of a list, with its parameters in the order of their names; undefined for a very long one. */
export function contentLocation({ url, basePath }: FastifyRequest): string | undefined {
  if (url.length > maxLocationLength) return undefined
  const at = url.indexOf('?')
  if (at < 0 || !url.includes('&', at)) return basePath + url
  const name = (parameter: string) => parameter.split('=', 1)[0] ?? ''
  const sorted = url
    .slice(at + 1)
    .split('&')
    .sort((a, b) => (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : 0))
  return `${basePath}${url.slice(0, at)}?${sorted.join('&')}`
}

export function reportApplied(reply: FastifyReply, { applied }: Preferences): void {
  if (applied.length > 0) void reply.header('preference-applied', applied.join(', '))
}

/** Sets the headers that refer to the next page. */
export function reportNext(reply: FastifyReply, { url, basePath }: FastifyRequest, cursor: string): void {
  const [path = '', search = ''] = url.split('?', 2)
  const parameters = new URLSearchParams(search)
  parameters.set('cursor', cursor)
  void reply.header('next-cursor', cursor).header('link', `<${basePath}${path}?${parameters.toString()}>; rel="next"`)
}
