// HTTP routes of invocations (specification, section 4.3), and the path that Supabase's functions client uses.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Readable } from 'node:stream'
import { invoke, type Call, type InvokeDeps } from './invoke.ts'
import { requestVariables } from './request-variables.ts'

export const maxEventBytes = 6 * 1024 * 1024

interface Named {
  Params: { name: string }
}

/** Makes bodies available as bytes, without parsing. */
export function readBodiesAsBytes(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', async (request: FastifyRequest, payload: Readable) => {
    const { bytes } = await app.bodies.read(request, payload)
    return bytes
  })
}

/** Stops an invocation when its caller disconnects before the response, because its result cannot be sent. */
function stopWhenCallerLeaves({ raw }: FastifyReply): NonNullable<Call['onTurn']> {
  let turn: Parameters<NonNullable<Call['onTurn']>>[0] | undefined
  const isDisconnected = () => raw.destroyed && !raw.writableEnded
  raw.once('close', () => {
    if (isDisconnected()) turn?.stop('caller-left')
  })
  return (begun) => {
    turn = begun
    if (isDisconnected()) begun.stop('caller-left')
  }
}

export function addInvokeRoutes(app: FastifyInstance, deps: InvokeDeps): void {
  readBodiesAsBytes(app)

  const handler = async (request: FastifyRequest<Named>, reply: FastifyReply) => {
    const { invocationId, status, headers, body } = await invoke(deps, request.tenant, {
      name: request.params.name,
      trigger: 'http',
      input: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0),
      context: request.rls,
      variables: requestVariables(request),
      onTurn: stopWhenCallerLeaves(reply),
      log: request.log,
    })
    return reply.status(status).headers(headers).header('x-invocation-id', invocationId).send(body)
  }
  const options = { config: { access: 'authenticated', makesResult: true }, bodyLimit: maxEventBytes } as const
  app.route<Named>({
    method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    url: '/functions/v1/invoke/:name',
    ...options,
    handler,
  })
  app.post<Named>('/functions/v1/:name', options, handler)
}
