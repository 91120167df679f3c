// Sends a list: as one text, or, when it may be long, row by row as the client reads it.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { planKeyset, nextCursor } from '../plan/plan-keyset.ts'
import { defaultRows, planRead } from '../plan/plan-read.ts'
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
import { notSatisfiable, ranged } from './ranged.ts'
import type { RestRequest } from './rest-request.ts'
import { responseIn, runStatement } from './run-statement.ts'
import type { RestResponse } from './response.ts'
import { contentRange, reportApplied, reportNext, sendRows } from './send.ts'

interface ListRequest extends RestRequest {
  relation: Relation
}

export async function sendList(request: FastifyRequest, reply: FastifyReply, rest: ListRequest): Promise<FastifyReply> {
  const { catalog, relation, query, preferences, format } = rest
  const wanted = planRead(rest, relation, ranged(request, query))
  const page = query.cursor === undefined ? undefined : planKeyset(wanted, query.cursor)
  const plan = page?.plan ?? wanted
  const isHead = request.method === 'HEAD'
  if (page === undefined && !isHead && !isSingular(format) && (plan.limit ?? 0) > defaultRows)
    return sendStream(request, reply, rest, plan)
  const { count } = preferences
  const statement =
    page !== undefined
      ? keysetStatement(page, format, count)
      : isHead && !isSingular(format)
        ? headStatement(plan, count)
        : readStatement(plan, format, count)
  const followUp = countStatement(rest, plan)
  const { response, followUp: explained } = await runStatement(request, statement, {
    catalog,
    onlyReads: true,
    ...(followUp === undefined ? {} : { followUp }),
  })
  const status = setHeaders(reply, rest, plan, response, plannedRows(explained))
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
  const frame =
    format.kind === 'csv'
      ? { begin: `${csvHeader(plan)}\n`, between: '\n', end: '' }
      : { begin: '[', between: ',\n ', end: ']' }
  const before = [headStatement(plan, count), ...(followUp === undefined ? [] : [followUp])]
  const stream = await request.tenant.database
    .stream(request.rls, before, rowStatement(plan, format), frame, closed.signal)
    .catch((error: unknown) => {
      throw restDatabaseError(error, request.rls, catalog.relations)
    })
  try {
    const status = setHeaders(reply, rest, plan, responseIn(stream.before[0]), plannedRows(stream.before[1]?.rows[0]))
    return await reply.status(status).type(contentType(format)).send(stream.body)
  } catch (error) {
    stream.body.destroy()
    throw error
  }
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
  if (total !== undefined && plan.offset > total)
    throw notSatisfiable(`An offset of ${plan.offset} was requested, but there are only ${total} rows.`)
  reportApplied(reply, preferences)
  void reply.header('content-range', contentRange(plan.offset, n, total))
  return total !== undefined && n < total ? 206 : 200
}
