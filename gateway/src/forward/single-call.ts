// One request to a runtime over its own connection, for what pooled connections cannot do: upgrades and the wait for
// `100 Continue`.
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
  /** Name, value, … with all headers but Host. */
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
  /** Restarts the timer for the response's head after a chunk of the body was sent or an interim response arrived. */
  onProgress: () => void
  /** Stops the timer for the response's head. The caller calls it when the head has arrived. */
  headReceived: () => void
}

/**
 * Opens the connection and sends the head. Failures are NotConnectedErrors, or have undici's codes for timeouts or the
 * system's.
 * The time limits are the same as those of pooled connections.
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
  let hasHead = false
  let timer = setTimeout(() => call.destroy(new errors.ConnectTimeoutError()), limits.connectTimeout)
  const headReceived = () => {
    hasHead = true
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
  call.on('close', headReceived)
  call.on('error', (error) => {
    // An attempt without a connection emits no close.
    headReceived()
    options.onFailed(isConnected ? error : new NotConnectedError(error))
  })
  call.flushHeaders()
  const onProgress = () => {
    if (isConnected && !hasHead) timer.refresh()
  }
  return { call, onProgress, headReceived }
}

/** Forwards the runtime's ordinary response to the client. A runtime that stops sending it is disconnected. */
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
    // The runtime's time limit does not run while the client accepts nothing.
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

/** Returns the headers of a response, repeated ones as arrays. */
export function responseHeaders(message: IncomingMessage): ResponseHeaders {
  const headers: Record<string, string | string[]> = {}
  for (const [name, values] of Object.entries(message.headersDistinct)) {
    if (values !== undefined) headers[name] = values.length === 1 ? (values[0] ?? '') : values
  }
  return headers
}
