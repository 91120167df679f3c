// One attempt to deliver a message. A name is resolved once, all of its addresses are looked at, and the connection goes to one of
// them; redirects are not followed, and of the answer nothing but its status is read.
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
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

/** Never throws: what went wrong is the result. */
export function createSend({ timeoutMilliseconds, ...deps }: SendDeps): Send {
  return async (url, body, headers, signal) => {
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(timeoutMilliseconds)])
    try {
      const parsed = new URL(url)
      const target = await before(inTime, targetOf(parsed, deps))
      if (target === undefined) return { status: undefined, error: 'the name has no address' }
      if ('forbidden' in target)
        return { status: undefined, error: 'the host has an address of a network that messages may not go to' }
      const status = await post(parsed, target.address, body, headers, inTime)
      const isTaken = status >= 200 && status < 300
      return { status, error: isTaken ? undefined : `it answered ${status}` }
    } catch (error) {
      if (inTime.aborted && !signal.aborted)
        return { status: undefined, error: `there was no answer within ${timeoutMilliseconds / 1000} s` }
      return {
        status: undefined,
        error: (error instanceof Error ? error.message : 'the connection failed').slice(0, maxErrorLength),
      }
    }
  }
}

async function before<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const over = Promise.withResolvers<never>()
  const abort = () => over.reject(new Error('given up'))
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work, over.promise])
  } finally {
    signal.removeEventListener('abort', abort)
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
      // Connects to what was looked at, whatever the name means by now.
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
