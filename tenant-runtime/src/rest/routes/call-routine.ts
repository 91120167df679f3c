// Calls a function of the home, and sends what it returns.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { mediaOfRoutines, type MediaLookup } from '../plan/media.ts'
import { checkMaxAffected, chooseRoutine, planCall, routinesCalled } from '../plan/plan-call.ts'
import type { Catalog, Routine } from '../registry/catalog.ts'
import { contentType, readAccept } from '../request/read-accept.ts'
import type { Query } from '../request/read-query.ts'
import { callStatement, type Given } from '../sql/call-sql.ts'
import { arrayLiteral } from '../sql/condition-sql.ts'
import { ranged, rejectOffsetBeyond } from './ranged.ts'
import { readRestRequest, type RestDeps, type RestRequest } from './rest-request.ts'
import { runStatement } from './run-statement.ts'
import { contentRange, mediaBody, notOne, reportApplied, sendPlan, sendRows } from './send.ts'

/**
 * Calls a function.
 * @param given the names of the given arguments
 */
export async function callRoutine(
  request: FastifyRequest,
  reply: FastifyReply,
  rest: RestRequest,
  routine: Routine,
  given: readonly string[],
  values: Given,
): Promise<FastifyReply> {
  const { catalog, query, preferences } = rest
  // Until here, the format could be that of another function with the same name.
  const format = readAccept(rest.explain?.of ?? request.headers.accept, mediaOfRoutines(catalog, [routine], query))
  const isReadOnly = request.method !== 'POST'
  const plan = planCall(rest, routine, given, ranged(request, query))
  checkMaxAffected(routine, preferences.maxAffected)
  const { response } = await runStatement(request, rest, callStatement(plan, values, format, preferences), {
    isReadOnly,
  })
  if (rest.explain !== undefined) return sendPlan(reply, rest.explain, response)
  const { kind, isSet } = routine.returns
  const { offset } = plan.read ?? plan.page
  rejectOffsetBeyond(reply, offset, response.total)
  reportApplied(reply, preferences)
  if (kind === 'nothing' || (preferences.return === 'minimal' && !isReadOnly)) {
    void reply.header('content-range', contentRange(0, response.n, response.total))
    return reply.status(kind === 'nothing' ? 204 : 200).send()
  }
  void reply.header('content-range', contentRange(isSet ? offset : 0, response.n, response.total))
  const status = response.total !== undefined && response.n < response.total ? 206 : 200
  if (plan.read !== undefined && (isSet || format.kind !== 'json' || format.singular))
    return sendRows(reply, status, response, plan.read, format)
  if (format.kind === 'csv')
    return reply.status(status).type(contentType(format)).send(`pgrst_scalar\n${response.body}`)
  if (format.kind === 'media')
    return reply.status(status).type(contentType(format)).send(mediaBody(format, response.body))
  if (format.kind === 'json' && format.singular && isSet) {
    if (response.n !== 1) throw notOne(response.n)
    return reply.type(contentType(format)).send(response.body.slice(1, -1))
  }
  return reply.status(status).type(contentType(format)).send(response.body)
}

/** Calls a function with the arguments in the query string. Postgres rejects every change. */
export async function callByGet(
  deps: RestDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  name: string,
): Promise<FastifyReply> {
  const argumentNames = (catalog: Catalog) => {
    const names = new Map<string, boolean>()
    for (const { arguments: all } of catalog.routines.get(name) ?? [])
      for (const { name, isOptional } of all) if (name !== '') names.set(name, names.get(name) === true || !isOptional)
    return names
  }
  const rest = await readRestRequest(deps, request, { argumentNames, media: mediaOfRoutine(name) })
  const names = [...new Set(rest.query.arguments.map(([name]) => name))]
  const called = { names, whole: undefined }
  const { routine } = chooseRoutine(rest.catalog, routinesCalled(rest.catalog, name, called), called)
  return callRoutine(request, reply, rest, routine, names, textsOf(routine, rest.query.arguments))
}

/** Finds the media types of the functions of a name. */
export function mediaOfRoutine(name: string): (catalog: Catalog, query: Query) => MediaLookup {
  return (catalog, query) => mediaOfRoutines(catalog, catalog.routines.get(name) ?? [], query)
}

/** Returns the arguments of a query string or a form. */
export function textsOf(routine: Routine, pairs: readonly (readonly [name: string, value: string])[]): Given {
  const given = new Map<string, string[]>()
  for (const [name, value] of pairs) {
    const values = given.get(name)
    if (values === undefined) given.set(name, [value])
    else values.push(value)
  }
  const texts = new Map<string, string>()
  for (const { name, isVariadic } of routine.arguments) {
    const values = given.get(name)
    // The last value of a repeated argument counts. A variadic argument has all of them.
    if (values !== undefined)
      texts.set(name, isVariadic && !(values[0] ?? '').startsWith('{') ? arrayLiteral(values) : (values.at(-1) ?? ''))
  }
  return { kind: 'texts', values: texts }
}
