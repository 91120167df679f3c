// Routes of /v1/blocked-addresses: the client addresses and networks that the gateways do not serve.
import { networkText } from '@tenantry/contract'
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import type { WriteDeps } from '../http/idempotency.ts'
import { NoQuery, PageQuery, pageRequest, textPattern, writeContext } from '../http/parameters.ts'
import { checkExtent, networksAround, readAddress } from './read-address.ts'
import type { BlockedAddressStore, BlockedEntry } from './store.ts'

const Maybe = Type.Union([Type.String(), Type.Null()])
const Params = Type.Object({
  address: Type.String({
    maxLength: 100,
    description: 'IPv4 or IPv6 address, or a network with `%2F` before its length, such as 203.0.113.0%2F24',
  }),
})
const EntryBody = Type.Object({
  address: Type.String({ description: 'In canonical form, without the bits behind the prefix' }),
  reason: Type.String(),
  created_at: Type.String(),
  expires_at: Type.Union([Type.String(), Type.Null()], { description: 'null: until it is removed' }),
})

const maxExpirySeconds = 366 * 86_400

/** The dependencies of the routes of blocked addresses. */
export interface BlockedAddressRoutesDeps extends WriteDeps {
  blockedAddresses: BlockedAddressStore
}

/** Adds the routes that block and unblock client addresses, and list the entries. */
export function addBlockedAddressRoutes(app: Api, deps: BlockedAddressRoutesDeps): void {
  const tags = ['blocked addresses']
  const { blockedAddresses } = deps

  app.get(
    '/v1/blocked-addresses',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'List blocked addresses, oldest first',
        tags,
        querystring: Type.Object(
          {
            ...PageQuery,
            containing: Type.Optional(
              Type.String({ maxLength: 100, description: 'Address that all listed entries contain' }),
            ),
          },
          { additionalProperties: false },
        ),
        response: { 200: Type.Object({ blocked_addresses: Type.Array(EntryBody), next_cursor: Maybe }) },
      },
    },
    async ({ query }) => {
      const among =
        query.containing === undefined ? undefined : networksAround(readAddress(query.containing, 'address'))
      const page = await blockedAddresses.list(among, pageRequest(query))
      return { blocked_addresses: page.items.map(present), next_cursor: page.nextCursor ?? null }
    },
  )

  app.get(
    '/v1/blocked-addresses/:address',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'One blocked address',
        tags,
        params: Params,
        querystring: NoQuery,
        response: { 200: EntryBody },
      },
    },
    async ({ params }) => present(await blockedAddresses.get(canonical(params.address))),
  )

  app.put(
    '/v1/blocked-addresses/:address',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Block an address or network',
        description: 'Replaces the entry of the same address or network. Repeated requests have the same effect.',
        tags,
        params: Params,
        querystring: NoQuery,
        body: Type.Object(
          {
            reason: Type.String({ minLength: 1, maxLength: 200, pattern: textPattern }),
            expires_in_seconds: Type.Optional(
              Type.Integer({ minimum: 1, maximum: maxExpirySeconds, description: 'Without it, the entry has no end' }),
            ),
            confirmed: Type.Optional(
              Type.Boolean({ description: 'true is necessary for loopback addresses and very large networks' }),
            ),
          },
          { additionalProperties: false },
        ),
        response: { 200: EntryBody },
      },
    },
    async (request) => {
      const { reason, expires_in_seconds: expiresInSeconds, confirmed = false } = request.body
      const network = readAddress(request.params.address, 'address')
      if (!confirmed) checkExtent(network)
      const entry = { address: networkText(network), reason, expiresInSeconds }
      return present(await deps.record(writeContext(request).actor, (write) => blockedAddresses.put(entry, write)))
    },
  )

  app.delete(
    '/v1/blocked-addresses/:address',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Unblock an address or network',
        description: 'Other entries that contain it remain.',
        tags,
        params: Params,
        querystring: NoQuery,
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const address = canonical(request.params.address)
      await deps.record(writeContext(request).actor, (write) => blockedAddresses.remove(address, write))
      return reply.status(204).send(null)
    },
  )
}

function canonical(text: string): string {
  return networkText(readAddress(text, 'address'))
}

function present({ address, reason, createdAt, expiresAt }: BlockedEntry) {
  return {
    address,
    reason,
    created_at: createdAt.toISOString(),
    expires_at: expiresAt?.toISOString() ?? null,
  }
}
