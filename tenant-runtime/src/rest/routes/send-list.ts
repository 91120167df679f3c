// Sends a list: as one text, or, when it may be long, row by row as the client reads it.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Result } from '../../database/statement.ts'
import { planKeyset, nextCursor } from '../plan/plan-keyset.ts'
import { defaultRows, planRead } from '../plan/plan-read.ts'
import { mayChange, readsViews } from '../plan/plan-computed.ts'
import type { ReadPlan } from '../plan/plan.ts'
import type { Relation } from '../registry/catalog.ts'
import { contentType, isSingular } from '../request/read-accept.ts'
import { restDatabaseError } from '../rest-database-errors.ts'
import {
  csvHeader,
  explainStatement,
  headStatement,
  isCounted,
  readStatement,
  rowStatement,
} from '../sql/response-sql.ts'
import { keysetStatement } from '../sql/keyset-sql.ts'
import { plannedRows } from './planned-rows.ts'
import { ranged, rejectOffsetBeyond } from './ranged.ts'
import { keepResponseSettings, readResponse, settingsOf } from './request-settings.ts'
import type { RestRequest } from './rest-request.ts'
import { readOnly, responseIn, runStatement } from './run-statement.ts'
import type { RestResponse } from './response.ts'
import { endPhase } from './server-timing.ts'
import { contentLocation, contentRange, reportApplied, reportNext, sendPlan, sendRows } from './send.ts'

interface ListRequest extends RestRequest {
  relation: Relation
}

export async function sendList(request: FastifyRequest, reply: FastifyReply, rest: ListRequest): Promise<FastifyReply> {
  const { relation, query, preferences, format } = rest
  const wanted = planRead(rest, relation, ranged(request, query))
  const page = query.cursor === undefined ? undefined : planKeyset(wanted, query.cursor)
  const plan = page?.plan ?? wanted
  const isHead = request.method === 'HEAD'
  if (
    page === undefined &&
    rest.explain === undefined &&
    !isHead &&
    format.kind !== 'media' &&
    !isSingular(format) &&
    (plan.limit ?? 0) > defaultRows
  )
    return sendStream(request, reply, rest, plan)
  const { count } = preferences
  const statement =
    page !== undefined
      ? keysetStatement(page, format, count)
      : isHead && !isSingular(format)
        ? headStatement(plan, count)
        : readStatement(plan, format, count)
  const followUp = countStatement(rest, plan)
  const { response, followUp: explained } = await runStatement(request, rest, statement, {
    isReadOnly: isReadOnly(plan),
    onlyReads: true,
    ...(followUp === undefined ? {} : { followUp }),
  })
  if (rest.explain !== undefined) return sendPlan(reply, rest.explain, response)
  const status = setHeaders(request, reply, rest, plan, response, plannedRows(explained))
  // A page that is not full is the last one.
  if (page !== undefined && response.last !== undefined && response.n === plan.limit)
    reportNext(reply, request, nextCursor(page.terms, response.last))
  return sendRows(reply, status, response, plan, format)
}

/**
 * Streams a list. The rows are counted first, because the headers precede them, so the count may lack concurrent changes.
 */
async function sendStream(
  request: FastifyRequest,
  reply: FastifyReply,
  rest: ListRequest,
  plan: ReadPlan,
): Promise<FastifyReply> {
  const {
    catalog,
    format,
    preferences: { count },
  } = rest
  const followUp = countStatement(rest, plan)
  const closed = new AbortController()
  reply.raw.once('close', () => closed.abort(new Error('The client closed the connection.')))
  endPhase(request, 'plan')
  const isPreceded = catalog.settings.db_pre_request !== null
  const makesResponse = isPreceded && catalog.mentions.response
  const settings = [...(isReadOnly(plan) || isPreceded ? [readOnly] : []), ...settingsOf(request, rest)]
  const frame = (results: readonly Result[]) =>
    format.kind === 'csv'
      ? { begin: `${csvHeader(plan, responseIn(results[settings.length]).n)}\n`, between: '\n', end: '' }
      : { begin: '[', between: ',\n ', end: ']' }
  // What the function before the request has set of the response is known before the rows.
  const before = [
    headStatement(plan, count),
    ...(followUp === undefined ? [] : [followUp]),
    ...(makesResponse ? [readResponse] : []),
  ]
  const rows = rowStatement(plan, format)
  const last = isPreceded ? { ...rows, isForeign: true } : rows
  const stream = await request.tenant.database
    .stream(request.rls, [...settings, ...before], last, frame, closed.signal)
    .catch((error: unknown) => {
      throw restDatabaseError(error, request.rls, catalog.relations, request.basePath)
    })
  endPhase(request, 'transaction')
  try {
    const [head, explained] = stream.before.slice(settings.length)
    if (makesResponse) keepResponseSettings(request, stream.before.at(-1)?.rows[0])
    const status = setHeaders(request, reply, rest, plan, responseIn(head), plannedRows(explained?.rows[0]))
    return await reply.status(status).type(contentType(format)).send(stream.body)
  } catch (error) {
    stream.body.destroy()
    throw error
  }
}

/** Whether Postgres is to reject changes: where the code of the tenant may attempt them. */
function isReadOnly(plan: ReadPlan): boolean {
  return mayChange(plan) || readsViews(plan)
}

function countStatement({ preferences: { count } }: RestRequest, plan: ReadPlan) {
  return count === 'planned' || count === 'estimated' ? explainStatement(plan) : undefined
}

/**
 * Sets the headers.
 * @returns the status
 * @throws RuntimeError RANGE_NOT_SATISFIABLE
 */
function setHeaders(
  request: FastifyRequest,
  reply: FastifyReply,
  { preferences }: RestRequest,
  plan: ReadPlan,
  { n, total: exactTotal }: RestResponse,
  planned: number,
): number {
  const { count } = preferences
  const total =
    count === 'planned' || (count === 'estimated' && !isCounted(exactTotal ?? 0))
      ? Math.max(planned, plan.offset + n)
      : exactTotal
  rejectOffsetBeyond(reply, plan.offset, total)
  reportApplied(reply, preferences)
  void reply.header('range-unit', 'items').header('content-range', contentRange(plan.offset, n, total))
  const location = contentLocation(request)
  if (location !== undefined) void reply.header('content-location', location)
  return total !== undefined && n < total ? 206 : 200
}
