// GET /v1/tenants/{id}/usage and /usage/{month} (specification, section 4.4), and GET /v1/usage over all tenants.
import { internalPaths, isTenantId } from '@tenantry/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import { ControlError, tenantNotFound } from '../platform/errors.ts'
import { parseMonth, startOfMonth } from '../platform/months.ts'
import type { Api } from '../http/api.ts'
import { limitOf } from '../keys/index.ts'
import { PageQuery, pageRequest } from '../http/parameters.ts'
import {
  pageCsv,
  resourceNames,
  SeriesBody,
  seriesCsv,
  toPageBody,
  toSeriesBody,
  toUsageBody,
  UsageBody,
  usageCsv,
  UsagePageBody,
  type ResourceName,
} from './usage-body.ts'
import { formTypes, responseForm } from '../http/response-form.ts'
import type { UsageReader } from './read-usage.ts'

const UsageQuery = Type.Object(
  {
    granularity: Type.Optional(Type.Enum(['hour', 'day'], { description: 'A series instead of sums' })),
    resource: Type.Optional(Type.Enum([...resourceNames], { description: 'Only this resource' })),
  },
  { additionalProperties: false },
)
type UsageQuery = Static<typeof UsageQuery>

const PageOfMonth = Type.Object(
  { ...PageQuery, month: Type.Optional(Type.String({ description: '`YYYY-MM`; the current month when absent' })) },
  { additionalProperties: false },
)

/** Describes a response in JSON or CSV, as `Accept` selects. */
const responses = <Json extends UsageResponses>(json: Json) => ({
  200: {
    description: 'JSON or CSV, as `Accept` selects',
    content: { [formTypes.json]: { schema: json }, [formTypes.csv]: { schema: Type.String() } },
  },
})
type UsageResponses = typeof TenantResponse | typeof UsagePageBody
const TenantResponse = Type.Union([UsageBody, SeriesBody])

/** The dependencies of the routes of usage. */
export interface UsageRoutesDeps {
  usage: UsageReader
  /** Returns the current time. */
  now: () => Date
}

/** Adds the routes of usage: of a tenant in a month, and of all tenants (specification, section 4.4). */
export function addTenantUsage(app: Api, deps: UsageRoutesDeps): void {
  const access = ['admin', 'read', 'billing'] as const

  const sendUsage = async (
    request: FastifyRequest,
    reply: FastifyReply,
    id: string,
    month: Date,
    { granularity, resource }: UsageQuery,
  ) => {
    const form = responseForm(request, ['json', 'csv'])
    const subject = isTenantId(id) ? await deps.usage.subject(id) : undefined
    if (subject === undefined) throw tenantNotFound()
    const shown: readonly ResourceName[] = resource === undefined ? resourceNames : [resource]
    if (granularity === undefined) {
      const usage = await deps.usage.read(subject, month)
      return form === 'csv' ? reply.type(csvType).send(usageCsv(usage, shown)) : reply.send(toUsageBody(usage, shown))
    }
    const series = await deps.usage.series(subject, month, granularity)
    return form === 'csv' ? reply.type(csvType).send(seriesCsv(series, shown)) : reply.send(toSeriesBody(series, shown))
  }

  app.get(
    '/v1/tenants/:id/usage',
    {
      config: { scopes: access },
      schema: {
        summary: 'Usage of the current month',
        tags: ['usage'],
        params: Type.Object({ id: Type.String() }),
        querystring: UsageQuery,
        response: responses(TenantResponse),
      },
    },
    async (request, reply) => sendUsage(request, reply, request.params.id, startOfMonth(deps.now()), request.query),
  )

  app.get(
    '/v1/tenants/:id/usage/:month',
    {
      config: { scopes: access },
      schema: {
        summary: 'Usage of a month, YYYY-MM',
        description: 'A month before the tenant existed has usage zero. A deleted tenant keeps its usage.',
        tags: ['usage'],
        params: Type.Object({ id: Type.String(), month: Type.String() }),
        querystring: UsageQuery,
        response: responses(TenantResponse),
      },
    },
    async (request, reply) =>
      sendUsage(request, reply, request.params.id, pastMonth(request.params.month, deps.now()), request.query),
  )

  app.get(
    internalPaths.ownUsage(':id'),
    {
      config: { scopes: 'internal or tenant' },
      schema: {
        hide: true,
        params: Type.Object({ id: Type.String() }),
        querystring: Type.Object(
          { ...UsageQuery.properties, month: Type.Optional(Type.String()) },
          { additionalProperties: false },
        ),
      },
    },
    async (request, reply) => {
      const { id } = request.params
      if (request.ofTenant !== undefined && request.ofTenant !== id) throw tenantNotFound()
      const { month, ...query } = request.query
      return sendUsage(
        request,
        reply,
        id,
        month === undefined ? startOfMonth(deps.now()) : pastMonth(month, deps.now()),
        query,
      )
    },
  )

  app.get(
    '/v1/usage',
    {
      config: { scopes: access },
      schema: {
        summary: 'Usage of all tenants in a month, by their ids',
        tags: ['usage'],
        querystring: PageOfMonth,
        response: responses(UsagePageBody),
      },
    },
    async (request, reply) => {
      const form = responseForm(request, ['json', 'csv'])
      const { month: text } = request.query
      const month = text === undefined ? startOfMonth(deps.now()) : pastMonth(text, deps.now())
      const { limit, cursor } = pageRequest(request.query)
      const page = await deps.usage.page(month, { after: afterCursor(cursor), limit: limit + 1 }, limitOf(request))
      const shown = { ...page, tenants: page.tenants.slice(0, limit) }
      const last = page.tenants.length > limit ? shown.tenants.at(-1)?.tenantId : undefined
      const next = last === undefined ? null : Buffer.from(last).toString('base64url')
      if (form === 'json') return reply.send(toPageBody(shown, next))
      // CSV has no row for the position of the page, so a header has it.
      if (next !== null)
        void reply.header('link', `</v1/usage?month=${page.month}&limit=${limit}&cursor=${next}>; rel="next"`)
      return reply.type(csvType).send(pageCsv(shown))
    },
  )
}

const csvType = `${formTypes.csv}; charset=utf-8`

/**
 * Reads a cursor.
 * @throws ControlError INVALID_PARAMETER
 */
function afterCursor(cursor: string | undefined): string {
  if (cursor === undefined) return ''
  const id = Buffer.from(cursor, 'base64url').toString('utf8')
  if (!isTenantId(id))
    throw new ControlError('INVALID_PARAMETER', 'Invalid cursor. It must be the "next_cursor" of an earlier page.')
  return id
}

/**
 * Reads a month that has begun.
 * @throws ControlError INVALID_MONTH, FUTURE_MONTH
 */
function pastMonth(text: string, now: Date): Date {
  const month = parseMonth(text)
  if (month === undefined) throw new ControlError('INVALID_MONTH', `Invalid month "${text}". It must be YYYY-MM.`)
  if (month > now) throw new ControlError('FUTURE_MONTH', `Month ${text} has not begun.`)
  return month
}
