// The public server: node:http within our limits, with its events connected to the HTTP handler.
import { createServer, ServerResponse, type IncomingMessage, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { rejections, type Rejection } from '../errors.ts'
import type { Limits } from '../limits.ts'
import { Connection } from './connection.ts'
import type { HttpHandler, RequestMode } from './http-handler.ts'
import { writeRawRejection } from './rejection.ts'

interface PublicServerOptions {
  handler: HttpHandler
  limits: Limits
  newRequestId: () => string
  onError: (error: Error) => void
}

/** The milliseconds for which a rejected connection stays open so that the client can read the response. */
const rejectionReadMilliseconds = 1_000

export function createPublicServer(options: PublicServerOptions): Server {
  const { handler, limits, newRequestId } = options
  const connections = new WeakMap<Duplex, Connection>()
  const connectionOf = (socket: Duplex): Connection => {
    let connection = connections.get(socket)
    if (connection === undefined) {
      connection = new Connection()
      connections.set(socket, connection)
      socket.on('close', connection.closed)
    }
    return connection
  }
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
  server.maxConnections = limits.connections
  const handle = (request: IncomingMessage, response: ServerResponse, mode: RequestMode) => {
    const connection = connectionOf(request.socket)
    if (connection.isRejected) return
    try {
      handler.handle(request, response, connection, mode)
    } catch (cause) {
      // A defect ends only the connection on which it occurs.
      options.onError(new Error('The gateway failed to handle a request.', { cause }))
      request.socket.destroy()
    }
  }
  server.on('request', (request, response) => handle(request, response, 'ordinary'))
  server.on('checkContinue', (request, response) => handle(request, response, 'expecting'))
  // The HTTP handler rejects every other expectation.
  server.on('checkExpectation', (request, response) => handle(request, response, 'ordinary'))
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    if (!connectionOf(socket).isIdle) {
      // Responses to earlier requests are still to come on the connection, so it cannot switch protocols.
      socket.destroy()
      return
    }
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
    const connection = connectionOf(socket)
    const rejection = rejectionOf(error)
    if (connection.isRejected) return
    connection.isRejected = true
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
