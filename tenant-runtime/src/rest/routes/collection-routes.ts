// The routes of a collection (specification, section 4.3): lists with PostgREST's grammar, inserts, and changes of all
// filtered records.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { mediaOfRows } from '../plan/media.ts'
import { noColumn } from '../plan/plan-path.ts'
import { withoutFilters, planRead } from '../plan/plan-read.ts'
import type { PlannedCondition, ReadPlan } from '../plan/plan.ts'
import { planInsert, planUpdate, requireWritable } from '../plan/plan-write.ts'
import type { RequestBody } from '../plan/request-body.ts'
import type { Relation } from '../registry/catalog.ts'
import { isSingular, plainJson } from '../request/read-accept.ts'
import type { Filter } from '../request/read-conditions.ts'
import type { Preferences } from '../request/read-preferences.ts'
import { emptyQuery, type Query } from '../request/read-query.ts'
import { fieldNamed } from '../request/read-select.ts'
import { restError } from '../rest-error.ts'
import { deleteStatement, insertStatement, updateStatement, type ChangeResponse } from '../sql/change-sql.ts'
import {
  beforeBody,
  publicRoute,
  readRestRequest,
  relationOf,
  type ReadOptions,
  type RestDeps,
  type RestRequest,
} from './rest-request.ts'
import { runStatement, runWithoutStatement } from './run-statement.ts'
import type { RestResponse } from './response.ts'
import { sendList } from './send-list.ts'
import { contentRange, elementOf, reportApplied, sendPlan, sendRows } from './send.ts'
import { insertDocuments, updateDocuments } from './write-documents.ts'

interface CollectionRoute {
  Params: { collection: string }
  Body: RequestBody | undefined
}

interface CollectionRequest extends RestRequest {
  relation: Relation
}

