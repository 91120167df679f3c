// WebSocket and any other upgrade: the handshake is the runtime's, after it bytes go both ways untouched.
import { STATUS_CODES, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { refusals } from '../errors.ts'
import type { TenantMeter } from '../meter/meter.ts'
import { isUnreachable, refusalFor } from './failures.ts'
import { runtimeHeaders, type Call, type ForwarderOptions } from './forwarder.ts'
import type { LiveConnections } from './live-connections.ts'
import { responseHead } from './response-head.ts'
import { answeredHeaders, openSingleCall } from './single-call.ts'

/** The client's connection after its handshake request. */
export interface ClientEnd {
  socket: Socket
  /** What it has sent already beyond the request. */
  head: Buffer
}

export interface UpgradedOptions extends ForwarderOptions {
  meter: TenantMeter
  live: LiveConnections
}

const probeMilliseconds = 60_000

export function forwardUpgrade(call: Call, client: ClientEnd, options: UpgradedOptions): void {
  const { answer, head } = call
  const upstream = options.upstreams.choose(call.route.runtimes, undefined)
  if (upstream === undefined) {
    answer.fail(refusals.runtimeUnreachable)
    return
  }
  const { call: single, answered } = openSingleCall({
    upstream,
    method: answer.request.method ?? 'GET',
    path: call.resolved.path,
    headers: [...runtimeHeaders(call, options.internalToken), 'connection', 'Upgrade', 'upgrade', head.upgrade ?? ''],
    limits: options.limits,
  })
  answer.source = { pause: () => undefined, resume: () => undefined, abort: (reason) => single.destroy(reason) }
  single.on('upgrade', (message: IncomingMessage, socket: Socket, first: Buffer) => {
    answered()
    if (answer.over) {
      socket.destroy()
      return
    }
    answer.response.detachSocket(client.socket)
    answer.switched()
    client.socket.write(switchingHead(message, call.requestId), 'latin1')
    join(call, client, { socket, head: first }, options)
  })
  // The runtime answered as to an ordinary request: refused, or it doesn't speak the protocol.
  single.on('response', (message: IncomingMessage) => {
    answered()
    answer.source = {
      pause: () => message.pause(),
      resume: () => message.resume(),
      abort: (reason) => single.destroy(reason),
    }
    answer.begin(message.statusCode ?? 502, answeredHeaders(message))
    message.on('data', (chunk: Buffer) => answer.write(chunk))
    message.on('end', () => answer.end())
    message.on('error', (error) => answer.fail(refusalFor(error)))
  })
  single.on('error', (error) => {
    if (isUnreachable(error)) options.upstreams.isDown(upstream)
    if (!answer.over) options.onProblem?.(error, call)
    answer.fail(refusalFor(error))
  })
}

function switchingHead(message: IncomingMessage, requestId: string): string {
  const { headers } = responseHead(answeredHeaders(message), requestId, 101)
  headers.push('connection', 'Upgrade', 'upgrade', message.headers.upgrade ?? '')
  let text = `HTTP/1.1 101 ${STATUS_CODES[101] ?? ''}\r\n`
  for (let at = 0; at + 1 < headers.length; at += 2) text += `${headers[at] ?? ''}: ${headers[at + 1] ?? ''}\r\n`
  return `${text}\r\n`
}

function join(call: Call, client: ClientEnd, runtime: ClientEnd, options: UpgradedOptions): void {
  const { meter, live } = options
  const notLive = live.add(call.route.tenant_id, () => client.socket.destroy())
  meter.opened()
  client.socket.on('close', () => {
    notLive()
    meter.closed()
  })
  for (const { socket } of [client, runtime]) {
    socket.setTimeout(0)
    socket.setNoDelay(true)
    socket.setKeepAlive(true, probeMilliseconds)
  }
  const toClient = (bytes: number) => meter.egress(call.group, bytes)
  if (client.head.length > 0) runtime.socket.write(client.head)
  if (runtime.head.length > 0) {
    toClient(runtime.head.length)
    client.socket.write(runtime.head)
  }
  pass(client.socket, runtime.socket, () => undefined)
  pass(runtime.socket, client.socket, toClient)
}

/** Bytes, backpressure and the end from one side to the other. */
function pass(from: Duplex, to: Socket, count: (bytes: number) => void): void {
  from.on('data', (chunk: Buffer) => {
    count(chunk.length)
    if (!to.write(chunk)) from.pause()
  })
  to.on('drain', () => from.resume())
  from.on('end', () => to.end())
  from.on('error', () => to.destroy())
  from.on('close', () => to.destroySoon())
  from.resume()
}
