// The routes of one record by its key (specification, section 4.3). A missing record and an invisible one are both a 404.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { withoutFilters, planRecord } from '../plan/plan-read.ts'
import { planUpdate, requireWritable, type JsonBody } from '../plan/plan-write.ts'
import type { ReadPlan } from '../plan/plan.ts'
import type { Relation } from '../registry/catalog.ts'
import { restError } from '../rest-error.ts'
import { recordStatement } from '../sql/response-sql.ts'
import { deleteStatement, updateStatement, type ChangeResponse } from '../sql/change-sql.ts'
import { publicRoute, readRestRequest, relationOf, type RestDeps, type RestRequest } from './rest-request.ts'
import { isDryRun, runStatement } from './run-statement.ts'
import type { RestResponse } from './response.ts'
import { elementOf } from './send.ts'
import { updateDocuments } from './write-documents.ts'

interface RecordRoute {
  Params: { collection: string; id: string }
  Body: JsonBody | undefined
}

interface RecordRequest extends RestRequest {
  relation: Relation
  plan: ReadPlan
}

export function addRecordRoutes(app: FastifyInstance, deps: RestDeps): void {
  const readRequest = async (request: FastifyRequest<RecordRoute>): Promise<RecordRequest> => {
    const rest = await readRestRequest(deps, request)
    const relation = relationOf(rest.catalog, request.params.collection)
    return { ...rest, relation, plan: planRecord(rest, relation, request.params.id, rest.query) }
  }
  const dryRun = ({ catalog, preferences }: RecordRequest) => ({ catalog, dryRun: isDryRun(preferences) })

  app.get<RecordRoute>('/rest/v1/:collection/:id', publicRoute, async (request, reply) => {
    const { catalog, relation, plan } = await readRequest(request)
    const { response } = await runStatement(request, recordStatement(plan), { catalog, onlyReads: true })
    return sendRecord(reply, relation, response)
  })

  app.patch<RecordRoute>('/rest/v1/:collection/:id', publicRoute, async (request, reply) => {
    const rest = await readRequest(request)
    const { relation, plan, query } = rest
    const change = planUpdate(relation, request.body, query)
    const statement =
      change.columns.length === 0
        ? recordStatement(plan)
        : updateStatement(relation, change, plan.where, asRecord(plan))
    const { response } = await updateDocuments(deps.quota, request, relation, request.body, () =>
      runStatement(request, statement, dryRun(rest)),
    )
    return sendRecord(reply, relation, response)
  })

  app.delete<RecordRoute>('/rest/v1/:collection/:id', publicRoute, async (request, reply) => {
    const rest = await readRequest(request)
    const { relation, plan } = rest
    requireWritable(relation)
    const { response } = await runStatement(
      request,
      deleteStatement(relation, plan.where, asRecord(plan)),
      dryRun(rest),
    )
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
