// Broadcasts by HTTP: one message, or a batch.
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { RuntimeError } from '../errors.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Authenticator } from '../tenancy/authenticate.ts'
import { authenticateCaller } from './channels/callers.ts'
import { limitsOf } from './channels/limits.ts'
import type { TenantHub } from './channels/tenant-hub.ts'
import { isWritable, NoMessagesTableError, RejectedRowError } from './messages/topic-rights.ts'
import { maxFieldBytes } from './protocol/encode.ts'
import { messageLength } from './messages/message-length.ts'
import { storeMessage } from './messages/stored-messages.ts'
import { defaultTtl, jsonBroadcast, type SentBroadcast } from './protocol/frame.ts'
import { topicOf, topicPrefix } from './protocol/topic-name.ts'

export interface BroadcastRoutesOptions {
  authenticator: Authenticator
  /** Returns the tenant's hub, which takes part in the limits even if no client is connected. */
  hubOf: (tenant: Tenant) => TenantHub
  /** Sends a broadcast to all channels of a topic. Returns false when too many messages wait. */
  send: (tenant: Tenant, topic: string, isPrivate: boolean, broadcast: SentBroadcast) => boolean
}

const notAllowed = 'The policies do not allow this user to send to the topic.'
const maxMessages = 100
const maxBodyBytes = 4 * 1024 * 1024

const Message = Type.Object({
  topic: Type.String({ minLength: 1 }),
  event: Type.String({ minLength: 1 }),
  payload: Type.Unknown(),
  private: Type.Optional(Type.Boolean()),
})
type Message = Static<typeof Message>
const Batch = Type.Object({ messages: Type.Array(Message, { minItems: 1, maxItems: maxMessages }) })

interface PathOfOne {
  topic: string
  event: string
}

/** Adds the routes. Both respond 202: messages have been sent to those who are connected. */
export function addBroadcastRoutes(app: FastifyInstance, options: BroadcastRoutesOptions): void {
  const config = { access: 'public' as const }
  app.register(async (scope) => {
    scope.addContentTypeParser('application/octet-stream', async (request: FastifyRequest, payload: Readable) => {
      const { bytes } = await scope.bodies.read(request, payload)
      return bytes
    })
    scope.post('/realtime/v1/api/broadcast', { config, bodyLimit: maxBodyBytes }, async (request, reply) => {
      await requireKey(request, options)
      if (!Value.Check(Batch, request.body)) throw invalidBody(request.body)
      const messages = request.body.messages.map((message) => ({
        message,
        broadcast: jsonBroadcast(message.event, message.payload),
      }))
      for (const { message, broadcast } of messages) check(request.tenant, message, broadcast)
      // All or none of them, so that a client can send the batch again.
      takeMessages(options.hubOf(request.tenant), messages.length)
      const allowed = []
      for (const each of messages) if (await isAllowed(request, each.message)) allowed.push(each)
      for (const { message, broadcast } of allowed)
        send(options, request.tenant, message.topic, message.private ?? false, broadcast)
      options.hubOf(request.tenant).writeCounts()
      return reply.status(202).send()
    })
    scope.post<{ Params: PathOfOne; Querystring: Record<string, string> }>(
      '/realtime/v1/api/broadcast/:topic/events/:event',
      { config, bodyLimit: maxBodyBytes },
      async (request, reply) => {
        await requireKey(request, options)
        const { tenant, rls, params, body } = request
        const seconds = storedFor(request.query)
        const sent = Buffer.isBuffer(body)
          ? { event: params.event, content: { kind: 'bytes' as const, bytes: body }, length: body.length }
          : jsonBroadcast(params.event, body)
        const broadcast = { ...sent, storedFor: seconds }
        check(tenant, params, broadcast)
        takeMessages(options.hubOf(tenant), 1)
        const isPrivate = request.query['private'] === 'true'
        // The policies decide about the row of a stored message.
        if (seconds !== undefined) {
          await store(tenant, rls, params.topic, isPrivate, broadcast, seconds)
          options.hubOf(tenant).count(1)
        } else if (isPrivate && !(await mayWrite(tenant, rls, params.topic)))
          throw new RuntimeError('ROW_DENIED', notAllowed)
        else send(options, tenant, params.topic, isPrivate, broadcast)
        options.hubOf(tenant).writeCounts()
        return reply.status(202).send()
      },
    )
  })
}

