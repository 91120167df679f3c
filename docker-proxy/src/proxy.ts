// The proxy of the Docker Engine: it reads a call, checks the owners of its objects, and forwards a call that it has
// built again. It rejects calls that it does not understand.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Readable, type Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { repackArchive } from './archive-rules.ts'
import { readCall, type Call } from './calls.ts'
import type { Claim } from './claims.ts'
import type { ProxyRules } from './proxy-rules.ts'
import { readJson, type EngineRequest, type EngineSocket } from './engine-socket.ts'
import { ownEvents } from './event-stream.ts'
import { createOwnership, EngineRejection, messageOf } from './ownership.ts'
import { Rejected } from './rejected.ts'

export interface ProxyOptions {
  rules: ProxyRules
  engine: EngineSocket
  log: Log
  /** Certificates for clients on other hosts; absent for a server at a socket, whose clients need access to its file. */
  tls?: ProxyCertificates | undefined
}

/** Certificates of a proxy for clients on other hosts. All are PEM. */
export interface ProxyCertificates {
  /** The authority that signs the certificates of all proxies and of their clients, and no others. */
  ca: string
  cert: string
  key: string
}

/** A log, as pino provides it. */
export interface Log {
  warn(fields: object, message: string): void
}

/** A proxy of the Docker Engine. */
export interface DockerProxy {
  server: Server
  /** Closes the server and all connections, calls in progress included. */
  close(): Promise<void>
}

const maxBodyBytes = 1024 * 1024
const maxConnections = 512

/**
 * Options of TLS: a client needs a certificate. It may end its input before it has received all output, as the server without TLS also
 * allows.
 */
