// The egress proxy: connects runtimes, whose networks have no way out, to public hosts and to the region's storage. It reads a
// CONNECT request and then passes bytes, so that TLS is between the runtime and the host.
import { createServer, STATUS_CODES, type IncomingMessage, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import {
  egressErrorHeader,
  egressErrors,
  isInternalToken,
  LimitedReports,
  tenantOfToken,
  type EgressErrorCode,
  type InternalToken,
} from '@tenantry/contract'
import { readDestination, readToken, type Destination } from './connect-request.ts'
import { addressFor, type EgressCaller, type EgressRules } from './destinations.ts'
import { EgressShares, type EgressLimits, type EgressSlot } from './egress-shares.ts'

/** The limits of the egress proxy. Times are in milliseconds. */
export interface EgressProxyLimits extends EgressLimits {
  /** The maximum number of connections without a whole request head. */
  egressHeads: number
  /** The time for a whole request head. */
  egressHeadTimeout: number
  /** The time to look up a host and to connect to it. */
  egressConnectTimeout: number
  /** The time after which a connection without any byte is closed. */
  egressIdleTimeout: number
}

/** Dependencies of the egress proxy. */
export interface EgressProxyOptions {
  internalToken: InternalToken
  rules: EgressRules
  limits: EgressProxyLimits
  /** Returns all addresses of a name. */
  resolve: (hostname: string) => Promise<readonly string[]>
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  /** Called when a tenant's request was rejected because of its destination, at most once a minute for each tenant. */
  onRejected: (tenantId: string, destination: string) => void
}

class EgressRejection extends Error {
  readonly code: EgressErrorCode

  constructor(code: EgressErrorCode, cause?: unknown) {
    super(code, { cause })
    this.code = code
  }
}

/** The egress proxy of a gateway. */
export class EgressProxy {
  readonly server: Server
  readonly shares: EgressShares
  readonly #options: EgressProxyOptions
  readonly #reports: LimitedReports<string>
  /** The connections without a whole request head, oldest first. */
  readonly #heads = new Set<Socket>()
  readonly #open = new Set<Socket>()

  constructor(options: EgressProxyOptions) {
    const { limits, elapsed } = options
    this.#options = options
    this.#reports = new LimitedReports(elapsed)
    this.shares = new EgressShares(limits, elapsed)
    this.server = createServer(
      {
        headersTimeout: limits.egressHeadTimeout,
        requestTimeout: limits.egressHeadTimeout,
        connectionsCheckingInterval: Math.min(1_000, limits.egressHeadTimeout),
        maxHeaderSize: 4_096,
      },
      (_request, response) => response.writeHead(405, { allow: 'CONNECT', connection: 'close' }).end(),
    )
    this.server.on('connection', (socket) => this.#limitHeads(socket))
    this.server.on('connect', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      this.#heads.delete(socket)
      void this.#serve(request, socket, head)
    })
  }

  /** Closes all connections, and accepts no further ones. */
  close(): void {
    this.server.close()
    this.server.closeAllConnections()
    for (const socket of this.#open) socket.destroy()
  }

  /** Closes the connection that has waited for longest for a request head, when there are too many of them. */
  #limitHeads(socket: Socket): void {
    const [oldest] = this.#heads
    if (this.#heads.size >= this.#options.limits.egressHeads) {
      oldest?.destroy()
      if (oldest !== undefined) this.#heads.delete(oldest)
    }
    this.#heads.add(socket)
    socket.once('close', () => this.#heads.delete(socket))
  }

  async #serve(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    this.#open.add(client)
    client.once('close', () => this.#open.delete(client))
    client.on('error', () => client.destroy())
    let slot: EgressSlot | undefined
    try {
      const caller = this.#callerOf(request)
      const destination = readDestination(request.url ?? '')
      if (destination === undefined) throw new EgressRejection('DESTINATION_INVALID')
      slot = 'isRegion' in caller ? this.shares.ofStorage() : this.shares.ofTenant(caller.tenantId)
      if (slot === undefined) throw new EgressRejection('EGRESS_BUSY')
      const target = await this.#connect(caller, destination, client)
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      if (head.length > 0) client.unshift(head)
      await this.#join(client, target, slot)
    } catch (error) {
      if (error instanceof EgressRejection) reject(client, error.code)
      else client.destroy()
    } finally {
      slot?.release()
    }
  }

  #callerOf(request: IncomingMessage): EgressCaller {
    const token = readToken(request.headers['proxy-authorization'])
    if (token !== undefined) {
      if (isInternalToken(this.#options.internalToken, token)) return { isRegion: true }
      const tenantId = tenantOfToken(this.#options.internalToken, token)
      if (tenantId !== undefined) return { tenantId }
    }
    throw new EgressRejection('TOKEN_INVALID')
  }

  /** Finds the address once, checks it and connects to it. @throws EgressRejection */
  async #connect(caller: EgressCaller, destination: Destination, client: Socket): Promise<Socket> {
    const { rules, limits, resolve, onRejected } = this.#options
    const late = AbortSignal.timeout(limits.egressConnectTimeout)
    const left = new AbortController()
    const leave = () => left.abort(new Error('The runtime has closed its connection.'))
    client.once('close', leave)
    const signal = AbortSignal.any([late, left.signal])
    try {
      const found = await abortable(addressFor(caller, destination, rules, resolve), signal)
      if (found === undefined) throw new EgressRejection('HOST_UNKNOWN')
      if ('forbidden' in found) {
        if ('tenantId' in caller && this.#reports.isDue(caller.tenantId))
          onRejected(caller.tenantId, `${destination.hostname}:${destination.port}`)
        throw new EgressRejection('ADDRESS_REJECTED')
      }
      return await connected(found.address, destination.port, signal)
    } catch (error) {
      throw error instanceof EgressRejection ? error : new EgressRejection('CONNECT_FAILED', error)
    } finally {
      client.off('close', leave)
    }
  }

  /** Passes bytes in both directions until both sides have ended, or either fails. */
  async #join(client: Socket, target: Socket, slot: EgressSlot): Promise<void> {
    this.#open.add(target)
    const closed = new AbortController()
    for (const socket of [client, target]) {
      socket.setNoDelay(true)
      socket.setTimeout(this.#options.limits.egressIdleTimeout, () => socket.destroy())
      socket.once('close', () => closed.abort())
    }
    const paced = async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        const wait = slot.passed(chunk.length)
        yield chunk
        if (wait > 0) await pause(wait, undefined, { signal: closed.signal })
      }
    }
    try {
      await Promise.all([pipeline(client, paced, target), pipeline(target, paced, client)])
    } finally {
      client.destroy()
      target.destroy()
      this.#open.delete(target)
    }
  }
}

function reject(client: Socket, code: EgressErrorCode): void {
  const status = egressErrors[code]
  client.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${egressErrorHeader}: ${code}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    () => client.destroy(),
  )
}

function connected(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, rejected) => {
    // The target may end its side before the runtime does.
    const socket = connect({ host, port, allowHalfOpen: true })
    const abort = () => socket.destroy(new Error('The connection was not made in time.'))
    signal.addEventListener('abort', abort)
    socket.once('error', rejected)
    socket.once('close', () => signal.removeEventListener('abort', abort))
    socket.once('connect', () => {
      signal.removeEventListener('abort', abort)
      socket.off('error', rejected)
      socket.on('error', () => socket.destroy())
      resolve(socket)
    })
    if (signal.aborted) abort()
  })
}

/** Returns what a promise returns, unless the signal aborts before. */
async function abortable<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([result, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
