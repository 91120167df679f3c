// Routes of /v1/webhooks: the endpoints that receive events, and the state of each message.
import { randomBytes } from 'node:crypto'
import { Type } from 'typebox'
import { ControlError } from '../platform/errors.ts'
import { operatorEventTypes } from './operator-event.ts'
import { webhookSecretPrefix } from './webhook-message.ts'
import { deliveryStates, type WebhookDelivery, type WebhookEndpoint } from './webhook.ts'
import type { Api } from '../http/api.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { NoBody, PageQuery, pageRequest, textPattern, writeContext, NoQuery } from '../http/parameters.ts'
import type { WebhookStore } from './store.ts'

const Maybe = Type.Union([Type.String(), Type.Null()])
const Id = Type.Object({ id: Type.String() })
const Url = Type.String({
  minLength: 1,
  maxLength: 2000,
  pattern: textPattern,
  description: 'http or https, without user or fragment',
})
const Description = Type.String({ maxLength: 200, pattern: textPattern })
const Types = Type.Array(Type.Enum([...operatorEventTypes]), {
  uniqueItems: true,
  maxItems: 100,
  description: 'Types of events to send; all when empty',
})

const WebhookBody = Type.Object({
  id: Type.String(),
  url: Type.String(),
  description: Type.String(),
  types: Type.Array(Type.String()),
  enabled: Type.Boolean(),
  disabled_reason: Type.Union([Type.Enum(['operator', 'gone']), Type.Null()], {
    description: '`gone`: the endpoint responded with 410',
  }),
  created_at: Type.String(),
})
const WebhookWithSecret = Type.Object({
  ...WebhookBody.properties,
  secret: Type.String({ description: 'Returned only here' }),
})

const DeliveryBody = Type.Object({
  id: Type.String(),
  event_id: Type.String({ description: '`webhook-id` of the message' }),
  type: Type.String(),
  event_at: Type.String(),
  data: Type.Unknown(),
  state: Type.Enum([...deliveryStates]),
  attempts: Type.Integer(),
  next_attempt_at: Maybe,
  last_attempt_at: Maybe,
  last_status: Type.Union([Type.Integer(), Type.Null()]),
  last_error: Maybe,
  created_at: Type.String(),
})

/** The dependencies of the routes of webhooks. */
export interface WebhookRoutesDeps extends ResponseDeps {
  webhooks: WebhookStore
  /** Returns the first address of the URL's host that webhooks may not be sent to. */
  forbiddenAddress(url: string): Promise<string | undefined>
  /** Returns the current time. */
  now: () => Date
}

