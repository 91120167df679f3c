// One request to a runtime over a connection of its own, for what pooled connections cannot do: upgrades and
// the wait for `100 Continue`.
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { errors } from 'undici'
import type { Limits } from '../limits.ts'
import type { Answer } from './answer.ts'
import { NotConnectedError, refusalFor } from './failures.ts'
import type { AnsweredHeaders } from './response-head.ts'
import type { Upstream } from './upstreams.ts'

export interface SingleCallOptions {
  upstream: Upstream
  method: string
  path: string
  /** Name, value, … with everything but Host. */
  headers: readonly string[]
  limits: Limits
  onFailed: (error: Error) => void
}

/**
 * Opens the connection and sends the head. Failures are NotConnectedErrors, or carry undici's codes for timeouts or the
 * system's.
 * The caller calls `answered` as soon as the runtime has said anything.
 */
export function openSingleCall(options: SingleCallOptions): { call: ClientRequest; answered: () => void } {
  const { upstream, limits } = options
  const call = httpRequest({
    createConnection: upstream.connect,
    hostname: upstream.hostname,
    port: upstream.port,
    method: options.method,
    path: options.path,
    headers: ['host', `${upstream.hostname}:${upstream.port}`, ...options.headers],
    maxHeaderSize: 64 * 1024,
  })
  let isConnected = false
  let timer = setTimeout(() => call.destroy(new errors.ConnectTimeoutError()), limits.connectTimeout)
  const answered = () => clearTimeout(timer)
  call.on('socket', (socket) => {
    socket.once('connect', () => {
      isConnected = true
      clearTimeout(timer)
      timer = setTimeout(() => call.destroy(new errors.HeadersTimeoutError()), limits.answerTimeout)
    })
  })
  call.on('close', answered)
  call.on('error', (error) => {
    // Without a connection there is no close.
    answered()
    options.onFailed(isConnected ? error : new NotConnectedError(error))
  })
  call.flushHeaders()
  return { call, answered }
}

/** Passes the runtime's ordinary answer on to the client. */
export function passAnswer(call: ClientRequest, message: IncomingMessage, answer: Answer): void {
  answer.source = {
    pause: () => message.pause(),
    resume: () => message.resume(),
    abort: (reason) => call.destroy(reason),
  }
  answer.begin(message.statusCode ?? 502, answeredHeaders(message))
  message.on('data', (chunk: Buffer) => answer.write(chunk))
  message.on('end', () => answer.end())
  message.on('error', (error) => answer.fail(refusalFor(error)))
}

/** The headers of an answer, repeated ones as arrays. */
export function answeredHeaders(message: IncomingMessage): AnsweredHeaders {
  const headers: Record<string, string | string[]> = {}
  for (const [name, values] of Object.entries(message.headersDistinct)) {
    if (values !== undefined) headers[name] = values.length === 1 ? (values[0] ?? '') : values
  }
  return headers
}
