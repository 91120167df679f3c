// The public server: node:http within our limits, with its events connected to the HTTP handler.
import { createServer, ServerResponse, type IncomingMessage, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { rejections, tooManyConnections, type Rejection } from '../errors.ts'
import type { Limits } from '../limits.ts'
import { Connection, type ConnectionParts } from './connection.ts'
import type { HttpHandler, RequestMode } from './http-handler.ts'
import { writeRawRejection } from './rejection.ts'

interface PublicServerOptions {
  handler: HttpHandler
  parts: ConnectionParts
  limits: Limits
  newRequestId: () => string
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  /** Called for a connection that is closed because its address has the maximum. */
  onRejected: (address: string) => void
}

/** The milliseconds for which a rejected connection stays open so that the client can read the response. */
const rejectionReadMilliseconds = 1_000
/** The maximum number of rejected connections that receive a response at a time. Further ones are closed without. */
const maxRejections = 64

export function createPublicServer(options: PublicServerOptions): Server {
  const { handler, parts, limits, newRequestId, elapsed } = options
  const connections = new WeakMap<Duplex, Connection>()
  let rejectedNow = 0
  const server = createServer({
    // The HTTP handler distinguishes too long URLs from too large headers. The parser only has to accept both.
    maxHeaderSize: limits.urlBytes + 2 * limits.headerBytes,
    requireHostHeader: false,
    insecureHTTPParser: false,
    optimizeEmptyRequests: true,
    headersTimeout: limits.headTimeout,
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveTimeout,
    connectionsCheckingInterval: Math.min(1_000, limits.headTimeout),
    noDelay: true,
    shouldUpgradeCallback: isUpgrade,
  })
  // The table counts the connections. Those that it rejects or closes are open for a moment longer.
  server.maxConnections = limits.connections + 4 * maxRejections
  server.on('connection', (socket: Socket) => {
    const peer = socket.remoteAddress ?? ''
    if (parts.blocked.rejects(peer)) {
      // A reset leaves nothing of the connection in the kernel.
      socket.resetAndDestroy()
      return
    }
    const connection = new Connection(socket, peer, elapsed(), parts)
    connections.set(socket, connection)
    socket.on('close', connection.closed)
    const reason = parts.table.add(connection)
    if (reason === undefined) return
    connection.isRejected = true
    if (reason === 'address') options.onRejected(connection.address.key)
    if (rejectedNow >= maxRejections) {
      socket.destroy()
      return
    }
    rejectedNow++
    socket.on('close', () => rejectedNow--)
    rejectRaw(socket, reason === 'address' ? tooManyConnections(limits.connectionsPerAddress) : rejections.gatewayBusy)
  })
  const handle = (request: IncomingMessage, response: ServerResponse, mode: RequestMode) => {
    const connection = connections.get(request.socket)
    if (connection === undefined || connection.isRejected) return
    connection.headReceived()
    if (connection.requests >= limits.requestsPerConnection) {
      // One chunk can contain a thousand requests, and the parser emits all of them. None gets a response.
      connection.isRejected = true
      connection.rejected()
      parts.shares.closedConnections++
      request.socket.destroy()
      return
    }
    try {
      handler.handle(request, response, connection, mode)
    } catch (cause) {
      handler.fail(request, cause)
    }
  }
  server.on('request', (request, response) => handle(request, response, 'ordinary'))
  server.on('checkContinue', (request, response) => handle(request, response, 'expecting'))
  // The HTTP handler rejects every other expectation.
  server.on('checkExpectation', (request, response) => handle(request, response, 'ordinary'))
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    const connection = connections.get(socket)
    if (connection?.isIdle !== true) {
      // Responses to earlier requests are still to come on the connection, so it cannot switch protocols.
      socket.destroy()
      return
    }
    connection.upgraded()
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    try {
      response.assignSocket(socket)
    } catch {
      // The previous response has been written, but the server has not released it yet, so the connection cannot switch
      // protocols.
      socket.destroy()
      return
    }
    response.on('finish', () => socket.end())
    handle(request, response, { socket, head })
  })
  server.on('connect', (_, socket) => rejectRaw(socket, rejections.connectRejected))
  server.on('clientError', (error: Error, socket: Duplex) => {
    const connection = connections.get(socket)
    const rejection = rejectionOf(error)
    if (connection === undefined || connection.isRejected) return
    connection.isRejected = true
    connection.headReceived()
    if (rejection !== undefined) connection.rejected()
    if (rejection === undefined || !socket.writable) socket.destroy()
    else if (connection.isIdle) rejectRaw(socket, rejection)
    else if (!connection.rejectLast(rejection)) socket.destroy()
  })
  const rejectRaw = (socket: Duplex, rejection: Rejection) => {
    socket.on('error', () => socket.destroy())
    writeRawRejection(socket, rejection, newRequestId())
    setTimeout(() => socket.destroy(), rejectionReadMilliseconds).unref()
  }
  return server
}

/**
 * Whether the request is for an upgrade: a GET without a body. The gateway never upgrades to HTTP/2 over clear text,
 * because it could not read the requests inside. It serves such a request as HTTP/1.1.
 */
function isUpgrade(request: IncomingMessage): boolean {
  const { headers } = request
  if (request.method !== 'GET' || headers['content-length'] !== undefined) return false
  if (headers['transfer-encoding'] !== undefined) return false
  return !/(?:^|[\s,])h2c?(?:[\s,]|$)/i.test(headers.upgrade ?? '')
}

/**
 * Maps a client's connection error.
 * @returns undefined when no client can receive a response
 */
function rejectionOf(error: Error): Rejection | undefined {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (code === 'ECONNRESET' || code === 'EPIPE') return undefined
  if (code === 'HPE_HEADER_OVERFLOW') return rejections.headersTooLarge
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? rejections.bodyTimeout : rejections.malformedRequest
}
