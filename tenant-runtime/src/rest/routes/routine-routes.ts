// The routes of the home's functions, called by POST, and by GET when they change nothing.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { chooseRoutine, routinesCalled, takes } from '../plan/plan-call.ts'
import type { RequestBody } from '../plan/request-body.ts'
import { restError } from '../rest-error.ts'
import type { Given } from '../sql/call-sql.ts'
import { callByGet, callRoutine, mediaOfRoutine, textsOf } from './call-routine.ts'
import { beforeBody, publicRoute, readRestRequest, type RestDeps } from './rest-request.ts'

interface RoutineRoute {
  Params: { name: string }
  Body: RequestBody | undefined
}

/** The bytes of a body that is read although no function has the requested name. */
const smallBytes = 512

export function addRoutineRoutes(app: FastifyInstance, deps: RestDeps): void {
  const early = beforeBody(async (request: FastifyRequest<RoutineRoute>) => {
    const rest = await readRestRequest(deps, request, { media: mediaOfRoutine(request.params.name) })
    const routines = rest.catalog.routines.get(request.params.name) ?? []
    // The error names the arguments, which are only read of small bodies.
    if (routines.length === 0 && !(Number(request.headers['content-length'] ?? Infinity) <= smallBytes))
      routinesCalled(rest.catalog, request.params.name)
    return { rest, routines }
  })

  app.post<RoutineRoute>(
    '/rest/v1/rpc/:name',
    { ...publicRoute, preParsing: early.preParsing },
    async (request, reply) => {
      const { rest, routines } = await early.take(request)
      const { text, value, whole, bytes, pairs, isText }: RequestBody = request.body ?? { text: '{}', value: {} }
      const type = whole ?? (isText === true ? undefined : 'json')
      const named = whole === undefined ? (rest.query.columns ?? argumentNamesIn(value)) : []
      // Only a function that takes the whole body can be called without names.
      if (routines.length === 0) routinesCalled(rest.catalog, request.params.name, { names: named ?? [], whole: type })
      const possible = named === undefined ? routines.filter((routine) => takes(routine, type)) : routines
      if (possible.length === 0)
        throw restError('BAD_REQUEST', { code: 'PGRST102', message: 'All object keys must match' })
      const names = named ?? []
      const { routine, isWhole } = chooseRoutine(rest.catalog, possible, { names, whole: type })
      if (isWhole) return callRoutine(request, reply, rest, routine, names, { kind: 'whole', body: bytes ?? text })
      const values: Given =
        pairs === undefined ? { kind: 'json', body: text, isArray: Array.isArray(value) } : textsOf(routine, pairs)
      return callRoutine(request, reply, rest, routine, names, values)
    },
  )

  app.get<RoutineRoute>('/rest/v1/rpc/:name', publicRoute, (request, reply) =>
    callByGet(deps, request, reply, request.params.name),
  )
}

/**
 * Returns the names of the arguments in a body: the keys of an object, or of the first object of an array; undefined when the
 * elements of an array differ in their keys.
 */
function argumentNamesIn(value: unknown): string[] | undefined {
  const keysOf = (value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : undefined
  if (!Array.isArray(value)) return keysOf(value) ?? []
  const [first, ...others] = value.map(keysOf)
  const isUniform =
    value.length === 0 ||
    (first !== undefined &&
      others.every((keys) => keys?.length === first.length && keys.every((key) => first.includes(key))))
  return isUniform ? (first ?? []) : undefined
}
