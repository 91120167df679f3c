// One record by its key (specification, section 4.3): what is not there, and what may not be seen, is a 404.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ofChanged, planRecord } from '../plan/plan-read.ts'
import { planUpdate, requireWritable, type JsonBody } from '../plan/plan-write.ts'
import type { ReadPlan } from '../plan/plan.ts'
import type { Relation } from '../registry/catalog.ts'
import { restError } from '../rest-error.ts'
import { recordStatement } from '../sql/answer-sql.ts'
import { deleteStatement, updateStatement, type ChangeAnswer } from '../sql/change-sql.ts'
import { anyone, readRestRequest, relationOf, type RestDeps, type RestRequest } from './rest-request.ts'
import { isRehearsed, runAnswer } from './run-answer.ts'
import type { Answer } from './answer.ts'
import { elementOf } from './send.ts'
import { updateDocuments } from './write-documents.ts'

interface Named {
  Params: { collection: string; id: string }
  Body: JsonBody | undefined
}

interface Asked extends RestRequest {
  relation: Relation
  plan: ReadPlan
}

export function addRecordRoutes(app: FastifyInstance, deps: RestDeps): void {
  const asked = async (request: FastifyRequest<Named>): Promise<Asked> => {
    const rest = await readRestRequest(deps, request)
    const relation = relationOf(rest.catalog, request.params.collection)
    return { ...rest, relation, plan: planRecord(rest, relation, request.params.id, rest.query) }
  }
  const rehearsed = ({ catalog, preferences }: Asked) => ({ catalog, rehearsed: isRehearsed(preferences) })

  app.get<Named>('/rest/v1/:collection/:id', anyone, async (request, reply) => {
    const { catalog, relation, plan } = await asked(request)
    const { answer } = await runAnswer(request, recordStatement(plan), { catalog, onlyReads: true })
    return sendRecord(reply, relation, answer)
  })

  app.patch<Named>('/rest/v1/:collection/:id', anyone, async (request, reply) => {
    const rest = await asked(request)
    const { relation, plan, query } = rest
    const change = planUpdate(relation, request.body, query)
    const statement =
      change.columns.length === 0
        ? recordStatement(plan)
        : updateStatement(relation, change, plan.where, asRecord(plan))
    const { answer } = await updateDocuments(deps.quota, request, relation, request.body, () =>
      runAnswer(request, statement, rehearsed(rest)),
    )
    return sendRecord(reply, relation, answer)
  })

  app.delete<Named>('/rest/v1/:collection/:id', anyone, async (request, reply) => {
    const rest = await asked(request)
    const { relation, plan } = rest
    requireWritable(relation)
    const { answer } = await runAnswer(request, deleteStatement(relation, plan.where, asRecord(plan)), rehearsed(rest))
    deps.quota.freed(request.tenant.id)
    return sendRecord(reply, relation, answer)
  })
}

const json = { kind: 'json', singular: false, stripped: false } as const

function asRecord(plan: ReadPlan): ChangeAnswer {
  return { read: ofChanged(plan), format: json, exactly: undefined, atMost: undefined, isOne: true }
}

function sendRecord(reply: FastifyReply, { name }: Relation, { body, n }: Answer): FastifyReply {
  if (n === 0) throw restError('NO_SUCH_RECORD', { code: 'PGRST116', message: `there is no such record in "${name}"` })
  return reply.status(200).type('application/json; charset=utf-8').send(elementOf(body))
}