/** Adds the routes of operators' webhooks and their deliveries. */
export function addWebhookRoutes(app: Api, deps: WebhookRoutesDeps): void {
  const tags = ['webhooks']

  app.post(
    '/v1/webhooks',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Register a webhook',
        tags,
        querystring: NoQuery,
        response: { 201: WebhookWithSecret },
        body: Type.Object(
          { url: Url, description: Type.Optional(Description), types: Type.Optional(Types) },
          { additionalProperties: false },
        ),
      },
    },
    async (request, reply) => {
      const { url, description = '', types = [] } = request.body
      const context = writeContext(request)
      reply.status(201)
      return respondOnce(deps, context, reply, async (record) => {
        const secret = newSecret()
        const endpoint = { url: await checkedUrl(deps, url), description, types, secret }
        const toBody = (made: WebhookEndpoint) => ({ ...present(made), secret })
        return toBody(await record((write) => deps.webhooks.create(endpoint, write), toBody))
      })
    },
  )

  app.get(
    '/v1/webhooks',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'List webhooks, oldest first',
        tags,
        querystring: NoQuery,
        response: { 200: Type.Object({ webhooks: Type.Array(WebhookBody) }) },
      },
    },
    async () => ({ webhooks: (await deps.webhooks.list()).map(present) }),
  )

  app.get(
    '/v1/webhooks/:id',
    {
      config: { scopes: ['admin', 'read'] },
      schema: { summary: 'One webhook', tags, params: Id, querystring: NoQuery, response: { 200: WebhookBody } },
    },
    async (request) => present(await deps.webhooks.get(request.params.id)),
  )

  app.patch(
    '/v1/webhooks/:id',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Change a webhook, or disable and enable it',
        tags,
        params: Id,
        querystring: NoQuery,
        response: { 200: WebhookBody },
        body: Type.Object(
          {
            url: Type.Optional(Url),
            description: Type.Optional(Description),
            types: Type.Optional(Types),
            enabled: Type.Optional(Type.Boolean()),
          },
          { additionalProperties: false },
        ),
      },
    },
    async (request) => {
      const { url, ...rest } = request.body
      const change = { ...rest, ...(url === undefined ? {} : { url: await checkedUrl(deps, url) }) }
      const { actor } = writeContext(request)
      return present(await deps.record(actor, (write) => deps.webhooks.change(request.params.id, change, write)))
    },
  )

  app.delete(
    '/v1/webhooks/:id',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Remove a webhook with its pending messages',
        tags,
        params: Id,
        querystring: NoQuery,
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      await deps.record(writeContext(request).actor, (write) => deps.webhooks.remove(request.params.id, write))
      return reply.status(204).send(null)
    },
  )

  app.post(
    '/v1/webhooks/:id/rotate',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: "Replace a webhook's secret",
        description: 'Messages are also signed with the former secret for another `overlap_seconds` (default 86400).',
        tags,
        params: Id,
        querystring: NoQuery,
        response: { 201: WebhookWithSecret },
        body: Type.Object(
          { overlap_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 30 * 86_400 })) },
          { additionalProperties: false },
        ),
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      reply.status(201)
      return respondOnce(deps, context, reply, async (record) => {
        const secret = newSecret()
        const formerUntil = new Date(deps.now().getTime() + (request.body.overlap_seconds ?? 86_400) * 1000)
        const toBody = (changed: WebhookEndpoint) => ({ ...present(changed), secret })
        const { id } = request.params
        return toBody(await record((write) => deps.webhooks.rotate(id, secret, formerUntil, write), toBody))
      })
    },
  )

  app.get(
    '/v1/webhooks/:id/deliveries',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'Messages to a webhook, oldest first; `state=dead` lists those that were given up',
        tags,
        params: Id,
        querystring: Type.Object(
          { ...PageQuery, state: Type.Optional(Type.Enum([...deliveryStates])) },
          { additionalProperties: false },
        ),
        response: { 200: Type.Object({ deliveries: Type.Array(DeliveryBody), next_cursor: Maybe }) },
      },
    },
    async (request) => {
      const page = await deps.webhooks.deliveries(request.params.id, request.query.state, pageRequest(request.query))
      return { deliveries: page.items.map(presentDelivery), next_cursor: page.nextCursor ?? null }
    },
  )

  app.post(
    '/v1/webhooks/:id/replay',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Send all messages that were given up again',
        tags,
        params: Id,
        querystring: NoQuery,
        body: NoBody,
        response: { 202: Type.Object({ replayed: Type.Integer() }) },
      },
    },
    async (request, reply) => {
      const { actor } = writeContext(request)
      const replayed = await deps.record(actor, (write) => deps.webhooks.replayDead(request.params.id, write))
      return reply.status(202).send({ replayed })
    },
  )

  app.post(
    '/v1/webhooks/:id/deliveries/:delivery/replay',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Send one message again',
        tags,
        params: Type.Object({ id: Type.String(), delivery: Type.String() }),
        querystring: NoQuery,
        body: NoBody,
        response: { 202: DeliveryBody },
      },
    },
    async (request, reply) => {
      const { id, delivery } = request.params
      const { actor } = writeContext(request)
      const replayed = await deps.record(actor, (write) => deps.webhooks.replay(id, delivery, write))
      return reply.status(202).send(presentDelivery(replayed))
    },
  )
}

function newSecret(): string {
  return `${webhookSecretPrefix}${randomBytes(32).toString('base64')}`
}

/**
 * Checks an endpoint's URL.
 * @throws ControlError INVALID_FIELD, FORBIDDEN_ADDRESS
 */
async function checkedUrl(deps: Pick<WebhookRoutesDeps, 'forbiddenAddress'>, text: string): Promise<string> {
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new ControlError('INVALID_FIELD', 'Field "url" must be an http or https URL.')
  if (url.username !== '' || url.password !== '' || url.hash !== '')
    throw new ControlError('INVALID_FIELD', 'Field "url" must have no user, password or fragment.')
  const forbidden = await deps.forbiddenAddress(url.href)
  if (forbidden !== undefined) {
    const means = url.hostname.includes(forbidden) ? '' : `, which resolves to ${forbidden}`
    throw new ControlError(
      'FORBIDDEN_ADDRESS',
      `Field "url": the host "${url.hostname.slice(0, 100)}"${means}, is not a public address. ` +
        'Allowed: public addresses, and the networks in TENANTRY_WEBHOOKS_MAY_REACH.',
    )
  }
  return url.href
}

function present({ id, url, description, types, disabled, createdAt }: WebhookEndpoint) {
  return {
    id,
    url,
    description,
    types,
    enabled: disabled === undefined,
    disabled_reason: disabled ?? null,
    created_at: createdAt.toISOString(),
  }
}

function presentDelivery({ id, event, state, attempts, nextAt, last, createdAt }: WebhookDelivery) {
  return {
    id,
    event_id: event.id,
    type: event.type,
    event_at: event.at.toISOString(),
    data: event.data,
    state,
    attempts,
    next_attempt_at: nextAt?.toISOString() ?? null,
    last_attempt_at: last?.at.toISOString() ?? null,
    last_status: last?.status ?? null,
    last_error: last?.error ?? null,
    created_at: createdAt.toISOString(),
  }
}
