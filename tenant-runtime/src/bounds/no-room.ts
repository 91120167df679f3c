// The error for a request for which a budget has no room.
import { RuntimeError } from '../errors.ts'
import type { Share } from './byte-budget.ts'

const holders: Record<string, string> = {
  tenant: 'this tenant',
  address: 'anonymous requests from this address',
  anonymous: 'anonymous requests',
  total: 'all tenants',
}

/**
 * Returns the error for a request for which a share has no room: 429 if the sender has used it up, otherwise 503.
 * @param what what is in memory, such as `request bodies`
 */
export function noRoom(what: string, { name, maxBytes }: Share): RuntimeError {
  const isOwn = name === 'tenant' || name === 'address'
  return new RuntimeError(
    isOwn ? 'TOO_MANY_BYTES' : 'SERVICE_BUSY',
    `The ${what} in progress of ${holders[name] ?? name} use all of their ${Math.floor(maxBytes)} bytes of memory. ` +
      'Retry the request, with fewer at the same time.',
    { retryAfter: 1 },
  )
}
