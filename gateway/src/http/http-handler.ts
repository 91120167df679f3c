// Handles one public HTTP request: reads it strictly, finds its tenant, and rejects or forwards it.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ByteTurns, RequestTurns } from '@tenantry/contract'
import type { BlockedAddresses } from '../clients/blocked-addresses.ts'
import type { ClientAddress } from '../clients/client-address.ts'
import type { ClientAddresses } from '../clients/client-addresses.ts'
import type { RequestShares } from '../clients/request-shares.ts'
import { rejectionOfPhase, rejections, type Rejection } from '../errors.ts'
import type { BodyBudget } from '../forward/body-budget.ts'
import { clientOrigin } from '../forward/client-origin.ts'
import { ClientResponse } from '../forward/client-response.ts'
import { forwardExpecting } from '../forward/expecting.ts'
import { ForwardedResponse } from '../forward/forwarded-response.ts'
import { Forwarder, type Call, type ForwarderOptions } from '../forward/forwarder.ts'
import { laterTries } from '../forward/later-tries.ts'
import { endBeforeRequest } from '../forward/end-before-request.ts'
import type { LiveConnections } from '../forward/live-connections.ts'
import type { PassedBytes } from '../forward/passed-bytes.ts'
import { RequestAccount } from '../forward/request-account.ts'
import { isRejection, readRequestHead, type RequestHead } from '../forward/request-head.ts'
import { forwardUpgrade, type ClientEnd } from '../forward/upgraded.ts'
import type { Meter, TenantMeter } from '../meter/meter.ts'
import type { Quota, TenantGate } from '../quota/quota.ts'
import type { AccessLog } from '../monitor/access-log.ts'
import { groupOf } from '../resolve/group.ts'
import { isInternalPath } from '../resolve/internal-path.ts'
import { resolve } from '../resolve/resolve.ts'
import type { RouteTable } from '../routes/route-table.ts'
import type { WaitingRoom } from '../waiting/waiting-room.ts'
import type { Connection } from './connection.ts'
import { beginRejection } from './rejection.ts'

export interface HttpHandlerOptions extends ForwarderOptions {
  /** The domain, in lower case, below which tenants are served: `{name}.{domain}`. */
  domain: string
  routes: RouteTable
  meter: Meter
  quota: Quota
  live: LiveConnections
  passed: PassedBytes
  waiting: WaitingRoom
  addresses: ClientAddresses
  blocked: BlockedAddresses
  shares: RequestShares
  bodies: BodyBudget
  turns: ByteTurns
  /** Called for a defect of the gateway. */
  onDefect: (error: Error) => void
  /** Undefined when no request is logged. */
  accessLog?: AccessLog
  newRequestId: () => string
  /** Returns monotonic milliseconds. */
  elapsed: () => number
}

/** The mode of a request: with a body if any, with a body after `100 Continue`, or with a change of the connection's protocol. */
export type RequestMode = 'ordinary' | 'expecting' | ClientEnd

/** A request that is not yet forwarded, so that it cannot be retried. */
type PendingRequest = Omit<Call, 'retryLater'>

/** The meter that counts one tenant's requests, and the gate that admits them. */
interface TenantControls {
  meter: TenantMeter
  gate: TenantGate
}

/**
 * The duration of a round in which a tenant's rejected bodies are read, so that their clients get the response: at most 25 MB
 * in a second. A client that sends bodies without end would otherwise occupy the gateway with what it drops.
 */
const remainingRoundMilliseconds = 10

/** The wait of a request for its turn, which notices by itself that the client has left. */
const noAbort = { abort: () => undefined }

export class HttpHandler {
  readonly #options: HttpHandlerOptions
  readonly #remainingTurns = new ByteTurns(remainingRoundMilliseconds)
  readonly #requestTurns = new RequestTurns()
  readonly #forwarder: Forwarder
  /** Set when the gateway is stopping. */
  closing = false
  readonly #isClosing = () => this.closing

  constructor(options: HttpHandlerOptions) {
    this.#options = options
    this.#forwarder = new Forwarder(options)
  }

