// Forwards WebSockets and any other upgrade: the runtime does the handshake, then bytes pass both ways unchanged.
import { STATUS_CODES, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { rejections, type Rejection } from '../errors.ts'
import type { TenantMeter } from '../meter/meter.ts'
import type { TenantGate } from '../quota/quota.ts'
import { isUnreachable, rejectionFor } from './failures.ts'
import { isHarmlesslyLost, responseTimeoutOf, runtimeHeaders, type Call, type ForwarderOptions } from './forwarder.ts'
import { joinSockets } from './join-sockets.ts'
import type { LiveConnections } from './live-connections.ts'
import { responseHead } from './response-head.ts'
import type { Abortable } from './response-state.ts'
import { responseHeaders, openSingleCall, passResponse } from './single-call.ts'

/** The client's connection after its handshake request. */
export interface ClientEnd {
  socket: Socket
  /** Bytes that it has sent beyond the request. */
  head: Buffer
}

interface UpgradedOptions extends ForwarderOptions {
  meter: TenantMeter
  gate: TenantGate
  live: LiveConnections
  shares: { inProgress: number }
}

/** @param isFirst whether the handshake may be sent to another runtime if this one is lost */
export function forwardUpgrade(call: Call, client: ClientEnd, options: UpgradedOptions, isFirst = true): void {
  const { response, head } = call
  const upstream = options.upstreams.choose(call.route.runtimes, undefined)
  if (upstream === undefined) {
    if (!call.retryLater()) response.fail(rejections.runtimeUnreachable)
    return
  }
  const { call: single, headReceived } = openSingleCall({
    upstream,
    method: call.request.method ?? 'GET',
    path: call.resolved.path,
    headers: [...runtimeHeaders(call, options), 'connection', 'Upgrade', 'upgrade', head.upgrade ?? ''],
    limits: options.limits,
    responseTimeoutMs: responseTimeoutOf(call.group, options.limits),
    onConnected: () => response.forwardedTo(connection),
    onFailed: (error) => {
      if (isUnreachable(error)) {
        options.upstreams.markDown(upstream, error)
        if (call.retryLater()) return
      }
      const isLost = isHarmlesslyLost(error, call)
      if (isLost && isFirst && response.awaitsHead) {
        forwardUpgrade(call, client, options, false)
        return
      }
      if (!response.isOver) options.onError?.(error, call)
      response.fail(isLost ? rejections.runtimeUnreachable : rejectionFor(error))
    },
  })
  const connection: Abortable = { abort: (reason) => single.destroy(reason) }
  response.waitFor(connection)
  single.on('upgrade', (message: IncomingMessage, socket: Socket, first: Buffer) => {
    headReceived()
    if (response.isOver) {
      socket.destroy()
      return
    }
    const switched = () => {
      if (socket.destroyed) {
        options.gate.closed()
        response.fail(rejections.badGateway)
        return
      }
      response.switchProtocols()
      client.socket.write(switchingHead(message, call.requestId), 'latin1')
      joinConnections(call, client, { socket, head: first }, options)
    }
    const reject = (rejection: Rejection) => {
      socket.destroy()
      response.reject(rejection)
    }
    const slot = options.gate.open(() => {
      // Nothing is read from the runtime during the wait. `switched` notices a broken connection.
      socket.on('error', ignore)
      return { go: switched, reject }
    })
    if (slot === undefined) switched()
    else if (typeof slot !== 'function') reject(slot)
    else
      response.waitFor({
        abort: () => {
          slot()
          socket.destroy()
        },
      })
  })
  // The runtime sent an ordinary response, because it rejects the request or does not speak the protocol.
  single.on('response', (message: IncomingMessage) => {
    headReceived()
    passResponse(single, message, response, options.limits)
  })
}

function switchingHead(message: IncomingMessage, requestId: string): string {
  const { headers } = responseHead(responseHeaders(message), requestId, 101)
  headers.push('connection', 'Upgrade', 'upgrade', message.headers.upgrade ?? '')
  let text = `HTTP/1.1 101 ${STATUS_CODES[101] ?? ''}\r\n`
  for (let at = 0; at + 1 < headers.length; at += 2) text += `${headers[at] ?? ''}: ${headers[at + 1] ?? ''}\r\n`
  return `${text}\r\n`
}

function joinConnections(call: Call, client: ClientEnd, runtime: ClientEnd, options: UpgradedOptions): void {
  const { meter, gate, live, shares } = options
  const removeLive = live.add(call.route.tenant_id, () => client.socket.destroy(), { hasReason: true })
  meter.began()
  meter.opened()
  shares.inProgress++
  client.socket.on('close', () => {
    removeLive()
    shares.inProgress--
    gate.closed()
    meter.closed()
    meter.ended()
  })
  const toClient = (chunk: Buffer) => meter.egress(call.group, chunk.length)
  if (client.head.length > 0) runtime.socket.write(client.head)
  if (runtime.head.length > 0) {
    toClient(runtime.head)
    client.socket.write(runtime.head)
  }
  joinSockets(client.socket, runtime.socket, (chunk) => {
    toClient(chunk)
    return true
  })
}

function ignore(): void {}
