// Invocations over HTTP (specification, section 4.3), and the path that functions clients use.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { invoke, type InvokeDeps } from './invoke.ts'
import { requestVariables } from './request-variables.ts'

export const maxEventBytes = 6 * 1024 * 1024

interface Named {
  Params: { name: string }
}

/** The body goes to the function as it came. */
export function keepBodiesAsBytes(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: maxEventBytes }, (_request, body, done) =>
    done(null, body),
  )
}

export function addInvokeRoutes(app: FastifyInstance, deps: InvokeDeps): void {
  keepBodiesAsBytes(app)

  const handler = async (request: FastifyRequest<Named>, reply: FastifyReply) => {
    const { invocationId, status, headers, body } = await invoke(deps, request.tenant, {
      name: request.params.name,
      trigger: 'http',
      input: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0),
      context: request.rls,
      variables: requestVariables(request),
      log: request.log,
    })
    return reply.status(status).headers(headers).header('x-invocation-id', invocationId).send(body)
  }
  const options = { config: { access: 'authenticated' }, bodyLimit: maxEventBytes } as const
  app.route<Named>({
    method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    url: '/functions/v1/invoke/:name',
    ...options,
    handler,
  })
  app.post<Named>('/functions/v1/:name', options, handler)
}
