// Requests with `Expect: 100-continue`: the client's body is asked for only when the runtime asks for it, so that a
// refused upload is refused before its first byte.
import type { IncomingMessage } from 'node:http'
import { refusals } from '../errors.ts'
import { isUnreachable, refusalFor } from './failures.ts'
import { answerTimeoutOf, clientBody, runtimeHeaders, type Call, type ForwarderOptions } from './forwarder.ts'
import type { RequestBody } from './request-body.ts'
import type { AnsweredHeaders } from './response-head.ts'
import { openSingleCall, passAnswer } from './single-call.ts'

export function forwardExpecting(call: Call, options: ForwarderOptions): void {
  const { head, answer } = call
  const { limits } = options
  // Until the client was told to go on, nobody knows whether its next bytes are the body or another request.
  answer.keepAlive = false
  const upstream = options.upstreams.choose(call.route.runtimes, undefined)
  if (upstream === undefined) {
    if (!call.again()) answer.fail(refusals.runtimeUnreachable)
    return
  }
  const framing = head.contentLength === undefined ? ['transfer-encoding', 'chunked'] : []
  let goesOn = false
  let body: RequestBody | undefined
  const {
    call: single,
    progressed,
    answered,
  } = openSingleCall({
    upstream,
    method: answer.request.method ?? 'POST',
    path: call.resolved.path,
    headers: [...runtimeHeaders(call, options), ...framing, 'expect', '100-continue'],
    limits,
    answerTimeoutMs: answerTimeoutOf(call.group, limits),
    onConnected: () => (answer.forwarded = true),
    waitsForClient: () => body !== undefined && !body.readableEnded && !single.writableNeedDrain,
    onFailed: (error) => {
      clearTimeout(timer)
      if (isUnreachable(error)) {
        options.upstreams.isDown(upstream)
        if (!goesOn && call.again()) return
      }
      if (!answer.over) options.onProblem?.(error, call)
      answer.fail(refusalFor(error))
    },
  })
  answer.source = {
    pause: () => undefined,
    resume: () => undefined,
    abort: (reason) => single.destroy(reason),
  }
  const goOn = () => {
    clearTimeout(timer)
    if (goesOn || answer.over || answer.begun) return
    goesOn = true
    answer.keepAlive = true
    answer.response.writeContinue()
    body = clientBody(answer, options)
    body.pipe(single)
    body.on('data', progressed)
  }
  const timer = setTimeout(goOn, limits.continueTimeout)
  single.on('continue', goOn)
  single.on('information', ({ statusCode, headers }) => {
    progressed()
    const interim: AnsweredHeaders = headers
    answer.inform(statusCode, interim)
  })
  single.on('response', (message: IncomingMessage) => {
    clearTimeout(timer)
    answered()
    passAnswer(single, message, answer, limits)
  })
}
