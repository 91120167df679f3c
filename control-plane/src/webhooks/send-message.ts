// Makes one attempt to deliver a message. A name is resolved once, all of its addresses are checked, and the connection
// goes to one of them. Redirects are not followed, and only the status of the response is read.
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import { unlessAborted } from '../platform/unless-aborted.ts'
import type { AttemptResult } from './delivery-plan.ts'
import { targetOf, type TargetDeps } from './webhook-target.ts'

interface SendDeps extends TargetDeps {
  timeoutMilliseconds: number
}

export type Send = (
  url: string,
  body: string,
  headers: Record<string, string>,
  signal: AbortSignal,
) => Promise<AttemptResult>

const maxErrorLength = 200

/** Creates the function that sends messages. It never throws: errors are in its result. */
export function createSend({ timeoutMilliseconds, ...deps }: SendDeps): Send {
  return async (url, body, headers, signal) => {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMilliseconds)])
    try {
      const parsed = new URL(url)
      const target = await unlessAborted(targetOf(parsed, deps), deadline)
      if (target === undefined) return { status: undefined, error: 'The host name has no address.' }
      if ('forbidden' in target)
        return { status: undefined, error: 'The host has an address in a network that webhooks may not be sent to.' }
      const status = await post(parsed, target.address, body, headers, deadline)
      const isDelivered = status >= 200 && status < 300
      return { status, error: isDelivered ? undefined : `The endpoint responded with ${status}.` }
    } catch (error) {
      if (deadline.aborted && !signal.aborted)
        return { status: undefined, error: `The endpoint did not respond within ${timeoutMilliseconds / 1000} s.` }
      return {
        status: undefined,
        error: (error instanceof Error ? error.message : 'The connection failed.').slice(0, maxErrorLength),
      }
    }
  }
}

function post(
  target: URL,
  address: string,
  body: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const family = isIP(address)
    const send = target.protocol === 'https:' ? httpsRequest : httpRequest
    const request = send(target, {
      method: 'POST',
      agent: false,
      signal,
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
      // The connection goes to the checked address, even if the name has changed since.
      lookup: (_hostname, options, done) =>
        options.all === true ? done(null, [{ address, family }]) : done(null, address, family),
    })
    request.once('response', (response) => {
      resolve(response.statusCode ?? 0)
      response.destroy()
    })
    request.once('error', reject)
    request.end(body)
  })
}
