// The route of the interface's description, at its root.
import type { FastifyInstance } from 'fastify'
import { describeCatalog } from '../openapi/describe.ts'
import { contentType } from '../request/read-accept.ts'
import { publicRoute, readRestRequest, type RestDeps } from './rest-request.ts'

export function addOpenApiRoute(app: FastifyInstance, deps: RestDeps): void {
  for (const path of ['/rest/v1', '/rest/v1/']) {
    app.get(path, publicRoute, async (request, reply) => {
      const { catalog, format } = await readRestRequest(deps, request, { describes: true })
      const type = format.kind === 'openapi' ? contentType(format) : 'application/json; charset=utf-8'
      return reply.type(type).send(JSON.stringify(describeCatalog(catalog, `${request.basePath}/rest/v1`)))
    })
  }
}
