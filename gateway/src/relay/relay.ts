// Relays calls between the control plane, which is on no tenant's network, and tenants' own runtimes, which are on no
// other.
import type { ServerResponse } from 'node:http'
import { internalPaths, watchPingSeconds } from '@tenantry/contract'
import { Agent } from 'undici'
import { rejections, type Rejection } from '../errors.ts'
import { rejectionFor } from '../forward/failures.ts'
import { connector } from '../forward/runtime-sockets.ts'
import type { RuntimeTokens } from '../forward/runtime-tokens.ts'
import { rejectInternal } from '../http/internal-response.ts'
import type { Limits } from '../limits.ts'
import type { RouteTable } from '../routes/route-table.ts'
import { passThrough } from './pass-through.ts'
import { worstHealth } from './worst-health.ts'

interface RelayOptions {
  controlUrl: string
  routes: RouteTable
  tokens: RuntimeTokens
  limits: Limits
}

export class Relay {
  readonly #options: RelayOptions
  readonly #agent: Agent
  /** The number of open watches by tenant. */
  readonly #watches = new Map<string, number>()

  constructor(options: RelayOptions) {
    this.#options = options
    this.#agent = new Agent({ connect: connector(options.limits.connectTimeout), keepAliveTimeout: 4_000 })
  }

  /**
   * Relays a tenant's runtime's watch of its manifest to the control plane, until either side ends it.
   * @param path the path of the watch, with its parameters
   */
  async watchManifest(tenantId: string, token: string, path: string, response: ServerResponse): Promise<void> {
    const { controlUrl, limits } = this.#options
    const open = this.#watches.get(tenantId) ?? 0
    if (open >= limits.watchesPerTenant) {
      rejectInternal(response, rejections.tooManyWatches)
      return
    }
    this.#watches.set(tenantId, open + 1)
    await passThrough(
      {
        method: 'GET',
        urls: [`${controlUrl}${path}`],
        token,
        headTimeout: limits.relayTimeout,
        idleTimeout: watchPingSeconds * 3_000,
        rejectionFor: rejectionOfControl,
      },
      response,
      this.#agent,
    )
    const remaining = (this.#watches.get(tenantId) ?? 0) - 1
    if (remaining > 0) this.#watches.set(tenantId, remaining)
    else this.#watches.delete(tenantId)
  }

  /**
   * Requests a tenant's usage from the control plane on behalf of the tenant's runtime.
   * @param path a path of `internalPaths.ownUsage` of that tenant
   * @param accept the caller's Accept header
   */
  async requestOwnUsage(
    token: string,
    path: string,
    accept: string | undefined,
    response: ServerResponse,
  ): Promise<void> {
    const { controlUrl, limits } = this.#options
    const call = {
      method: 'GET' as const,
      urls: [`${controlUrl}${path}`] as const,
      token,
      ...(accept === undefined ? {} : { accept }),
      headTimeout: limits.relayTimeout,
      idleTimeout: limits.relayTimeout,
      rejectionFor: rejectionOfControl,
    }
    await passThrough(call, response, this.#agent)
  }

  /**
   * Relays a call of the control plane to a tenant's own runtime. Of several, all report the tenant's health, and the first
   * that can be reached receives other calls.
   * @param path a path of `internalPaths` of that tenant
   */
  async requestRuntime(
    tenantId: string,
    method: 'GET' | 'DELETE',
    path: string,
    response: ServerResponse,
  ): Promise<void> {
    const { routes, tokens, limits } = this.#options
    const route = routes.get(tenantId)
    if (route?.dedicated !== true) {
      rejectInternal(response, rejections.tenantNotFound)
      return
    }
    const [first, ...others] = route.runtimes.map((runtime) => `${runtime}${path}`)
    if (first === undefined) {
      rejectInternal(response, rejections.runtimeUnreachable)
      return
    }
    if (others.length > 0 && path === internalPaths.tenantHealth(tenantId)) {
      await this.#respondWithWorst([first, ...others], tokens.of(route), response)
      return
    }
    const call = {
      method,
      urls: [first, ...others] as const,
      token: tokens.of(route),
      headTimeout: limits.relayTimeout,
      idleTimeout: limits.relayTimeout,
      rejectionFor,
    }
    await passThrough(call, response, this.#agent)
  }

  async #respondWithWorst(urls: readonly string[], token: string, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    try {
      const call = { urls, token, timeout: this.#options.limits.relayTimeout, signal: gone.signal }
      const { status, body } = await worstHealth(call, this.#agent)
      response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(body)
    } catch (cause) {
      rejectInternal(response, rejectionFor(cause instanceof Error ? cause : new Error(String(cause))))
    }
  }

  /** Destroys all connections, with the calls in progress. */
  destroy(): Promise<void> {
    return this.#agent.destroy()
  }
}

function rejectionOfControl(error: Error): Rejection {
  const rejection = rejectionFor(error)
  return rejection === rejections.runtimeUnreachable ? rejections.controlUnreachable : rejections.controlFailed
}
