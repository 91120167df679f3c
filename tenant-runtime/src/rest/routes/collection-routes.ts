// The routes of a collection (specification, section 4.3): lists with PostgREST's grammar, inserts, and changes of all
// filtered records.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Statement } from '../../database/statement.ts'
import { withoutFilters, planRead } from '../plan/plan-read.ts'
import type { PlannedCondition, ReadPlan } from '../plan/plan.ts'
import { planInsert, planUpdate, requireWritable, type JsonBody } from '../plan/plan-write.ts'
import type { Relation } from '../registry/catalog.ts'
import { isSingular, plainJson } from '../request/read-accept.ts'
import type { Filter } from '../request/read-conditions.ts'
import { emptyQuery, type Query } from '../request/read-query.ts'
import { fieldNamed } from '../request/read-select.ts'
import { restError } from '../rest-error.ts'
import { readStatement } from '../sql/response-sql.ts'
import { deleteStatement, insertStatement, updateStatement, type ChangeResponse } from '../sql/change-sql.ts'
import { publicRoute, readRestRequest, relationOf, type RestDeps, type RestRequest } from './rest-request.ts'
import { isDryRun, runStatement } from './run-statement.ts'
import type { RestResponse } from './response.ts'
import { sendList } from './send-list.ts'
import { contentRange, elementOf, reportApplied, sendRows } from './send.ts'
import { insertDocuments, updateDocuments } from './write-documents.ts'

interface CollectionRoute {
  Params: { collection: string }
  Body: JsonBody | undefined
}

interface CollectionRequest extends RestRequest {
  relation: Relation
}

export function addCollectionRoutes(app: FastifyInstance, deps: RestDeps): void {
  const readRequest = async (request: FastifyRequest<CollectionRoute>): Promise<CollectionRequest> => {
    const rest = await readRestRequest(deps, request)
    return { ...rest, relation: relationOf(rest.catalog, request.params.collection) }
  }

  app.get<CollectionRoute>('/rest/v1/:collection', publicRoute, async (request, reply) =>
    sendList(request, reply, await readRequest(request)),
  )

  app.post<CollectionRoute>('/rest/v1/:collection', publicRoute, async (request, reply) => {
    const { relation, ...rest } = await readRequest(request)
    const { preferences, query } = rest
    rejectOffset(query)
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
    const run = () =>
      runStatement(request, insertStatement(insert, shape), { catalog: rest.catalog, dryRun: isDryRun(preferences) })
    const { response } =
      insert.count === 0
        ? { response: nothing }
        : await insertDocuments(deps.quota, request, relation, request.body, insert.count, run)
    reportApplied(reply, preferences)
    void reply.header('content-range', `*/${preferences.count === undefined ? '*' : response.changed}`)
    const status = response.made === 0 && response.changed > 0 ? 200 : 201
    if (wants === 'location') return sendLocation(reply, status, response, relation, request)
    if (wants === 'nothing') return reply.status(status).send()
    // A caller of the specification sends one record and receives one.
    if (wants === 'record' && !isMany && rest.format.kind === 'json')
      return reply.status(status).type('application/json; charset=utf-8').send(elementOf(response.body))
    return sendRows(reply, status, response, plan, rest.format)
  })

  app.patch<CollectionRoute>('/rest/v1/:collection', publicRoute, async (request, reply) => {
    const rest = await readRequest(request)
    const { relation, query, preferences } = rest
    const change = planUpdate(relation, request.body, query)
    const { where, plan } = planChange(rest, 'UPDATE')
    const shape = changeResponse(rest, preferences.return === 'representation' ? plan : undefined)
    const statement =
      change.columns.length === 0 ? unchanged(plan, where, rest) : updateStatement(relation, change, where, shape)
    const run = () => runStatement(request, statement, { catalog: rest.catalog, dryRun: isDryRun(preferences) })
    const { response } = await updateDocuments(deps.quota, request, relation, request.body, run)
    const changed = change.columns.length === 0 ? response.n : response.changed
    return sendChanged(
      reply,
      rest,
      response,
      plan,
      contentRange(0, changed, preferences.count === undefined ? undefined : changed),
    )
  })

  app.put<CollectionRoute>('/rest/v1/:collection', publicRoute, async (request, reply) => {
    const rest = await readRequest(request)
    const { relation, query, preferences } = rest
    requireKey(rest)
    const insert = planInsert(
      relation,
      request.body,
      { ...query, onConflict: undefined },
      { ...preferences, resolution: 'merge-duplicates' },
    )
    if (insert.count !== 1 || relation.key.some((name) => !insert.columns.some((column) => column.name === name)))
      throw otherKey()
    const { where: filters, plan } = planChange(rest, 'PUT')
    const wantsRecord =
      preferences.return === 'representation' || (preferences.return === undefined && !rest.isProfiled)
    // The policies decide whose the sent record may be.
    const where = filters.filter(({ kind }) => kind !== 'own')
    const run = () =>
      runStatement(
        request,
        insertStatement({ ...insert, where }, changeResponse(rest, wantsRecord ? plan : undefined)),
        {
          catalog: rest.catalog,
          dryRun: isDryRun(preferences),
        },
      )
    const { response } = await insertDocuments(deps.quota, request, relation, request.body, insert.count, run)
    if (response.changed === 0) throw otherKey()
    reportApplied(reply, preferences)
    const isNew = (response.made ?? 0) > 0
    if (!wantsRecord) return reply.status(isNew ? 201 : 204).send()
    return sendRows(reply, isNew ? 201 : 200, response, plan, rest.format)
  })

  app.delete<CollectionRoute>('/rest/v1/:collection', publicRoute, async (request, reply) => {
    const rest = await readRequest(request)
    const { relation, preferences } = rest
    requireWritable(relation)
    const { where, plan } = planChange(rest, 'DELETE')
    const statement = deleteStatement(
      relation,
      where,
      changeResponse(rest, preferences.return === 'representation' ? plan : undefined),
    )
    const { response } = await runStatement(request, statement, {
      catalog: rest.catalog,
      dryRun: isDryRun(preferences),
    })
    deps.quota.freed(request.tenant.id)
    return sendChanged(reply, rest, response, plan, `*/${preferences.count === undefined ? '*' : response.changed}`)
  })
}

