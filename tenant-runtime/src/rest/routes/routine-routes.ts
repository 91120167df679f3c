// The routes of the home's functions, called by POST, and by GET when they change nothing.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { chooseRoutine, isWhole, planCall, routinesCalled } from '../plan/plan-call.ts'
import type { JsonBody } from '../plan/plan-write.ts'
import type { Catalog, Routine } from '../registry/catalog.ts'
import { contentType, notAcceptable } from '../request/read-accept.ts'
import { restError } from '../rest-error.ts'
import { callStatement, type Given } from '../sql/call-sql.ts'
import { arrayLiteral } from '../sql/condition-sql.ts'
import { notSatisfiable, ranged } from './ranged.ts'
import { publicRoute, readRestRequest, type RestDeps, type RestRequest } from './rest-request.ts'
import { isDryRun, runStatement } from './run-statement.ts'
import { contentRange, notOne, reportApplied, sendRows } from './send.ts'

interface RoutineRoute {
  Params: { name: string }
  Body: JsonBody | undefined
}

export function addRoutineRoutes(app: FastifyInstance, deps: RestDeps): void {
  const call = async (
    request: FastifyRequest<RoutineRoute>,
    reply: FastifyReply,
    rest: RestRequest,
    routine: Routine,
    given: readonly string[],
    values: Given,
  ) => {
    const { catalog, query, preferences, format } = rest
    const isReadOnly = request.method !== 'POST'
    const plan = planCall(rest, routine, given, isReadOnly ? ranged(request, query) : query)
    if (plan.read === undefined && format.kind !== 'json')
      throw notAcceptable(`${String(request.headers.accept)} for a function that returns values`)
    const { response } = await runStatement(request, callStatement(plan, values, format, preferences.count), {
      catalog,
      isReadOnly,
      dryRun: isDryRun(preferences),
    })
    reportApplied(reply, preferences)
    const { kind, isSet } = routine.returns
    const { offset } = plan.read ?? plan.page
    if (response.total !== undefined && offset > response.total)
      throw notSatisfiable(`An offset of ${offset} was requested, but there are only ${response.total} rows.`)
    if (kind === 'nothing' || (preferences.return === 'minimal' && !isReadOnly)) {
      void reply.header('content-range', contentRange(0, response.n, response.total))
      return reply.status(kind === 'nothing' ? 204 : 200).send()
    }
    void reply.header('content-range', contentRange(isSet ? offset : 0, response.n, response.total))
    const status = response.total !== undefined && response.n < response.total ? 206 : 200
    if (plan.read !== undefined && (isSet || format.kind !== 'json' || format.singular))
      return sendRows(reply, status, response, plan.read, format)
    if (format.kind === 'json' && format.singular && isSet) {
      if (response.n !== 1) throw notOne(response.n)
      return reply.type(contentType(format)).send(response.body.slice(1, -1))
    }
    return reply.status(status).type(contentType(format)).send(response.body)
  }

  app.post<RoutineRoute>('/rest/v1/rpc/:name', publicRoute, async (request, reply) => {
    const rest = await readRestRequest(deps, request)
    const routines = routinesCalled(rest.catalog, request.params.name)
    const { text, value } = request.body ?? { text: '{}', value: {} }
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    const given = isObject ? Object.keys(value) : []
    if (!isObject && !routines.some(isWhole))
      throw restError('BAD_REQUEST', {
        code: 'PGRST102',
        message: 'The body must be an object with the arguments by their names.',
      })
    const routine = chooseRoutine(isObject ? routines : routines.filter(isWhole), given, true)
    return call(request, reply, rest, routine, given, { kind: isWhole(routine) ? 'whole' : 'json', body: text })
  })

  app.get<RoutineRoute>('/rest/v1/rpc/:name', publicRoute, async (request, reply) => {
    const { name } = request.params
    const argumentNames = (catalog: Catalog) =>
      new Set(routinesCalled(catalog, name).flatMap((routine) => routine.arguments.map((argument) => argument.name)))
    const rest = await readRestRequest(deps, request, { argumentNames })
    const given = new Map<string, string[]>()
    for (const [key, value] of rest.query.arguments) given.set(key, [...(given.get(key) ?? []), value])
    const routine = chooseRoutine(routinesCalled(rest.catalog, name), [...given.keys()], false)
    const texts = new Map<string, string>()
    for (const { name, isVariadic } of routine.arguments) {
      const values = given.get(name)
      // The last value of a repeated argument counts. A variadic argument has all of them.
      if (values !== undefined)
        texts.set(name, isVariadic && !(values[0] ?? '').startsWith('{') ? arrayLiteral(values) : (values.at(-1) ?? ''))
    }
    return call(request, reply, rest, routine, [...given.keys()], { kind: 'texts', values: texts })
  })
}
