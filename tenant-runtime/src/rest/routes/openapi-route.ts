// The route of the interface's description, at its root: the function that the tenant wants there, or the service's own.
import type { FastifyInstance } from 'fastify'
import { Descriptions } from '../openapi/descriptions.ts'
import { contentType, notAcceptable } from '../request/read-accept.ts'
import { callByGet } from './call-routine.ts'
import { catalogOf, publicRoute, readRestRequest, type RestDeps } from './rest-request.ts'
import { runWithoutStatement } from './run-statement.ts'

const route = { ...publicRoute, config: { ...publicRoute.config, makesResult: true } } as const

export function addOpenApiRoute(app: FastifyInstance, deps: RestDeps): void {
  const descriptions = new Descriptions()
  for (const path of ['/rest/v1', '/rest/v1/']) {
    app.get(path, route, async (request, reply) => {
      const { settings, routines } = await catalogOf(deps.registry, request)
      const { db_root_spec } = settings
      if (db_root_spec !== null && routines.has(db_root_spec)) return callByGet(deps, request, reply, db_root_spec)
      const rest = await readRestRequest(deps, request, { describes: true })
      const { catalog, format, explain } = rest
      if (explain !== undefined) throw notAcceptable(request.headers.accept)
      await runWithoutStatement(request, rest, { isReadOnly: true })
      const type = format.kind === 'openapi' ? contentType(format) : 'application/json; charset=utf-8'
      return reply.type(type).send(await descriptions.of(catalog, `${request.basePath}/rest/v1`))
    })
  }
}
