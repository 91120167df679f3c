// Routes of platform keys: create, list, revoke, and rotate with two valid keys.
import { Type } from 'typebox'
import { limitOf } from './check-limit.ts'
import { newPlatformKey } from './key-text.ts'
import { rightsOf, type KeyRights, type PlatformKey } from './platform-key.ts'
import { maxAddresses, readRights } from './read-rights.ts'
import type { RegionConfig } from '../regions/index.ts'
import { ControlError } from '../platform/errors.ts'
import type { Api } from '../http/api.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { isUuid } from '../platform/uuid.ts'
import { textPattern, writeContext, NoQuery } from '../http/parameters.ts'
import type { PlatformKeyStore } from './store.ts'

const Maybe = Type.Union([Type.String(), Type.Null()])
const KeyBody = Type.Object({
  id: Type.String(),
  name: Type.String(),
  prefix: Type.String(),
  scope: Type.Enum(['admin', 'read', 'billing']),
  tenant_id: Type.Union([Type.String(), Type.Null()], { description: 'The only tenant that the key may use' }),
  region: Type.Union([Type.String(), Type.Null()], { description: 'The only region that the key may use' }),
  addresses: Type.Array(Type.String(), { description: 'Addresses and networks of its callers; empty: all' }),
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
  regions: readonly Pick<RegionConfig, 'id'>[]
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
    async (request) => ({ keys: (await deps.keys.list(limitOf(request))).map(present) }),
  )

  app.post(
    '/v1/keys',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Create a platform key',
        description:
          'What the request leaves out is as in the key of the request, which the new key may not exceed. ' +
          'A key is limited to a tenant or a region, not to both.',
        tags: ['keys'],
        querystring: NoQuery,
        body: Type.Object(
          {
            name: Type.String({ minLength: 1, maxLength: 100, pattern: textPattern }),
            scope: Type.Enum(['admin', 'read', 'billing']),
            tenant_id: Type.Optional(Type.String({ minLength: 1, maxLength: 100, pattern: textPattern })),
            region: Type.Optional(Type.String({ minLength: 1, maxLength: 100, pattern: textPattern })),
            addresses: Type.Optional(
              Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
                minItems: 1,
                maxItems: maxAddresses,
                description: 'IPv4 and IPv6 addresses and networks from which the key may be used',
              }),
            ),
            expires_in_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 3_660 * 86_400 })),
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
        const creator = creatorOf(request)
        const rights = readRights(request.body, creator, deps)
        const toBody = (key: PlatformKey) => ({ ...present(key), key: text })
        return toBody(await record((write) => deps.keys.create({ name, scope, rights, creator }, text, write), toBody))
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
        await deps.record(writeContext(request).actor, (write) =>
          deps.keys.revoke(keyId(request.params.id), limitOf(request), write),
        ),
      ),
  )

  app.post(
    '/v1/keys/:id/rotate',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Replace a platform key',
        description:
          'The new key has the same name, scope, limits and end. ' +
          'The old one stays valid for another `overlap_seconds` (default 86400), or until its own end.',
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
        const overlapEnd = new Date(deps.now().getTime() + (request.body.overlap_seconds ?? 86_400) * 1000)
        const toBody = (key: PlatformKey) => ({ ...present(key), key: text })
        const id = keyId(request.params.id)
        const rotated = { id, overlapEnd, creator: creatorOf(request) }
        return toBody(await record((write) => deps.keys.rotate(rotated, text, write), toBody))
      })
    },
  )
}

function creatorOf({ platformKey }: { platformKey: PlatformKey | undefined }): KeyRights {
  if (platformKey === undefined) throw new Error('The request has no platform key.')
  return rightsOf(platformKey)
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
    tenant_id: key.limit.tenantId ?? null,
    region: key.limit.region ?? null,
    addresses: [...key.addresses],
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    replaced_by: key.replacedBy ?? null,
  }
}