/** Clients without a valid key cannot send. A token in `Authorization` was verified before. */
async function requireKey(
  { tenant, headers }: FastifyRequest,
  { authenticator }: BroadcastRoutesOptions,
): Promise<void> {
  if (headers.authorization !== undefined) return
  const { apikey } = headers
  if (typeof apikey !== 'string' || apikey === '')
    throw new RuntimeError('UNAUTHORIZED', 'A broadcast requires a key. Send the header "apikey".')
  await authenticateCaller(authenticator, tenant, apikey)
}

function invalidBody(body: unknown): RuntimeError {
  const error = Value.Errors(Batch, body)[0]
  return new RuntimeError(
    'BAD_REQUEST',
    `The body must be {"messages": [{"topic", "event", "payload"}, …]}: ${error?.instancePath || 'it'} ${error?.message ?? ''}.`,
  )
}

function check(tenant: Tenant, { topic, event }: PathOfOne, broadcast: SentBroadcast): void {
  const { payloadBytes } = limitsOf(tenant.limits)
  if (Buffer.byteLength(topicOf(topic)) > maxFieldBytes || Buffer.byteLength(event) > maxFieldBytes)
    throw new RuntimeError(
      'BAD_REQUEST',
      `A topic has at most ${maxFieldBytes - topicPrefix.length} bytes, an event ${maxFieldBytes}.`,
    )
  if (messageLength(broadcast) > payloadBytes)
    throw new RuntimeError('BODY_TOO_LARGE', `The plan allows payloads of ${payloadBytes} bytes.`)
}

function takeMessages(hub: TenantHub, count: number): void {
  if (!hub.rates.messages.take(count))
    throw new RuntimeError('TOO_MANY_MESSAGES', `The plan allows ${hub.limits.messages} messages per second.`, {
      retryAfter: 1,
    })
}

/** Whether a message of a batch is sent. One that the policies do not allow, or for which they fail, is dropped. */
async function isAllowed({ tenant, rls }: FastifyRequest, { topic, private: isPrivate }: Message): Promise<boolean> {
  if (isPrivate !== true) return true
  try {
    return await mayWrite(tenant, rls, topic)
  } catch (error) {
    if (error instanceof RuntimeError && error.cause instanceof RejectedRowError) return false
    throw error
  }
}

function mayWrite(tenant: Tenant, context: RlsContext, topic: string): Promise<boolean> {
  return withTable(() => isWritable(tenant, context, topic, 'broadcast'))
}

/** Runs what needs the tenant's table. @throws RuntimeError BAD_REQUEST without it, and when it rejects the message */
async function withTable<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (cause) {
    if (cause instanceof NoMessagesTableError) throw new RuntimeError('BAD_REQUEST', cause.message, { cause })
    if (cause instanceof RejectedRowError)
      throw new RuntimeError('BAD_REQUEST', `The policies failed, or the message cannot be stored: ${cause.message}.`, {
        cause,
      })
    throw cause
  }
}

/** Returns the seconds for which a message is stored; undefined for one that is not. */
function storedFor(query: Readonly<Record<string, string>>): number | undefined {
  const ttl = query['persist[ttl]']
  if (ttl === undefined) return query['persist'] === 'true' ? defaultTtl : undefined
  if (!/^\d{1,9}$/.test(ttl))
    throw new RuntimeError('BAD_REQUEST', 'The parameter "persist[ttl]" must be a number of seconds.')
  return Number(ttl)
}

async function store(
  tenant: Tenant,
  context: RlsContext,
  topic: string,
  isPrivate: boolean,
  { event, content }: SentBroadcast,
  seconds: number,
): Promise<void> {
  if (!isPrivate || content.kind !== 'json')
    throw new RuntimeError('BAD_REQUEST', 'Only JSON on private topics can be stored.')
  const { text } = content
  if (!(await withTable(() => storeMessage(tenant, context, topic, event, text, seconds))))
    throw new RuntimeError('ROW_DENIED', notAllowed)
}

function send(
  { hubOf, send }: BroadcastRoutesOptions,
  tenant: Tenant,
  topic: string,
  isPrivate: boolean,
  broadcast: SentBroadcast,
): void {
  if (!send(tenant, topicOf(topic), isPrivate, broadcast))
    throw new RuntimeError('TOO_MANY_MESSAGES', 'Too many messages wait to be sent.', { retryAfter: 1 })
  hubOf(tenant).count(1)
}
