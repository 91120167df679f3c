// The public door's server: node:http within our limits, its events wired to the door.
import { createServer, ServerResponse, type IncomingMessage, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { rejections, type Rejection } from '../errors.ts'
import type { Limits } from '../limits.ts'
import { Connection } from './connection.ts'
import type { HttpHandler, Mode } from './http-handler.ts'
import { writeRawRejection } from './rejection.ts'

interface PublicServerOptions {
  handler: HttpHandler
  limits: Limits
  newRequestId: () => string
  onError: (error: Error) => void
}

/** Milliseconds that a refused connection has to take its answer. */
const lastWordsMilliseconds = 1_000

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
    // The door itself tells too long URLs from too large headers; the parser only has to let both come that far.
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
  const handle = (request: IncomingMessage, response: ServerResponse, mode: Mode) => {
    const connection = connectionOf(request.socket)
    if (connection.refused) return
    try {
      handler.handle(request, response, connection, mode)
    } catch (cause) {
      // A defect costs the one connection on which it shows.
      options.onError(new Error('a request was not handled', { cause }))
      request.socket.destroy()
    }
  }
  server.on('request', (request, response) => handle(request, response, 'ordinary'))
  server.on('checkContinue', (request, response) => handle(request, response, 'expecting'))
  // The door refuses whatever else is expected.
  server.on('checkExpectation', (request, response) => handle(request, response, 'ordinary'))
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    if (!connectionOf(socket).isIdle) {
      // Answers to earlier requests are still to come on a connection that wants to be something else.
      socket.destroy()
      return
    }
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    try {
      response.assignSocket(socket)
    } catch {
      // The answer before this one has been written, but the server has not let go of it yet: as above.
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
    if (connection.refused) return
    connection.refused = true
    if (rejection === undefined || !socket.writable) socket.destroy()
    else if (connection.isIdle) rejectRaw(socket, rejection)
    else if (!connection.rejectLast(rejection)) socket.destroy()
  })
  const rejectRaw = (socket: Duplex, rejection: Rejection) => {
    socket.on('error', () => socket.destroy())
    writeRawRejection(socket, rejection, newRequestId())
    setTimeout(() => socket.destroy(), lastWordsMilliseconds).unref()
  }
  return server
}

/**
 * An upgrade is a GET without a body. HTTP/2 over clear text is never upgraded to: through it requests would pass
 * that nobody reads; such a request is served as it is.
 */
function isUpgrade(request: IncomingMessage): boolean {
  const { headers } = request
  if (request.method !== 'GET' || headers['content-length'] !== undefined) return false
  if (headers['transfer-encoding'] !== undefined) return false
  return !/(?:^|[\s,])h2c?(?:[\s,]|$)/i.test(headers.upgrade ?? '')
}

/** @returns undefined when there is nobody to tell */
function rejectionOf(error: Error): Rejection | undefined {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (code === 'ECONNRESET' || code === 'EPIPE') return undefined
  if (code === 'HPE_HEADER_OVERFLOW') return rejections.headersTooLarge
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? rejections.bodyTimeout : rejections.malformedRequest
}
