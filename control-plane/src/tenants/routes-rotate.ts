// POST /v1/tenants/{id}/keys/rotate, /database-password/rotate and /service-passwords/rotate: new secrets. Those of clients are
// returned once.
import { Type } from 'typebox'
import { newApiKey, newSecret } from '../keys/index.ts'
import type { Api } from '../http/api.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { NoBody, NoQuery, waitSeconds, writeContext } from '../http/parameters.ts'
import { rotatedKinds, type RotatedKind } from './store-secrets.ts'
import type { RegionConfig } from '../regions/index.ts'
import { foundTenant, regionOf } from './lookup.ts'
import { databaseUrl, readOnlyDatabaseUrl, KeysBody, OperationBody, toOperationBody } from './tenant-body.ts'
import type { TenantWrite } from './tenant-write.ts'
import { waitUntilSettled, type WaitDeps } from './wait.ts'

const Id = Type.Object({ id: Type.String() })

const maxOverlapSeconds = 30 * 86_400

const newSecretOf: Record<RotatedKind, () => string> = {
  publishable_key: () => newApiKey('publishable'),
  secret_key: () => newApiKey('secret'),
  jwt_secret: newSecret,
  signing_secret: newSecret,
}
const defaultKinds: readonly RotatedKind[] = ['publishable_key', 'secret_key', 'jwt_secret']

/** Dependencies of the routes that rotate a tenant's secrets. */
export interface RotateDeps extends ResponseDeps, WaitDeps {
  regions: readonly RegionConfig[]
  /** The current time. */
  now: () => Date
}

/** Adds the routes that rotate a tenant's keys, secrets and its database password (specification, section 4.4). */
export function addRotateTenant(app: Api, deps: RotateDeps): void {
  app.post(
    '/v1/tenants/:id/keys/rotate',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Create new API keys, a new token secret or a new secret of signed URLs for a tenant',
        description:
          'The old ones stay valid for `overlap_seconds` (default 3600). `kinds` selects some of them; the default is all ' +
          'but the secret of signed URLs. The keys are returned only once. No response contains the secret of signed URLs.',
        tags: ['tenants'],
        params: Id,
        querystring: NoQuery,
        body: Type.Object(
          {
            overlap_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: maxOverlapSeconds })),
            kinds: Type.Optional(Type.Array(Type.Enum([...rotatedKinds]), { minItems: 1, uniqueItems: true })),
          },
          { additionalProperties: false },
        ),
        response: {
          200: Type.Object({
            tenant_id: Type.String(),
            keys: Type.Partial(KeysBody),
            old_keys_expire_at: Type.String(),
            operation: OperationBody,
          }),
        },
      },
    },
    async (request, reply) => {
      const wait = waitSeconds(request)
      const context = writeContext(request)
      const { id } = await foundTenant(deps, request.params.id)
      return respondOnce(deps, context, reply, async (record) => {
        const { kinds = defaultKinds } = request.body
        const secrets = Object.fromEntries(kinds.map((kind) => [kind, newSecretOf[kind]()]))
        const { signing_secret: _signing, ...keys } = secrets as Partial<Record<RotatedKind, string>>
        const expireAt = new Date(deps.now().getTime() + (request.body.overlap_seconds ?? 3600) * 1000)
        const response = ({ operation }: TenantWrite) => ({
          tenant_id: id,
          keys,
          old_keys_expire_at: expireAt.toISOString(),
          operation: toOperationBody(operation),
        })
        const rotated = await record((write) => deps.tenants.rotateKeys(id, secrets, expireAt, write), response)
        return response(await waitUntilSettled(deps, rotated, wait, request))
      })
    },
  )

  app.post(
    '/v1/tenants/:id/database-password/rotate',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Create a new password for `database_url`',
        description:
          'When the operation has succeeded, only the new password is valid, and all SQL sessions of the login have ended. ' +
          'The password is returned only once.',
        tags: ['tenants'],
        params: Id,
        querystring: NoQuery,
        body: NoBody,
        response: {
          200: Type.Object({
            tenant_id: Type.String(),
            database_url: Type.String(),
            read_only_database_url: Type.Union([Type.String(), Type.Null()], { description: 'null without a cluster' }),
            operation: OperationBody,
          }),
        },
      },
    },
    async (request, reply) => {
      const wait = waitSeconds(request)
      const context = writeContext(request)
      const { id } = await foundTenant(deps, request.params.id)
      return respondOnce(deps, context, reply, async (record) => {
        const password = newSecret()
        const response = ({ tenant, operation }: TenantWrite) => ({
          tenant_id: id,
          database_url: databaseUrl(tenant, regionOf(deps, tenant), password),
          read_only_database_url: readOnlyDatabaseUrl(tenant, regionOf(deps, tenant), password),
          operation: toOperationBody(operation),
        })
        const rotated = await record((write) => deps.tenants.rotateDatabasePassword(id, password, write), response)
        return response(await waitUntilSettled(deps, rotated, wait, request))
      })
    },
  )

  app.post(
    '/v1/tenants/:id/service-passwords/rotate',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: "Create new passwords for the services' own logins in a tenant's home",
        description:
          "The runtime and schema reloads log in with them; no response contains them. No request fails, and the tenant's " +
          'keys and `database_url` stay as they are. When the operation has succeeded, the old passwords are dead.',
        tags: ['tenants'],
        params: Id,
        querystring: NoQuery,
        body: NoBody,
        response: { 200: Type.Object({ tenant_id: Type.String(), operation: OperationBody }) },
      },
    },
    async (request, reply) => {
      const wait = waitSeconds(request)
      const context = writeContext(request)
      const { id } = await foundTenant(deps, request.params.id)
      return respondOnce(deps, context, reply, async (record) => {
        const passwords = { runtime: newSecret(), ddl: newSecret() }
        const response = ({ operation }: TenantWrite) => ({ tenant_id: id, operation: toOperationBody(operation) })
        const rotated = await record((write) => deps.tenants.rotateServicePasswords(id, passwords, write), response)
        return response(await waitUntilSettled(deps, rotated, wait, request))
      })
    },
  )
}
