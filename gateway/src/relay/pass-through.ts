// One call between two other parts passed on: its answer at the pace of the slower side, the end of either as that of both.
import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { internalTokenHeader } from '@tenantry/contract'
import { request, type Dispatcher } from 'undici'
import type { Rejection } from '../errors.ts'
import { rejectInternal } from '../http/internal-response.ts'

interface PassedCall {
  method: 'GET' | 'DELETE'
  url: string
  /** What the called part knows the caller by. */
  token: string
  /** In which form the caller wants the answer. */
  accept?: string
  /** Milliseconds to the head of the answer, and between two pieces of it. */
  headTimeout: number
  idleTimeout: number
  rejectionFor: (error: Error) => Rejection
}

/** Returns when the answer has ended on both sides. Never throws. */
export async function passThrough(call: PassedCall, response: ServerResponse, dispatcher: Dispatcher): Promise<void> {
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  try {
    const result = await request(call.url, {
      dispatcher,
      method: call.method,
      headers: { [internalTokenHeader]: call.token, ...(call.accept === undefined ? {} : { accept: call.accept }) },
      headersTimeout: call.headTimeout,
      bodyTimeout: call.idleTimeout,
      signal: gone.signal,
    })
    const contentType = result.headers['content-type']
    response.writeHead(result.statusCode, typeof contentType === 'string' ? { 'content-type': contentType } : {})
    response.flushHeaders()
    await pipeline(result.body, response)
  } catch (cause) {
    // A part must not pass for the whole.
    if (response.headersSent) response.destroy()
    else rejectInternal(response, call.rejectionFor(cause instanceof Error ? cause : new Error(String(cause))))
  }
}