const mutual = { requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3', allowHalfOpen: true } as const

/** Creates a proxy that does not listen yet. With certificates, it serves only clients that have one for clients. */
export function createProxy({ rules, engine, log, tls }: ProxyOptions): DockerProxy {
  const ownership = createOwnership(engine, rules)
  /** Upgraded connections, which the server no longer tracks. */
  const upgradedSockets = new Set<Duplex>()

  /** Builds the call for the Engine. @throws Rejected, EngineRejection, or errors of the Engine's socket */
  async function toEngineRequest(call: Call, body: Buffer, signal: AbortSignal): Promise<EngineRequest> {
    const version = call.version ?? ''
    const rebuilt = await rebuild(call, body)
    for (const claim of rebuilt.claims) await ownership.confirm(version, claim, signal)
    if (call.networks.length > 0) await ownership.confirmNetworks(version, call.networks, signal)
    const segments = [...call.segments]
    const subject = rebuilt.subject ?? call.subject
    if (subject !== undefined) segments[1] = await ownership.confirm(version, subject, signal)
    const path = [call.version, ...segments]
      .filter((part) => part !== undefined)
      .map(encodeURIComponent)
      .join('/')
    const query = new URLSearchParams(call.query).toString()
    return { method: call.method, path: `/${path}${query === '' ? '' : `?${query}`}`, ...rebuilt.content }
  }

  async function forward(call: Call, body: Buffer, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const engineRequest = await toEngineRequest(call, body, signal)
    const engineResponse = await engine.open(engineRequest, signal)
    const status = engineResponse.statusCode ?? 502
    if (status >= 400) throw await engineRejection(engineResponse)
    if (typeof call.response === 'function') {
      const filtered = call.response(await readJson(engineResponse), rules)
      if (status === 204 || status === 304) response.writeHead(status).end()
      else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(filtered))
      return
    }
    response.writeHead(status, { 'content-type': engineResponse.headers['content-type'] ?? 'application/octet-stream' })
    // The client waits for the head, and there may be no event for hours.
    response.flushHeaders()
    if (call.response === 'events') await pipeline(Readable.from(ownEvents(engineResponse, rules)), response)
    else await pipeline(engineResponse, response)
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    try {
      const call = readCall(request.method, request.url, rules)
      if (call.response === 'connection') throw new Rejected('this call needs an upgraded connection')
      await forward(call, await readBody(request), response, gone.signal)
    } catch (cause) {
      const rejection = rejectionOf(cause)
      // The connection ends without a response, as with an unreachable Engine.
      if (rejection === undefined || response.headersSent) {
        if (!gone.signal.aborted) log.warn({ err: cause }, 'A call was interrupted.')
        response.destroy()
        return
      }
      if (cause instanceof Rejected)
        log.warn({ method: request.method, path: request.url?.slice(0, 200) }, `Rejected a call: ${cause.message}.`)
      response
        .writeHead(rejection.status, { 'content-type': 'application/json' })
        .end(JSON.stringify({ message: rejection.message }))
    }
  }

  async function serveUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const gone = new AbortController()
    socket.on('error', () => undefined).once('close', () => gone.abort())
    try {
      const call = readCall(request.method, request.url, rules)
      if (call.response !== 'connection') throw new Rejected('this call cannot be upgraded')
      const body = await readBody(request)
      if (head.length > 0) socket.unshift(head)
      const given = await engine.upgrade(await toEngineRequest(call, body, gone.signal), gone.signal)
      if ('response' in given) throw await engineRejection(given.response)
      socket.write(
        'HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n',
      )
      upgradedSockets.add(socket)
      socket.once('close', () => upgradedSockets.delete(socket))
      connectStreams(socket, given.connection)
    } catch (cause) {
      const rejection = rejectionOf(cause)
      if (rejection === undefined) {
        socket.destroy()
        return
      }
      if (cause instanceof Rejected)
        log.warn({ method: request.method, path: request.url?.slice(0, 200) }, `Rejected a call: ${cause.message}.`)
      const text = JSON.stringify({ message: rejection.message })
      socket.end(
        `HTTP/1.1 ${rejection.status} Rejected\r\nContent-Type: application/json\r\n` +
          `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
      )
    }
  }

  const listener = (request: IncomingMessage, response: ServerResponse) => void serve(request, response)
  const server = tls === undefined ? createServer(listener) : createTlsServer({ ...tls, ...mutual }, listener)
  server.on(
    'upgrade',
    (request: IncomingMessage, socket: Duplex, head: Buffer) => void serveUpgrade(request, socket, head),
  )
  server.maxConnections = maxConnections
  // Clients reuse connections, and must not write a call to one that is closing.
  server.keepAliveTimeout = 75_000
  return {
    server,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      for (const socket of upgradedSockets) socket.destroy()
      await closed
    },
  }
}

/** Connects two streams. Each side may end first: a command reads its input to the end and still writes afterwards. */
function connectStreams(caller: Duplex, command: Duplex): void {
  caller.pipe(command)
  command.pipe(caller)
  caller.once('close', () => command.destroy())
  command
    .on('error', () => undefined)
    .once('close', () => {
      // Input without a reader would keep the client's connection open.
      caller.resume()
      if (!command.readableEnded) caller.destroy()
    })
}

interface RebuiltBody {
  content: Pick<EngineRequest, 'body' | 'contentType'>
  claims: readonly Claim[]
  subject: Claim | undefined
}

/** Builds the body again from its validated content. @throws Rejected */
async function rebuild({ body: form }: Call, input: Buffer): Promise<RebuiltBody> {
  if (form === 'archive')
    return {
      content: { body: await repackArchive(input), contentType: 'application/x-tar' },
      claims: [],
      subject: undefined,
    }
  if (form === 'none') {
    if (input.length > 0 && input.toString() !== '{}') throw new Rejected('this call must not have a body')
    return { content: {}, claims: [], subject: undefined }
  }
  const { body, claims, subject } = form.check(parsed(input))
  return { content: { body: Buffer.from(JSON.stringify(body)), contentType: 'application/json' }, claims, subject }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch (cause) {
    throw new Rejected('the body is not valid JSON', { cause })
  }
}

async function readBody(request: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    length += chunk.length
    if (length > maxBodyBytes) throw new Rejected('the body is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

async function engineRejection(response: IncomingMessage): Promise<EngineRejection> {
  return new EngineRejection(response.statusCode ?? 502, messageOf(await readJson(response).catch(() => undefined)))
}

/** Returns the response of a rejection; undefined if the Engine is unreachable or the client has disconnected. */
function rejectionOf(cause: unknown): { status: number; message: string } | undefined {
  if (cause instanceof Rejected)
    return { status: 403, message: `Tenantry's Docker proxy rejected the call: ${cause.message}.` }
  if (cause instanceof EngineRejection) return { status: cause.status, message: cause.message }
  return undefined
}
