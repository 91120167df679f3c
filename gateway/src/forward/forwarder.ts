// Forwards a request to one of its tenant's runtimes over pooled connections and returns the response, as for most
// requests.
import type { IncomingMessage } from 'node:http'
import { basePathHeader, internalTokenHeader, requestIdHeader, tenantHeader, type Route } from '@tenantry/contract'
import type { Dispatcher } from 'undici'
import { rejections } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { Group } from '../resolve/group.ts'
import type { Resolved } from '../resolve/resolve.ts'
import type { Ipv4Range } from '../tenants/ipv4-range.ts'
import { clientOrigin } from './client-origin.ts'
import { isBroken, isUnreachable, NotConnectedError, rejectionFor, RuntimeVanishedError } from './failures.ts'
import type { ForwardedResponse } from './forwarded-response.ts'
import { mayBePrompt } from './prompt-body.ts'
import { RequestBody } from './request-body.ts'
import type { RequestHead } from './request-head.ts'
import type { ResponseHeaders } from './response-head.ts'
import type { RuntimeTokens } from './runtime-tokens.ts'
import type { Upstream, Upstreams } from './upstreams.ts'

/** One request that was read, resolved and routed. */
export interface Call {
  head: RequestHead
  resolved: Resolved
  route: Route
  group: Group
  requestId: string
  request: IncomingMessage
  response: ForwardedResponse
  /**
   * Decides, after a runtime could not be reached and nothing of the request was sent, whether the request is sent again
   * later.
   */
  retryLater: () => boolean
}

export interface ForwarderOptions {
  upstreams: Upstreams
  tokens: RuntimeTokens
  limits: Limits
  /** Proxies whose forwarding headers are trusted. */
  trustedProxies: readonly Ipv4Range[]
  onError?: (error: Error, call: Call) => void
}

/** The attempts that were made for one request. */
interface Attempts {
  unreachable: Upstream[]
  /** Whether an attempt failed on an idle connection that the runtime was just closing, which is excused once. */
  staleExcused: boolean
}

const noAttempts: Attempts = { unreachable: [], staleExcused: false }

export class Forwarder {
  readonly #options: ForwarderOptions

  constructor(options: ForwarderOptions) {
    this.#options = options
  }

  forward(call: Call): void {
    const { head, response } = call
    const headers = runtimeHeaders(call, this.#options)
    if (head.hasBody && mayBePrompt(head.contentLength))
      response.readPromptBody((body) => this.#attempt(call, headers, noAttempts, body))
    else this.#attempt(call, headers, noAttempts, undefined)
  }

  /** @param whole the body, if it was read; undefined for one that is sent as a stream, and for none */
  #attempt(call: Call, headers: string[], attempts: Attempts, whole: Buffer | undefined): void {
    const { head, request, response, group } = call
    const upstream = this.#options.upstreams.choose(call.route.runtimes, attempts.unreachable)
    if (upstream === undefined) {
      if (!call.retryLater()) response.fail(rejections.runtimeUnreachable)
      return
    }
    const body = whole ?? (head.hasBody ? response.takeBody() : null)
    const options: Dispatcher.DispatchOptions = {
      path: call.resolved.path,
      method: request.method ?? 'GET',
      headers,
      body,
      headersTimeout: responseTimeoutOf(group, this.#options.limits),
    }
    const handler = new PooledCall(response, upstream, (error) => {
      const mayRetry = response.awaitsHead && !(body instanceof RequestBody && body.isStarted)
      const next = mayRetry ? this.#next(call, attempts, upstream, error) : undefined
      if (next !== undefined) this.#attempt(call, headers, next, whole)
      else if (!mayRetry || !isUnreachable(error) || !call.retryLater()) this.#failed(call, error)
    })
    const pool = head.wantsEventStream ? upstream.streams : upstream.calls
    pool.dispatch(options, handler)
  }

  /** Returns the state of another attempt when that is harmless: nothing was sent, or the request changes nothing. */
  #next(call: Call, attempts: Attempts, upstream: Upstream, error: Error): Attempts | undefined {
    if (isUnreachable(error)) {
      this.#options.upstreams.markDown(upstream, error)
      if (call.route.runtimes.length <= attempts.unreachable.length + 1) return undefined
      return { ...attempts, unreachable: [...attempts.unreachable, upstream] }
    }
    return isBroken(error) && isRepeatable(call) && !attempts.staleExcused
      ? { ...attempts, staleExcused: true }
      : undefined
  }

  #failed(call: Call, error: Error): void {
    if (!call.response.isOver) this.#options.onError?.(error, call)
    call.response.fail(isHarmlesslyLost(error, call) ? rejections.runtimeUnreachable : rejectionFor(error))
  }
}

/** Safe methods (RFC 9110, 9.2.1). */
const repeatable = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Whether the request changes nothing, so that it may be sent twice. */
function isRepeatable({ request, head }: Call): boolean {
  return repeatable.has(request.method ?? '') && !head.hasBody
}

/** Whether the request was lost together with its runtime and changes nothing, so that it may be sent again. */
export function isHarmlesslyLost(error: Error, call: Call): boolean {
  return error instanceof RuntimeVanishedError && isRepeatable(call)
}

/** Returns the milliseconds that a runtime has for a response's head. Functions have their own limit. */
export function responseTimeoutOf(group: Group, limits: Limits): number {
  return group === 'functions' ? limits.functionResponseTimeout : limits.responseTimeout
}

/** Returns the client's end-to-end headers with those that only the gateway may set. */
export function runtimeHeaders(
  call: Call,
  { tokens, trustedProxies }: Pick<ForwarderOptions, 'tokens' | 'trustedProxies'>,
): string[] {
  const { head, request } = call
  const headers = [...head.headers]
  const origin = clientOrigin(request.socket.remoteAddress ?? '', head, trustedProxies)
  if (head.contentLength !== undefined) headers.push('content-length', head.contentLength)
  headers.push(
    internalTokenHeader,
    tokens.of(call.route),
    tenantHeader,
    call.route.tenant_id,
    basePathHeader,
    call.resolved.basePath,
    requestIdHeader,
    call.requestId,
    'x-forwarded-for',
    origin.address,
    'x-forwarded-proto',
    origin.proto,
    'x-forwarded-host',
    origin.host,
  )
  return headers
}

/** Translates undici's callbacks to the client's side. */
class PooledCall implements Dispatcher.DispatchHandler {
  readonly #response: ForwardedResponse
  readonly #upstream: Upstream
  #isSent = false
  readonly #onFailed: (error: Error) => void

  constructor(response: ForwardedResponse, upstream: Upstream, onFailed: (error: Error) => void) {
    this.#response = response
    this.#upstream = upstream
    this.#onFailed = onFailed
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#response.isOver) {
      controller.abort(new Error('The client closed the connection.'))
      return
    }
    this.#isSent = true
    this.#response.forwardedTo(controller)
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: ResponseHeaders): void {
    this.#upstream.hasResponded = true
    if (status < 200) this.#response.inform(status, headers)
    else this.#response.begin(status, headers, controller)
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#upstream.hasResponded = true
    this.#response.write(chunk)
  }

  onResponseEnd(): void {
    this.#response.end()
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    const isPending = error instanceof RuntimeVanishedError && !this.#isSent
    this.#onFailed(isPending ? new NotConnectedError(error) : error)
  }
}