/** Returns the content of an insert's response. `record` is that of the specification. */
function responseOf({ preferences, isProfiled }: RestRequest): 'nothing' | 'location' | 'rows' | 'record' {
  if (preferences.return === 'minimal') return 'nothing'
  if (preferences.return === 'headers-only') return 'location'
  if (preferences.return === 'representation') return 'rows'
  return isProfiled ? 'nothing' : 'record'
}

const nothing: RestResponse = { body: '[]', n: 0, total: undefined, changed: 0, made: undefined, last: undefined }

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
 * @throws RuntimeError INVALID_QUERY without a filter, because a change of every record must be explicit
 */
function planChange(rest: CollectionRequest, what: string): Change {
  const { relation, query } = rest
  if (query.own.limit !== undefined || query.own.offset !== undefined) {
    throw restError('INVALID_QUERY', {
      code: 'PGRST100',
      message: `${what} does not allow a limit or an offset. It applies to all matching records.`,
    })
  }
  const planned = planRead(rest, relation, query)
  const { where } = planned
  if (query.own.conditions.length === 0) {
    throw restError('INVALID_QUERY', {
      code: '21000',
      message: `${what} requires a filter. To select every record, use for example ?${relation.key[0] ?? 'id'}=not.is.null`,
    })
  }
  if (where.some(usesOtherRelations))
    throw restError('INVALID_QUERY', {
      code: 'PGRST100',
      message: `${what} cannot have filters on rows of other collections.`,
    })
  return { where, plan: withoutFilters(planned) }
}

function usesOtherRelations(condition: PlannedCondition): boolean {
  return condition.kind === 'has' || ('members' in condition && condition.members.some(usesOtherRelations))
}

function rejectOffset({ own: { offset } }: Query): void {
  if (offset !== undefined && offset > 0)
    throw restError('INVALID_QUERY', { code: 'PGRST100', message: 'A write does not allow an offset.' })
}

/** Returns a statement that reads the rows which a change without fields would change. */
function unchanged(plan: ReadPlan, where: readonly PlannedCondition[], { format }: CollectionRequest): Statement {
  return readStatement({ ...plan, where }, format, undefined)
}

function sendChanged(
  reply: FastifyReply,
  { preferences, format }: CollectionRequest,
  response: RestResponse,
  plan: ReadPlan,
  range: string,
): FastifyReply {
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
