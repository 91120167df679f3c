// Forwards one call between two other parts: the response at the pace of the slower side; the end of either side ends both.
import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { internalTokenHeader } from '@tenantry/contract'
import { request, type Dispatcher } from 'undici'
import type { Rejection } from '../errors.ts'
import { rejectInternal } from '../http/internal-response.ts'

interface PassedCall {
  method: 'GET' | 'DELETE'
  /** The URLs of the call. The next one is tried when one cannot be reached. */
  urls: readonly [string, ...string[]]
  /** The token that authenticates the caller. */
  token: string
  /** The media types that the caller accepts. */
  accept?: string
  /** Milliseconds to the head of the response, and between two chunks of it. */
  headTimeout: number
  idleTimeout: number
  rejectionFor: (error: Error) => Rejection
}

/** Forwards the call, and returns when the response has ended on both sides. Never throws. */
export async function passThrough(call: PassedCall, response: ServerResponse, dispatcher: Dispatcher): Promise<void> {
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  try {
    const result = await firstResponse(call, gone.signal, dispatcher)
    const contentType = result.headers['content-type']
    response.writeHead(result.statusCode, typeof contentType === 'string' ? { 'content-type': contentType } : {})
    response.flushHeaders()
    await pipeline(result.body, response)
  } catch (cause) {
    // A client must not mistake a part for the whole.
    if (response.headersSent) response.destroy()
    else rejectInternal(response, call.rejectionFor(cause instanceof Error ? cause : new Error(String(cause))))
  }
}

async function firstResponse(
  call: PassedCall,
  signal: AbortSignal,
  dispatcher: Dispatcher,
): Promise<Dispatcher.ResponseData> {
  const [url, ...others] = call.urls
  try {
    return await request(url, {
      dispatcher,
      method: call.method,
      headers: { [internalTokenHeader]: call.token, ...(call.accept === undefined ? {} : { accept: call.accept }) },
      headersTimeout: call.headTimeout,
      bodyTimeout: call.idleTimeout,
      signal,
    })
  } catch (cause) {
    const [next, ...rest] = others
    if (next === undefined || signal.aborted) throw cause
    return firstResponse({ ...call, urls: [next, ...rest] }, signal, dispatcher)
  }
}
