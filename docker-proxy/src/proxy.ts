// The door to the Docker Engine: reads a call, asks whose its objects are, and sends on the call that it understood. What
// it does not understand is refused.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Readable, type Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { remadeArchive } from './archive-rules.ts'
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
}

/** As pino's. */
export interface Log {
  warn(fields: object, message: string): void
}

export interface RequestHandler {
  server: Server
  /** Cuts what is under way. */
  close(): Promise<void>
}

const maxBodyLength = 1024 * 1024
const maxConnections = 512

export function createProxy({ rules, engine, log }: ProxyOptions): RequestHandler {
  const ownership = createOwnership(engine, rules)
  /** Connections that were taken over; the server does not know them any more. */
  const takenOver = new Set<Duplex>()

  /** The call as it goes on. @throws Refused, EngineRefusal, or what the Engine's socket throws */
  async function admitted(call: Call, body: Buffer, signal: AbortSignal): Promise<EngineRequest> {
    const version = call.version ?? ''
    const made = await remade(call, body)
    for (const claim of made.claims) await ownership.confirm(version, claim, signal)
    if (call.networks.length > 0) await ownership.confirmNetworks(version, call.networks, signal)
    const segments = [...call.segments]
    const subject = made.subject ?? call.subject
    if (subject !== undefined) segments[1] = await ownership.confirm(version, subject, signal)
    const path = [call.version, ...segments]
      .filter((part) => part !== undefined)
      .map(encodeURIComponent)
      .join('/')
    const query = new URLSearchParams(call.query).toString()
    return { method: call.method, path: `/${path}${query === '' ? '' : `?${query}`}`, ...made.sent }
  }

  async function pass(call: Call, body: Buffer, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const sent = await admitted(call, body, signal)
    const given = await engine.open(sent, signal)
    const status = given.statusCode ?? 502
    if (status >= 400) throw await engineRejection(given)
    if (typeof call.response === 'function') {
      const shown = call.response(await readJson(given), rules)
      if (status === 204 || status === 304) response.writeHead(status).end()
      else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(shown))
      return
    }
    response.writeHead(status, { 'content-type': given.headers['content-type'] ?? 'application/octet-stream' })
    // The caller waits for the head, and there may be nothing to say for hours.
    response.flushHeaders()
    if (call.response === 'events') await pipeline(Readable.from(ownEvents(given, rules)), response)
    else await pipeline(given, response)
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    try {
      const call = readCall(request.method, request.url, rules)
      if (call.response === 'connection') throw new Rejected('this call takes over its connection')
      await pass(call, await readBody(request), response, gone.signal)
    } catch (cause) {
      const rejection = rejectionOf(cause)
      // As the Engine itself when it can't be reached.
      if (rejection === undefined || response.headersSent) {
        if (!gone.signal.aborted) log.warn({ err: cause }, 'a call broke off')
        response.destroy()
        return
      }
      if (cause instanceof Rejected)
        log.warn({ method: request.method, path: request.url?.slice(0, 200) }, `refused: ${cause.message}`)
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
      if (call.response !== 'connection') throw new Rejected('this call keeps to HTTP')
      const body = await readBody(request)
      if (head.length > 0) socket.unshift(head)
      const given = await engine.upgrade(await admitted(call, body, gone.signal), gone.signal)
      if ('response' in given) throw await engineRejection(given.response)
      socket.write(
        'HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n',
      )
      takenOver.add(socket)
      socket.once('close', () => takenOver.delete(socket))
      join(socket, given.connection)
    } catch (cause) {
      const rejection = rejectionOf(cause)
      if (rejection === undefined) {
        socket.destroy()
        return
      }
      if (cause instanceof Rejected)
        log.warn({ method: request.method, path: request.url?.slice(0, 200) }, `refused: ${cause.message}`)
      const text = JSON.stringify({ message: rejection.message })
      socket.end(
        `HTTP/1.1 ${rejection.status} Refused\r\nContent-Type: application/json\r\n` +
          `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
      )
    }
  }

  const server = createServer((request, response) => void serve(request, response))
  server.on(
    'upgrade',
    (request: IncomingMessage, socket: Duplex, head: Buffer) => void serveUpgrade(request, socket, head),
  )
  server.maxConnections = maxConnections
  // Callers keep connections for their next call, and would write it into one that is closing.
  server.keepAliveTimeout = 75_000
  return {
    server,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      for (const socket of takenOver) socket.destroy()
      await closed
    },
  }
}

/** Each side may end before the other: a command reads its input to the end, and goes on to write. */
function join(caller: Duplex, command: Duplex): void {
  caller.pipe(command)
  command.pipe(caller)
  caller.once('close', () => command.destroy())
  command
    .on('error', () => undefined)
    .once('close', () => {
      // Input that nobody reads any more would keep the caller's connection open.
      caller.resume()
      if (!command.readableEnded) caller.destroy()
    })
}

interface Remade {
  sent: Pick<EngineRequest, 'body' | 'contentType'>
  claims: readonly Claim[]
  subject: Claim | undefined
}

/** Bodies go on as they were understood, not as they came. @throws Refused */
async function remade({ body: wanted }: Call, given: Buffer): Promise<Remade> {
  if (wanted === 'archive')
    return {
      sent: { body: await remadeArchive(given), contentType: 'application/x-tar' },
      claims: [],
      subject: undefined,
    }
  if (wanted === 'none') {
    if (given.length > 0 && given.toString() !== '{}') throw new Rejected('this call has no body')
    return { sent: {}, claims: [], subject: undefined }
  }
  const { body, claims, subject } = wanted.check(parsed(given))
  return { sent: { body: Buffer.from(JSON.stringify(body)), contentType: 'application/json' }, claims, subject }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch (cause) {
    throw new Rejected('the body is no JSON', { cause })
  }
}

async function readBody(request: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    length += chunk.length
    if (length > maxBodyLength) throw new Rejected('the body is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

async function engineRejection(response: IncomingMessage): Promise<EngineRejection> {
  return new EngineRejection(response.statusCode ?? 502, messageOf(await readJson(response).catch(() => undefined)))
}

/** Undefined for what is no refusal: the Engine can't be reached, or the caller has gone. */
function rejectionOf(cause: unknown): { status: number; message: string } | undefined {
  if (cause instanceof Rejected)
    return { status: 403, message: `Tenantry's door to the Docker Engine: ${cause.message}` }
  if (cause instanceof EngineRejection) return { status: cause.status, message: cause.message }
  return undefined
}
