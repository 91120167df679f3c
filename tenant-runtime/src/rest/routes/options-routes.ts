// OPTIONS: the methods that a collection or a function has. A browser's preflight gets the response of all other paths.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isPreflight, sendPreflight } from '../../http/cors.ts'
import { routinesCalled } from '../plan/plan-call.ts'
import type { Relation } from '../registry/catalog.ts'
import { catalogOf, relationOf, type RestDeps } from './rest-request.ts'

export function addOptionsRoutes(app: FastifyInstance, { registry }: RestDeps): void {
  const open = { config: { access: 'public' } } as const
  const allow = async (request: FastifyRequest, reply: FastifyReply, methods: () => Promise<readonly string[]>) => {
    if (isPreflight(request)) return sendPreflight(request, reply)
    return reply
      .status(200)
      .header('allow', ['OPTIONS', ...(await methods())].join(','))
      .send()
  }
  for (const path of ['/rest/v1', '/rest/v1/'])
    app.options(path, open, (request, reply) => allow(request, reply, async () => ['GET', 'HEAD']))
  app.options<{ Params: { collection: string } }>('/rest/v1/:collection', open, (request, reply) =>
    allow(request, reply, async () =>
      methodsOf(relationOf(await catalogOf(registry, request), request.params.collection)),
    ),
  )
  app.options<{ Params: { name: string } }>('/rest/v1/rpc/:name', open, (request, reply) =>
    allow(request, reply, async () => {
      const routines = routinesCalled(await catalogOf(registry, request), request.params.name)
      return routines.some(({ isReading }) => isReading) ? ['GET', 'HEAD', 'POST'] : ['POST']
    }),
  )
}

function methodsOf({ writable, key, changes }: Relation): string[] {
  const [inserts, updates, deletes] =
    writable === 'no' ? [false, false, false] : [changes.insert, changes.update, changes.delete]
  return [
    'GET',
    'HEAD',
    ...(inserts ? ['POST'] : []),
    ...(inserts && updates && key.length > 0 ? ['PUT'] : []),
    ...(updates ? ['PATCH'] : []),
    ...(deletes ? ['DELETE'] : []),
  ]
}