export function addCollectionRoutes(app: FastifyInstance, deps: RestDeps): void {
  const readRequest = async (
    request: FastifyRequest<CollectionRoute>,
    options: ReadOptions = {},
  ): Promise<CollectionRequest> => {
    const rest = await readRestRequest(deps, request, options)
    return { ...rest, relation: relationOf(rest.catalog, request.params.collection) }
  }

  const early = beforeBody(async (request: FastifyRequest<CollectionRoute>) => {
    const rest = await readRequest(request)
    requireWritable(rest.relation)
    return rest
  })
  const writeRoute = { ...publicRoute, preParsing: early.preParsing } as const

  app.get<CollectionRoute>('/rest/v1/:collection', publicRoute, async (request, reply) =>
    sendList(
      request,
      reply,
      await readRequest(request, { media: (catalog, query) => mediaOfRows(catalog, request.params.collection, query) }),
    ),
  )

  app.post<CollectionRoute>('/rest/v1/:collection', writeRoute, async (request, reply) => {
    const { relation, ...rest } = await early.take(request)
    const { preferences, query } = rest
    if (!rest.isProfiled) rejectOffset(query)
    const insert = planInsert(relation, request.body, query, preferences)
    const isMany = Array.isArray(request.body?.value)
    const wants = responseOf(rest)
    const plan = wants === 'location' ? keyPlan(rest, relation) : readBack(rest, relation)
    const isRecord = wants === 'record' && !isMany && rest.format.kind === 'json' && !rest.format.stripped
    const shape = {
      ...changeResponse(
        wants === 'location' ? { ...rest, format: plainJson } : rest,
        wants === 'nothing' ? undefined : plan,
      ),
      isOne: isRecord && preferences.maxAffected === undefined && insert.conflict === undefined,
    }
    const run = () => runStatement(request, rest, insertStatement(insert, shape))
    const { response } =
      insert.count === 0
        ? { response: await changeNothing(request, rest) }
        : await insertDocuments(deps.quota, request, relation, request.body, insert.count, run)
    if (rest.explain !== undefined) return sendPlan(reply, rest.explain, response)
    reportApplied(reply, insert.conflict === undefined ? withoutResolution(preferences) : preferences)
    void reply.header('content-range', `*/${preferences.count === undefined ? '*' : response.changed}`)
    const status = response.made === 0 && response.changed > 0 ? 200 : 201
    if (wants === 'location') return sendLocation(reply, status, response, relation, request)
    if (wants === 'nothing') return reply.status(status).send()
    // A caller of the specification sends one record and receives one.
    if (wants === 'record' && !isMany && rest.format.kind === 'json')
      return reply.status(status).type('application/json; charset=utf-8').send(elementOf(response.body))
    return sendRows(reply, status, response, plan, rest.format)
  })

  app.patch<CollectionRoute>('/rest/v1/:collection', writeRoute, async (request, reply) => {
    const rest = await early.take(request)
    const { relation, query, preferences } = rest
    const change = planUpdate(relation, request.body, query, preferences)
    const { where, plan } = planChange(rest, 'UPDATE')
    const shape = changeResponse(rest, preferences.return === 'representation' ? plan : undefined)
    const run = () => runStatement(request, rest, updateStatement(relation, change, where, shape))
    const { response } =
      change.columns.length === 0
        ? { response: await changeNothing(request, rest) }
        : await updateDocuments(deps.quota, request, relation, request.body, run)
    const { changed } = response
    return sendChanged(
      reply,
      rest,
      response,
      plan,
      contentRange(0, changed, preferences.count === undefined ? undefined : changed),
    )
  })

  app.put<CollectionRoute>('/rest/v1/:collection', writeRoute, async (request, reply) => {
    const rest = await early.take(request)
    const { relation, query, preferences } = rest
    requireKey(rest)
    const insert = planInsert(
      relation,
      request.body,
      { ...query, onConflict: undefined },
      { ...preferences, resolution: 'merge-duplicates' },
    )
    if (relation.key.some((name) => !insert.columns.some((column) => column.name === name))) throw otherKey()
    const { where: filters, plan } = planChange(rest, 'PUT')
    const wantsRecord =
      preferences.return === 'representation' || (preferences.return === undefined && !rest.isProfiled)
    // The policies decide whose the sent record may be.
    const where = filters.filter(({ kind }) => kind !== 'own')
    const run = () =>
      runStatement(
        request,
        rest,
        insertStatement({ ...insert, where }, changeResponse(rest, wantsRecord ? plan : undefined)),
      )
    const { response } = await insertDocuments(deps.quota, request, relation, request.body, insert.count, run)
    if (rest.explain !== undefined) return sendPlan(reply, rest.explain, response)
    if (response.changed === 0) throw otherKey()
    reportApplied(reply, preferences)
    const isNew = (response.made ?? 0) > 0
    if (!wantsRecord) return reply.status(isNew ? 201 : 204).send()
    return sendRows(reply, isNew ? 201 : 200, response, plan, rest.format)
  })

  app.delete<CollectionRoute>('/rest/v1/:collection', writeRoute, async (request, reply) => {
    const rest = await early.take(request)
    const { relation, preferences } = rest
    requireWritable(relation)
    const { where, plan } = planChange(rest, 'DELETE')
    const statement = deleteStatement(
      relation,
      where,
      changeResponse(rest, preferences.return === 'representation' ? plan : undefined),
    )
    const { response } = await runStatement(request, rest, statement)
    deps.quota.freed(request.tenant.id)
    return sendChanged(reply, rest, response, plan, `*/${preferences.count === undefined ? '*' : response.changed}`)
  })
}

/** Returns the preferences of an insert that has no duplicates to resolve. */
function withoutResolution(preferences: Preferences): Preferences {
  return { ...preferences, applied: preferences.applied.filter((applied) => !applied.startsWith('resolution=')) }
}

/** Returns the content of an insert's response. `record` is that of the specification. */
function responseOf({ preferences, isProfiled }: RestRequest): 'nothing' | 'location' | 'rows' | 'record' {
  if (preferences.return === 'minimal') return 'nothing'
  if (preferences.return === 'headers-only') return 'location'
  if (preferences.return === 'representation') return 'rows'
  return isProfiled ? 'nothing' : 'record'
}

/** Returns the response of a change without records or without fields, which changes nothing. */
async function changeNothing(request: FastifyRequest, rest: RestRequest): Promise<RestResponse> {
  await runWithoutStatement(request, rest)
  const { format } = rest
  const body = format.kind === 'csv' ? '' : '[]'
  return { body, n: 0, total: undefined, changed: 0, made: undefined, last: undefined }
}

function readBack(rest: RestRequest, relation: Relation): ReadPlan {
  const { query } = rest
  return withoutFilters(
    planRead(rest, relation, { ...query, own: { ...query.own, limit: undefined, offset: undefined } }),
  )
}

function keyPlan(rest: RestRequest, relation: Relation): ReadPlan {
  // As text, so that numbers of any size remain exact.
  const key = relation.key.map((column) => ({ ...fieldNamed(column), cast: 'text' }))
  return withoutFilters(planRead(rest, relation, { ...emptyQuery(), select: key }))
}

