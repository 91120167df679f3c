// A list on its way out: as one text, or, when it may be long, row by row as its reader takes them.
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

interface Requested extends RestRequest {
  relation: Relation
}

export async function sendList(request: FastifyRequest, reply: FastifyReply, rest: Requested): Promise<FastifyReply> {
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
  const also = expected(rest, plan)
  const { response, also: explained } = await runStatement(request, statement, {
    catalog,
    onlyReads: true,
    ...(also === undefined ? {} : { also }),
  })
  const status = describe(reply, rest, plan, response, plannedRows(explained))
  // A page that is not full is the last one.
  if (page !== undefined && response.last !== undefined && response.n === plan.limit)
    reportNext(reply, request, nextCursor(page.terms, response.last))
  return sendRows(reply, status, response, plan, format)
}

/** Counted first: what is told of the rows stands before them. What others write in between is not in that. */
async function sendStream(
  request: FastifyRequest,
  reply: FastifyReply,
  rest: Requested,
  plan: ReadPlan,
): Promise<FastifyReply> {
  const {
    catalog,
    format,
    preferences: { count },
  } = rest
  const also = expected(rest, plan)
  const left = new AbortController()
  reply.raw.once('close', () => left.abort(new Error('the reader has left')))
  const frame =
    format.kind === 'csv'
      ? { begin: `${csvHeader(plan)}\n`, between: '\n', end: '' }
      : { begin: '[', between: ',\n ', end: ']' }
  const before = [headStatement(plan, count), ...(also === undefined ? [] : [also])]
  const stream = await request.tenant.database
    .stream(request.rls, before, rowStatement(plan, format), frame, left.signal)
    .catch((error: unknown) => {
      throw restDatabaseError(error, request.rls, catalog.relations)
    })
  try {
    const status = describe(reply, rest, plan, responseIn(stream.before[0]), plannedRows(stream.before[1]?.rows[0]))
    return await reply.status(status).type(contentType(format)).send(stream.body)
  } catch (error) {
    stream.body.destroy()
    throw error
  }
}

function expected({ preferences: { count } }: RestRequest, plan: ReadPlan) {
  return count === 'planned' || count === 'estimated' ? explainStatement(plan) : undefined
}

/** Its headers. @returns the status @throws RuntimeError RANGE_NOT_SATISFIABLE */
function describe(
  reply: FastifyReply,
  { preferences }: RestRequest,
  plan: ReadPlan,
  { n, total: counted }: RestResponse,
  planned: number,
): number {
  const { count } = preferences
  const total =
    count === 'planned' || (count === 'estimated' && !isCounted(counted ?? 0))
      ? Math.max(planned, plan.offset + n)
      : counted
  if (total !== undefined && plan.offset > total)
    throw notSatisfiable(`An offset of ${plan.offset} was requested, but there are only ${total} rows.`)
  reportApplied(reply, preferences)
  void reply.header('content-range', contentRange(plan.offset, n, total))
  return total !== undefined && n < total ? 206 : 200
}