  handle(request: IncomingMessage, response: ServerResponse, connection: Connection, mode: RequestMode): void {
    const { domain, routes, limits, meter, quota, live, passed, bodies, turns, shares, accessLog } = this.#options
    const { newRequestId, elapsed } = this.#options
    const head = readRequestHead(
      { httpVersion: request.httpVersion, url: request.url ?? '', rawHeaders: request.rawHeaders },
      limits,
    )
    if (isRejection(head)) {
      connection.isRejected = true
      connection.rejected()
      response.end(beginRejection(response, head, newRequestId(), true))
      return
    }
    const requestId = head.requestId ?? newRequestId()
    const client = this.#clientOf(connection, head)
    if (client === undefined) {
      this.#rejectAtOnce(response, rejections.addressBlocked, requestId, head, mode)
      return
    }
    // The requests on a proxy's connection come from many clients.
    const account = client === connection.address ? connection : client
    const resolved = resolve(head.host, head.path, domain)
    const route = resolved === undefined ? undefined : routes.named(resolved.name)
    accessLog?.note({
      request,
      response,
      isUpgrade: typeof mode === 'object',
      tenant: route?.tenant_id ?? null,
      path: resolved?.path ?? head.path,
      client: client.key,
    })
    if (resolved === undefined || route === undefined) {
      if (resolved === undefined && isHealth(request, head)) this.#health(response, requestId)
      else {
        const limited = shares.afterRejections(rejectionWait(connection, client))
        const rejection = limited ?? (resolved === undefined ? rejections.notFound : rejections.tenantNotFound)
        if (limited === undefined) account.rejected()
        this.#rejectAtOnce(response, rejection, requestId, head, mode)
      }
      return
    }
    const group = groupOf(resolved.path)
    const controls: TenantControls = { meter: meter.tenant(route.tenant_id), gate: quota.gate(route) }
    const forwarded = new ForwardedResponse({
      client: new ClientResponse({
        request,
        response,
        requestId,
        hasBody: head.hasBody,
        passed,
        limits,
        isClosing: this.#isClosing,
        bodies,
        turns,
        remainingTurns: this.#remainingTurns,
        tenantId: route.tenant_id,
        bodyHolder: client,
        elapsed,
      }),
      account: new RequestAccount(controls.meter, group, request.method ?? '', elapsed, account),
      gate: controls.gate,
      live,
      passed,
      turns,
      tenantId: route.tenant_id,
      requestId,
      onOver: connection.onOver,
    })
    connection.open(forwarded, client)
    const call: PendingRequest = { head, resolved, route, group, requestId, request, response: forwarded }
    const begin = () => {
      if (forwarded.isOver) return false
      const limited = this.#limited(route.tenant_id, connection, client, controls)
      if (limited !== undefined) reject(forwarded, mode, limited)
      else if (isInternalPath(resolved.path)) reject(forwarded, mode, rejections.notFound)
      else this.#admit(call, mode, controls)
      return true
    }
    if (this.#requestTurns.begins(route.tenant_id)) begin()
    else {
      forwarded.queue(noAbort)
      this.#requestTurns.wait(route.tenant_id, () => {
        try {
          return begin()
        } catch (cause) {
          this.fail(request, cause)
          return true
        }
      })
    }
  }

  /** Ends the connection of a request on which a defect of the gateway occurred, and no other. */
  fail(request: IncomingMessage, cause: unknown): void {
    this.#options.onDefect(new Error('The gateway failed to handle a request.', { cause }))
    request.socket.destroy()
  }

  /**
   * Returns the address of the client: of the connection, or the one that a trusted proxy reports.
   * @returns undefined if the proxy reports a blocked one
   */
  #clientOf(connection: Connection, head: RequestHead): ClientAddress | undefined {
    const { address, socket } = connection
    if (!address.isProxy) return address
    const { addresses, blocked, trustedProxies } = this.#options
    const reported = clientOrigin(socket.remoteAddress ?? '', head, trustedProxies).address
    if (blocked.rejects(reported)) return undefined
    connection.reportedAddress = reported
    return addresses.of(reported)
  }

  /** Rejects a request that is not counted for any tenant. */
  #rejectAtOnce(
    response: ServerResponse,
    rejection: Rejection,
    requestId: string,
    { hasBody }: RequestHead,
    mode: RequestMode,
  ): void {
    const isWaiting = mode === 'expecting' && hasBody
    const body = beginRejection(response, rejection, requestId, this.closing || isWaiting)
    const { limits } = this.#options
    if (hasBody && !isWaiting && !response.req.complete)
      endBeforeRequest(response, body, { isComplete: true, limits, turns: this.#remainingTurns, tenantId: '' })
    else response.end(body)
  }

  /** Rejects a request of a client with too many rejected requests, or beyond a share of the requests in progress. */
  #limited(
    tenantId: string,
    connection: Connection,
    client: ClientAddress,
    { meter }: TenantControls,
  ): Rejection | undefined {
    const { shares } = this.#options
    // Requests that wait for their turn hold nothing that others need.
    const { waiting } = this.#requestTurns
    const ofTenant = meter.inProgress - this.#requestTurns.waitingOf(tenantId)
    return shares.afterRejections(rejectionWait(connection, client)) ?? shares.check(ofTenant, waiting, client)
  }

  /**
   * Admits a request by its quota, unless the tenant's phase rejects it without using quota. The body is not read during
   * the wait.
   */
  #admit(call: PendingRequest, mode: RequestMode, controls: TenantControls): void {
    const { response } = call
    const phase = rejectionOfPhase(call.route)
    if (phase !== undefined && phase !== rejections.tenantWaking) {
      reject(response, mode, phase)
      return
    }
    const entry = controls.gate.enter(() => ({
      go: () => {
        response.admit(controls.gate.admission)
        const route = this.#options.routes.get(call.route.tenant_id)
        if (route === undefined) reject(response, mode, rejections.tenantNotFound)
        else this.#serve({ ...call, route }, mode, controls)
      },
      reject: (rejection) => reject(response, mode, rejection),
    }))
    if (entry === undefined) {
      response.admit(controls.gate.admission)
      this.#serve(call, mode, controls)
    } else if (typeof entry === 'function') response.queue({ abort: entry })
    else reject(response, mode, entry)
  }

  /** Forwards, holds or rejects an admitted request by the phase of its tenant's route. */
  #serve(call: PendingRequest, mode: RequestMode, controls: TenantControls): void {
    const rejection = rejectionOfPhase(call.route)
    if (rejection === undefined) this.#forward(this.#withRetries(call, mode, controls), mode, controls)
    else if (rejection === rejections.tenantWaking) this.#hold(call, mode, controls)
    else reject(call.response, mode, rejection)
  }

  /** Adds later tries, which follow the route of their time. */
  #withRetries(call: PendingRequest, mode: RequestMode, controls: TenantControls): Call {
    const { routes, limits, elapsed } = this.#options
    const retryLater = laterTries(call.response, limits, elapsed, () => {
      const route = routes.get(call.route.tenant_id)
      if (route === undefined) reject(call.response, mode, rejections.tenantNotFound)
      else if (rejectionOfPhase(route) === undefined) this.#forward({ ...call, route, retryLater }, mode, controls)
      else this.#serve({ ...call, route }, mode, controls)
    })
    return { ...call, retryLater }
  }

  #forward(call: Call, mode: RequestMode, controls: TenantControls): void {
    if (mode === 'ordinary') this.#forwarder.forward(call)
    else if (mode !== 'expecting') forwardUpgrade(call, mode, { ...this.#options, ...controls })
    else if (call.head.hasBody) forwardExpecting(call, this.#options)
    else this.#forwarder.forward(call)
  }

  /** Holds the request until the tenant is awake. Its body is not read before. */
  #hold(call: PendingRequest, mode: RequestMode, controls: TenantControls): void {
    const { response } = call
    const leave = this.#options.waiting.wait(call.route.tenant_id, {
      go: (route) => {
        response.proceed()
        this.#serve({ ...call, route }, mode, controls)
      },
      reject: (rejection) => reject(response, mode, rejection),
    })
    response.waitFor({ abort: leave })
  }

  /** Responds with the gateway's own health, at an address that belongs to no tenant. */
  #health(response: ServerResponse, requestId: string): void {
    const { routes, quota } = this.#options
    const body = JSON.stringify({
      status: 'healthy',
      routes: routes.size,
      routes_synced: routes.synced,
      quotas_synced: quota.isSynced,
    })
    response.writeHead(200, [
      'content-type',
      'application/json; charset=utf-8',
      'content-length',
      String(Buffer.byteLength(body)),
      'cache-control',
      'no-store',
      'x-request-id',
      requestId,
    ])
    response.end(body)
  }
}

/**
 * Returns the milliseconds for which no request is accepted because too many were rejected. A connection whose last request was
 * served continues, because others may share its address.
 */
function rejectionWait(connection: Connection, client: ClientAddress): number {
  return client === connection.address && connection.wasServed ? 0 : client.rejectionWait
}

function isHealth(request: IncomingMessage, head: RequestHead): boolean {
  return (request.method === 'GET' || request.method === 'HEAD') && /^\/health(?:\?|$)/.test(head.path)
}

function reject(response: ForwardedResponse, mode: RequestMode, rejection: Rejection): void {
  // The client may send a body after all, which the gateway could not distinguish from another request.
  if (mode === 'expecting') response.rejectAndClose(rejection)
  else response.reject(rejection)
}
