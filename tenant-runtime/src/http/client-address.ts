// The address of a request's client, as the gateway states it.
import type { IncomingHttpHeaders } from 'node:http'

/** Returns the client's address; empty without one. */
export function clientAddress(headers: IncomingHttpHeaders): string {
  const forwarded = headers['x-forwarded-for']
  return typeof forwarded === 'string' ? forwarded : ''
}
