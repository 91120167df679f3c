// Requests with `Expect: 100-continue`: the gateway requests the client's body only when the runtime does, so that an
// upload can be rejected before its first byte.
import type { IncomingMessage } from 'node:http'
import { rejections } from '../errors.ts'
import { isUnreachable, rejectionFor } from './failures.ts'
import { responseTimeoutOf, runtimeHeaders, type Call, type ForwarderOptions } from './forwarder.ts'
import type { RequestBody } from './request-body.ts'
import type { ResponseHeaders } from './response-head.ts'
import type { Abortable } from './response-state.ts'
import { openSingleCall, passResponse } from './single-call.ts'

export function forwardExpecting(call: Call, options: ForwarderOptions): void {
  const { head, response } = call
  const { limits } = options
  response.awaitContinue()
  const upstream = options.upstreams.choose(call.route.runtimes, undefined)
  if (upstream === undefined) {
    if (!call.retryLater()) response.fail(rejections.runtimeUnreachable)
    return
  }
  const framing = head.contentLength === undefined ? ['transfer-encoding', 'chunked'] : []
  let body: RequestBody | undefined
  const {
    call: single,
    onProgress,
    headReceived,
  } = openSingleCall({
    upstream,
    method: call.request.method ?? 'POST',
    path: call.resolved.path,
    headers: [...runtimeHeaders(call, options), ...framing, 'expect', '100-continue'],
    limits,
    responseTimeoutMs: responseTimeoutOf(call.group, limits),
    onConnected: () => response.forwardedTo(connection),
    waitsForClient: () => body !== undefined && !body.readableEnded && !single.writableNeedDrain,
    onFailed: (error) => {
      clearTimeout(timer)
      if (isUnreachable(error)) {
        options.upstreams.markDown(upstream, error)
        if (body === undefined && call.retryLater()) return
      }
      if (!response.isOver) options.onError?.(error, call)
      response.fail(rejectionFor(error))
    },
  })
  const connection: Abortable = { abort: (reason) => single.destroy(reason) }
  response.waitFor(connection)
  const sendBody = () => {
    clearTimeout(timer)
    if (body !== undefined) return
    body = response.requestBody()
    if (body === undefined) return
    body.pipe(single)
    body.on('data', onProgress)
  }
  const timer = setTimeout(sendBody, limits.continueTimeout)
  single.on('continue', sendBody)
  single.on('information', ({ statusCode, headers }) => {
    onProgress()
    const interim: ResponseHeaders = headers
    response.inform(statusCode, interim)
  })
  single.on('response', (message: IncomingMessage) => {
    clearTimeout(timer)
    headReceived()
    passResponse(single, message, response, limits)
  })
}