function changeResponse({ preferences, format }: RestRequest, read: ReadPlan | undefined): ChangeResponse {
  return {
    read,
    format,
    exactly: isSingular(format) && read !== undefined ? 1 : undefined,
    maxChanged: preferences.maxAffected,
  }
}

interface Change {
  where: readonly PlannedCondition[]
  /** The plan of the response's content. */
  plan: ReadPlan
}

/**
 * Plans the filters of a change.
 * @throws RuntimeError INVALID_QUERY without a filter, because a change of every record must be explicit, except for
 * PostgREST clients
 */
function planChange(rest: CollectionRequest, what: string): Change {
  const { relation, query } = rest
  if (!rest.isProfiled && (query.own.limit !== undefined || query.own.offset !== undefined)) {
    throw restError('INVALID_QUERY', {
      code: 'PGRST100',
      message: `${what} does not allow a limit or an offset. It applies to all matching records.`,
    })
  }
  const own = { ...query.own, limit: undefined, offset: undefined }
  const planned = planRead(rest, relation, { ...query, own })
  const { where } = planned
  if (query.own.conditions.length === 0 && !rest.isProfiled) {
    throw restError('INVALID_QUERY', {
      code: '21000',
      message: `${what} requires a filter. To select every record, use for example ?${relation.key[0] ?? 'id'}=not.is.null`,
    })
  }
  const other = where.map(otherRelationIn).find((name) => name !== undefined)
  if (other !== undefined) throw noColumn(relation, other)
  return { where, plan: withoutFilters(planned) }
}

/** Returns the name of an embedded relation in a condition. The relation only exists in the response of a change. */
function otherRelationIn(condition: PlannedCondition): string | undefined {
  if (condition.kind === 'has') return condition.embedding.names[0]
  return 'members' in condition ? condition.members.map(otherRelationIn).find((name) => name !== undefined) : undefined
}

function rejectOffset({ own: { offset } }: Query): void {
  if (offset !== undefined && offset > 0)
    throw restError('INVALID_QUERY', { code: 'PGRST100', message: 'A write does not allow an offset.' })
}

function sendChanged(
  reply: FastifyReply,
  { preferences, format, explain }: CollectionRequest,
  response: RestResponse,
  plan: ReadPlan,
  range: string,
): FastifyReply {
  if (explain !== undefined) return sendPlan(reply, explain, response)
  reportApplied(reply, preferences)
  void reply.header('content-range', range)
  if (preferences.return !== 'representation') return reply.status(204).send()
  return sendRows(reply, 200, response, plan, format)
}

/** Sends the URL of the new record. */
function sendLocation(
  reply: FastifyReply,
  status: number,
  { body, n }: RestResponse,
  { name, key }: Relation,
  { basePath }: FastifyRequest,
): FastifyReply {
  const [row] = n === 1 && key.length > 0 ? (JSON.parse(body) as Record<string, unknown>[]) : []
  if (row !== undefined) {
    const filters = key.map(
      (column) => `${encodeURIComponent(column)}=${encodeURIComponent(`eq.${String(row[column])}`)}`,
    )
    void reply.header('location', `${basePath}/rest/v1/${encodeURIComponent(name)}?${filters.join('&')}`)
  }
  return reply.status(status).send()
}

/** Checks that PUT names one record by its whole key. */
function requireKey({ relation: { key }, query: { own } }: CollectionRequest): void {
  if (own.limit !== undefined || own.offset !== undefined)
    throw restError('INVALID_QUERY', {
      code: 'PGRST114',
      message: 'limit/offset querystring parameters are not allowed for PUT',
    })
  const named = own.conditions.map((condition) =>
    condition.kind === 'filter' && isPlainEq(condition) ? condition.path.column : '',
  )
  if (key.length > 0 && named.length === key.length && key.every((column) => named.includes(column))) return
  throw restError('METHOD_NOT_ALLOWED', {
    code: 'PGRST105',
    message: "Filters must include all and only primary key columns with 'eq' operators",
  })
}

function isPlainEq({ negated, path, test }: Filter): boolean {
  return !negated && path.steps.length === 0 && test.operator === 'eq' && test.quantifier === undefined
}

function otherKey() {
  return restError('INVALID_QUERY', {
    code: 'PGRST115',
    message: 'Payload values do not match URL in primary key column(s)',
  })
}
