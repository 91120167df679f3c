// The routes of one record by its key (specification, section 4.3). A missing record and an invisible one are both a 404.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { withoutFilters, planRecord } from '../plan/plan-read.ts'
import { planUpdate, requireWritable } from '../plan/plan-write.ts'
import { mayChange, readsViews } from '../plan/plan-computed.ts'
import type { RequestBody } from '../plan/request-body.ts'
import type { ReadPlan } from '../plan/plan.ts'
import type { Relation } from '../registry/catalog.ts'
import { notAcceptable } from '../request/read-accept.ts'
import { restError } from '../rest-error.ts'
import { recordStatement } from '../sql/response-sql.ts'
import { deleteStatement, updateStatement, type ChangeResponse } from '../sql/change-sql.ts'
import {
  beforeBody,
  publicRoute,
  readRestRequest,
  relationOf,
  type RestDeps,
  type RestRequest,
} from './rest-request.ts'
import { runStatement } from './run-statement.ts'
import type { RestResponse } from './response.ts'
import { elementOf } from './send.ts'
import { updateDocuments } from './write-documents.ts'

interface RecordRoute {
  Params: { collection: string; id: string }
  Body: RequestBody | undefined
}

interface RecordRequest extends RestRequest {
  relation: Relation
  plan: ReadPlan
}

export function addRecordRoutes(app: FastifyInstance, deps: RestDeps): void {
  const readRequest = async (request: FastifyRequest<RecordRoute>): Promise<RecordRequest> => {
    const rest = await readRestRequest(deps, request)
    if (rest.explain !== undefined) throw notAcceptable(request.headers.accept)
    const relation = relationOf(rest.catalog, request.params.collection)
    return { ...rest, relation, plan: planRecord(rest, relation, request.params.id, rest.query) }
  }
  const early = beforeBody(async (request: FastifyRequest<RecordRoute>) => {
    const rest = await readRequest(request)
    requireWritable(rest.relation)
    return rest
  })
  const writeRoute = { ...publicRoute, preParsing: early.preParsing } as const

  app.get<RecordRoute>('/rest/v1/:collection/:id', publicRoute, async (request, reply) => {
    const rest = await readRequest(request)
    const { response } = await runStatement(request, rest, recordStatement(rest.plan), {
      isReadOnly: mayChange(rest.plan) || readsViews(rest.plan),
      onlyReads: true,
    })
    return sendRecord(reply, rest.relation, response)
  })

  app.patch<RecordRoute>('/rest/v1/:collection/:id', writeRoute, async (request, reply) => {
    const rest = await early.take(request)
    const { relation, plan, query, preferences } = rest
    const change = planUpdate(relation, request.body, query, preferences)
    const statement =
      change.columns.length === 0
        ? recordStatement(plan)
        : updateStatement(relation, change, plan.where, asRecord(plan))
    const { response } = await updateDocuments(deps.quota, request, relation, request.body, () =>
      runStatement(request, rest, statement),
    )
    return sendRecord(reply, relation, response)
  })

  app.delete<RecordRoute>('/rest/v1/:collection/:id', writeRoute, async (request, reply) => {
    const rest = await early.take(request)
    const { relation, plan } = rest
    requireWritable(relation)
    const { response } = await runStatement(request, rest, deleteStatement(relation, plan.where, asRecord(plan)))
    deps.quota.freed(request.tenant.id)
    return sendRecord(reply, relation, response)
  })
}

const json = { kind: 'json', singular: false, stripped: false } as const

function asRecord(plan: ReadPlan): ChangeResponse {
  return { read: withoutFilters(plan), format: json, exactly: undefined, maxChanged: undefined, isOne: true }
}

function sendRecord(reply: FastifyReply, { name }: Relation, { body, n }: RestResponse): FastifyReply {
  if (n === 0)
    throw restError('NO_SUCH_RECORD', { code: 'PGRST116', message: `The record does not exist in "${name}".` })
  return reply.status(200).type('application/json; charset=utf-8').send(elementOf(body))
}
