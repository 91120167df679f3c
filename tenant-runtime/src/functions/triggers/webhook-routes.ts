// The HTTP route of webhooks: messages of other services, which are authenticated by their signatures.
import type { FastifyInstance } from 'fastify'
import { RuntimeError } from '../../errors.ts'
import { anonymous } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { noSuchFunction } from '../function-store.ts'
import { ClaimTaken } from '../invocations/invocation-store.ts'
import { readBodiesAsBytes, maxEventBytes } from '../invocations/invoke-routes.ts'
import { invoke, type InvokeDeps } from '../invocations/invoke.ts'
import { requestVariables } from '../invocations/request-variables.ts'
import { checkSignature, readWebhookHead } from './webhook-signature.ts'
import { claimMessage, findSecret, deleteMessage, deleteOldMessages, messageState } from './webhook-messages.ts'

/** Interval at which a tenant's old messages are deleted while new ones come. */
const cleanupMilliseconds = 600_000

export function addWebhookRoute(app: FastifyInstance, deps: InvokeDeps): void {
  readBodiesAsBytes(app)
  const lastCleanups = new WeakMap<Tenant, number>()

  const deleteSomeMessages = (tenant: Tenant) => {
    if (deps.now() - (lastCleanups.get(tenant) ?? -Infinity) < cleanupMilliseconds) return
    lastCleanups.set(tenant, deps.now())
    deleteOldMessages(tenant).catch((cause: unknown) =>
      deps.onError(new Error(`${tenant.id}: Old webhook messages could not be deleted.`, { cause })),
    )
  }

  app.route<{ Params: { name: string } }>({
    method: 'POST',
    url: '/functions/v1/webhook/:name',
    config: { access: 'signed', makesResult: true },
    bodyLimit: maxEventBytes,
    // Checks the headers before the body is read and the database is queried.
    preParsing: async ({ headers }) => void readWebhookHead(headers, deps.now()),
    handler: async (request, reply) => {
      const {
        tenant,
        params: { name },
        url,
        headers,
        body: requestBody,
        log,
      } = request
      const input = Buffer.isBuffer(requestBody) ? requestBody : Buffer.alloc(0)
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
          headers: responseHeaders,
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
        return await reply.status(status).headers(responseHeaders).header('x-invocation-id', invocationId).send(body)
      } catch (error) {
        if (!(error instanceof ClaimTaken)) throw error
        if ((await messageState(tenant, found.functionId, head.id)) === 'done')
          return reply.status(200).send({ duplicate: true })
        throw new RuntimeError('CONFLICT', `The message "${head.id}" is being processed. Send it again later.`, {
          retryAfter: 1,
        })
      }
    },
  })
}
