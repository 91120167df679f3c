// Routes of platform keys: create, list, revoke, and rotate with two valid keys.
import { Type } from 'typebox'
import { newPlatformKey } from './key-text.ts'
import type { PlatformKey } from './platform-key.ts'
import { ControlError } from '../platform/errors.ts'
import type { Api } from '../http/api.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { isUuid } from '../http/uuid.ts'
import { textPattern, writeContext, NoQuery } from '../http/parameters.ts'
import type { PlatformKeyStore } from './store.ts'

const Maybe = Type.Union([Type.String(), Type.Null()])
const KeyBody = Type.Object({
  id: Type.String(),
  name: Type.String(),
  prefix: Type.String(),
  scope: Type.Enum(['admin', 'read', 'billing']),
  created_at: Type.String(),
  expires_at: Maybe,
  revoked_at: Maybe,
  replaced_by: Maybe,
})
const KeyWithText = Type.Object({ ...KeyBody.properties, key: Type.String({ description: 'Returned only here' }) })
const Id = Type.Object({ id: Type.String() })

/** The dependencies of the routes of platform keys. */
export interface KeyRoutesDeps extends ResponseDeps {
  keys: PlatformKeyStore
  /** Returns the current time. */
  now: () => Date
}

/** Adds the routes of platform keys: list, create, rotate and revoke. */
export function addKeyRoutes(app: Api, deps: KeyRoutesDeps): void {
  app.get(
    '/v1/keys',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'List platform keys',
        tags: ['keys'],
        querystring: NoQuery,
        response: { 200: Type.Object({ keys: Type.Array(KeyBody) }) },
      },
    },
    async () => ({ keys: (await deps.keys.list()).map(present) }),
  )

  app.post(
    '/v1/keys',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Create a platform key',
        tags: ['keys'],
        querystring: NoQuery,
        body: Type.Object(
          {
            name: Type.String({ minLength: 1, maxLength: 100, pattern: textPattern }),
            scope: Type.Enum(['admin', 'read', 'billing']),
          },
          { additionalProperties: false },
        ),
        response: { 201: KeyWithText },
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      reply.status(201)
      return respondOnce(deps, context, reply, async (record) => {
        const text = newPlatformKey()
        const { name, scope } = request.body
        const toBody = (key: PlatformKey) => ({ ...present(key), key: text })
        return toBody(await record((write) => deps.keys.create(name, scope, text, write), toBody))
      })
    },
  )

  app.delete(
    '/v1/keys/:id',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Revoke a platform key at once',
        tags: ['keys'],
        params: Id,
        querystring: NoQuery,
        response: { 200: KeyBody },
      },
    },
    async (request) =>
      present(
        await deps.record(writeContext(request).actor, (write) => deps.keys.revoke(keyId(request.params.id), write)),
      ),
  )

  app.post(
    '/v1/keys/:id/rotate',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Replace a platform key',
        description: 'The old key stays valid for another `overlap_seconds` (default 86400).',
        tags: ['keys'],
        params: Id,
        querystring: NoQuery,
        body: Type.Object(
          { overlap_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 30 * 86_400 })) },
          { additionalProperties: false },
        ),
        response: { 201: KeyWithText },
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      reply.status(201)
      return respondOnce(deps, context, reply, async (record) => {
        const text = newPlatformKey()
        const expireAt = new Date(deps.now().getTime() + (request.body.overlap_seconds ?? 86_400) * 1000)
        const toBody = (key: PlatformKey) => ({ ...present(key), key: text })
        const id = keyId(request.params.id)
        return toBody(await record((write) => deps.keys.rotate(id, text, expireAt, write), toBody))
      })
    },
  )
}

function keyId(id: string): string {
  if (!isUuid(id)) throw new ControlError('KEY_NOT_FOUND', 'There is no such platform key.')
  return id
}

function present(key: PlatformKey) {
  return {
    id: key.id,
    name: key.name,
    prefix: key.prefix,
    scope: key.scope,
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    replaced_by: key.replacedBy ?? null,
  }
}
