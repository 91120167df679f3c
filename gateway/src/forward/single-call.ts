// One request to a runtime over a connection of its own, for what pooled connections cannot do: upgrades and
// the wait for `100 Continue`.
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { errors } from 'undici'
import { rejections } from '../errors.ts'
import type { Limits } from '../limits.ts'
import { NotConnectedError, rejectionFor } from './failures.ts'
import type { ForwardedResponse } from './forwarded-response.ts'
import type { ResponseHeaders } from './response-head.ts'
import type { ResponseSource } from './response-state.ts'
import type { Upstream } from './upstreams.ts'

interface SingleCallOptions {
  upstream: Upstream
  method: string
  path: string
  /** Name, value, … with everything but Host. */
  headers: readonly string[]
  limits: Limits
  /** The time that the runtime has for the response's head, in milliseconds, from the last progress of the request. */
  responseTimeoutMs: number
  /** Reports whether the runtime still waits for the client's body: then the limits of the body hold. */
  waitsForClient?: () => boolean
  /** Called before any of the request is sent. */
  onConnected: () => void
  onFailed: (error: Error) => void
}

interface SingleCall {
  call: ClientRequest
  /** Restarts the time for the response's head: a piece of the body was sent, or an interim response arrived. */
  progressed: () => void
  /** Ends the time for the response's head. The caller calls it when the head has arrived. */
  response: () => void
}

/**
 * Opens the connection and sends the head. Failures are NotConnectedErrors, or carry undici's codes for timeouts or the
 * system's. The time limits are those that undici keeps on pooled connections.
 */
export function openSingleCall(options: SingleCallOptions): SingleCall {
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
  let hasResponded = false
  let timer = setTimeout(() => call.destroy(new errors.ConnectTimeoutError()), limits.connectTimeout)
  const response = () => {
    hasResponded = true
    clearTimeout(timer)
  }
  const expired = () => {
    if (options.waitsForClient?.() === true) timer.refresh()
    else call.destroy(new errors.HeadersTimeoutError())
  }
  call.on('socket', (socket) => {
    socket.once('connect', () => {
      isConnected = true
      options.onConnected()
      clearTimeout(timer)
      timer = setTimeout(expired, options.responseTimeoutMs)
    })
  })
  call.on('close', response)
  call.on('error', (error) => {
    // Without a connection there is no close.
    response()
    options.onFailed(isConnected ? error : new NotConnectedError(error))
  })
  call.flushHeaders()
  const progressed = () => {
    if (isConnected && !hasResponded) timer.refresh()
  }
  return { call, progressed, response }
}

/** Passes the runtime's ordinary response on to the client. A runtime that stops sending it is cut off. */
export function passResponse(
  call: ClientRequest,
  message: IncomingMessage,
  response: ForwardedResponse,
  limits: Limits,
): void {
  let timer: NodeJS.Timeout | undefined
  const stopTimer = () => clearTimeout(timer)
  const startTimer = () => {
    stopTimer()
    timer = setTimeout(() => response.giveUp(rejections.runtimeTimeout), limits.responseIdleTimeout)
  }
  const source: ResponseSource = {
    // No time passes for the runtime while the client takes nothing.
    pause: () => {
      stopTimer()
      message.pause()
    },
    resume: () => {
      startTimer()
      message.resume()
    },
    abort: (reason) => call.destroy(reason),
  }
  startTimer()
  response.begin(message.statusCode ?? 502, responseHeaders(message), source)
  message.on('data', (chunk: Buffer) => {
    timer?.refresh()
    response.write(chunk)
  })
  message.on('end', () => response.end())
  message.on('error', (error) => response.fail(rejectionFor(error)))
  message.on('close', stopTimer)
}

/** The headers of an answer, repeated ones as arrays. */
export function responseHeaders(message: IncomingMessage): ResponseHeaders {
  const headers: Record<string, string | string[]> = {}
  for (const [name, values] of Object.entries(message.headersDistinct)) {
    if (values !== undefined) headers[name] = values.length === 1 ? (values[0] ?? '') : values
  }
  return headers
}
