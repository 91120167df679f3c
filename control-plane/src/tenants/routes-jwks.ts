// GET and PUT /v1/tenants/{id}/jwks: public keys that verify tokens of the tenant's users.
import { PublicKey } from '@tenantry/contract'
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import type { WriteDeps } from '../http/idempotency.ts'
import { NoQuery, waitSeconds, writeContext } from '../http/parameters.ts'
import { foundTenant } from './lookup.ts'
import { maxPublicKeys, readJwks } from './read-jwks.ts'
import { OperationBody, toOperationBody } from './tenant-body.ts'
import { waitUntilSettled, type WaitDeps } from './wait.ts'

const Id = Type.Object({ id: Type.String() })
const Keys = Type.Object({ tenant_id: Type.String(), keys: Type.Array(PublicKey) })

/** Dependencies of the routes of a tenant's public keys. */
export interface JwksDeps extends WriteDeps, WaitDeps {}

/** Adds the routes of a tenant's public keys. */
export function addJwksRoutes(app: Api, deps: JwksDeps): void {
  app.get(
    '/v1/tenants/:id/jwks',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: "Return the public keys of a tenant's tokens",
        tags: ['tenants'],
        params: Id,
        querystring: NoQuery,
        response: { 200: Keys },
      },
    },
    async (request) => {
      const { id } = await foundTenant(deps, request.params.id)
      return { tenant_id: id, keys: await deps.tenants.publicKeys(id) }
    },
  )

  app.put(
    '/v1/tenants/:id/jwks',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: "Replace the public keys of a tenant's tokens",
        description:
          'A JWKS (RFC 7517) of RSA (RS256), P-256 (ES256) and Ed25519 (EdDSA) keys. An empty list removes all.',
        tags: ['tenants'],
        params: Id,
        querystring: NoQuery,
        body: Type.Object(
          {
            keys: Type.Array(Type.Record(Type.String(), Type.Unknown()), { maxItems: maxPublicKeys }),
          },
          { additionalProperties: false },
        ),
        response: { 200: Type.Object({ ...Keys.properties, operation: OperationBody }) },
      },
    },
    async (request) => {
      const wait = waitSeconds(request)
      const { actor } = writeContext(request)
      const { id } = await foundTenant(deps, request.params.id)
      const keys = readJwks(request.body.keys)
      const write = await deps.record(actor, (recorded) => deps.tenants.setPublicKeys(id, keys, recorded))
      const { operation } = await waitUntilSettled(deps, write, wait, request)
      return { tenant_id: id, keys, operation: toOperationBody(operation) }
    },
  )
}
