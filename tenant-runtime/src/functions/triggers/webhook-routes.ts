// Webhooks: messages of other services, told from anybody's by their signature alone.
import type { FastifyInstance } from 'fastify'
import { RuntimeError } from '../../errors.ts'
import { anonymous } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { noSuchFunction } from '../function-store.ts'
import { ClaimTaken } from '../invocations/invocation-store.ts'
import { keepBodiesAsBytes, maxEventBytes } from '../invocations/invoke-routes.ts'
import { invoke, type InvokeDeps } from '../invocations/invoke.ts'
import { requestVariables } from '../invocations/request-variables.ts'
import { checkSignature, readWebhookHead } from './webhook-signature.ts'
import { claimMessage, findSecret, deleteMessage, deleteOldMessages, messageState } from './webhook-messages.ts'

/** Between two times that a tenant's old messages are forgotten, while new ones come. */
const evictMilliseconds = 600_000

export function addWebhookRoute(app: FastifyInstance, deps: InvokeDeps): void {
  keepBodiesAsBytes(app)
  const evicted = new WeakMap<Tenant, number>()

  const deleteSomeMessages = (tenant: Tenant) => {
    if (deps.now() - (evicted.get(tenant) ?? -Infinity) < evictMilliseconds) return
    evicted.set(tenant, deps.now())
    deleteOldMessages(tenant).catch((cause: unknown) =>
      deps.onError(new Error(`${tenant.id}: old messages of webhooks could not be forgotten`, { cause })),
    )
  }

  app.route<{ Params: { name: string } }>({
    method: 'POST',
    url: '/functions/v1/webhook/:name',
    config: { access: 'signed' },
    bodyLimit: maxEventBytes,
    // Before the body is read, or the database asked.
    preParsing: async ({ headers }) => void readWebhookHead(headers, deps.now()),
    handler: async (request, reply) => {
      const {
        tenant,
        params: { name },
        url,
        headers,
        body: received,
        log,
      } = request
      const input = Buffer.isBuffer(received) ? received : Buffer.alloc(0)
      const head = readWebhookHead(headers, deps.now())
      const found = await findSecret(tenant, name)
      if (found === undefined) throw noSuchFunction()
      checkSignature(head, input, found.secret)
      request.admitted = true
      deleteSomeMessages(tenant)
      try {
        const {
          invocationId,
          status,
          headers: reported,
          body,
        } = await invoke(deps, tenant, {
          name,
          trigger: 'webhook',
          context: anonymous,
          input,
          variables: {
            ...requestVariables({ method: 'POST', url, headers }),
            TENANTRY_WEBHOOK_ID: head.id,
            TENANTRY_WEBHOOK_TIMESTAMP: head.timestamp,
          },
          claim: claimMessage(head.id),
          log,
        })
        if (status >= 400) await deleteMessage(tenant, invocationId)
        return await reply.status(status).headers(reported).header('x-invocation-id', invocationId).send(body)
      } catch (error) {
        if (!(error instanceof ClaimTaken)) throw error
        if ((await messageState(tenant, found.functionId, head.id)) === 'done')
          return reply.status(200).send({ duplicate: true })
        throw new RuntimeError('CONFLICT', `the message "${head.id}" is being taken already; send it again later`, {
          retryAfter: 1,
        })
      }
    },
  })
}
