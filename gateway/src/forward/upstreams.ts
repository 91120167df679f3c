// The connections to the runtimes: pools by base URL, which exist as long as a route names them.
import type { Socket } from 'node:net'
import { Pool } from 'undici'
import type { Limits } from '../limits.ts'
import { isSilent, RuntimeVanishedError } from './failures.ts'
import { RuntimeSockets } from './runtime-sockets.ts'

/** One runtime as the gateway reaches it. */
export interface Upstream {
  readonly origin: string
  /**
   * The host, the port, and a function that opens a connection outside of the pools.
   * @throws RuntimeSocketsError at the maximum
   */
  readonly hostname: string
  readonly port: number
  /** All open connections. */
  readonly sockets: ReadonlySet<Socket>
  readonly connect: () => Socket
  /** Adds a connection of the pools that was accepted. */
  readonly opened: (socket: Socket) => void
  calls: Pool
  /** The pool for long responses. They have their own, because a pool searches all its connections for a free one. */
  streams: Pool
  /** Milliseconds on the clock of `now` until which other runtimes have precedence; 0 while the runtime is reachable. */
  downUntil: number
  /** Whether a response has continued since the last check of the watch. */
  hasResponded: boolean
  /** Whether a connection to it was neither accepted nor rejected. */
  isSuspect: boolean
  /** Whether it is gone, so that other runtimes have precedence until it accepts connections again. */
  isGone: boolean
  /** Whether a request waits for a response, or a connection is open outside of the pools. */
  readonly isAwaited: () => boolean
  /** Connections outside of the pools. */
  readonly separate: ReadonlySet<Socket>
}

interface HeldUpstream {
  upstream: Upstream | undefined
  routes: number
}

/** The time for which other runtimes have precedence over one that could not be reached. */
const downMilliseconds = 1_000
/** The time for which an idle connection waits for the next request. */
const idleMilliseconds = 4_000

export class Upstreams {
  readonly #limits: Limits
  readonly #now: () => number
  readonly sockets: RuntimeSockets
  readonly #held = new Map<string, HeldUpstream>()
  #turn = 0

  /** @param now milliseconds, monotonic */
  constructor(limits: Limits, now: () => number) {
    this.#limits = limits
    this.#now = now
    this.sockets = new RuntimeSockets(limits.runtimeSockets)
  }

  /** Updates the runtimes that routes name. A pool without a route ends with its last response. */
  changed(added: readonly string[], removed: readonly string[]): void {
    for (const url of added) {
      const held = this.#held.get(url)
      if (held === undefined) this.#held.set(url, { upstream: undefined, routes: 1 })
      else held.routes++
    }
    for (const url of removed) {
      const held = this.#held.get(url)
      if (held === undefined || --held.routes > 0) continue
      this.#held.delete(url)
      for (const pool of [held.upstream?.calls, held.upstream?.streams]) pool?.close().catch(() => undefined)
    }
  }

  /**
   * Chooses the next runtime in turn. Reachable runtimes come before unreachable ones.
   * @param tried runtimes that failed for this request
   */
  choose(urls: readonly string[], tried: readonly Upstream[] | undefined): Upstream | undefined {
    let fallback: Upstream | undefined
    const turn = urls.length === 1 ? 0 : this.#turn++
    for (let step = 0; step < urls.length; step++) {
      const upstream = this.#upstream(urls[(turn + step) % urls.length] ?? '')
      if (upstream === undefined || tried?.includes(upstream) === true) continue
      if (!upstream.isGone && (upstream.downUntil === 0 || upstream.downUntil <= this.#now())) return upstream
      fallback ??= upstream
    }
    return fallback
  }

  /** Gives other runtimes precedence for a while. @param error why no connection could be opened */
  markDown(upstream: Upstream, error: Error): void {
    upstream.downUntil = this.#now() + downMilliseconds
    if (isSilent(error)) upstream.isSuspect = true
  }

  /** Returns the runtimes that requests were sent to. */
  *opened(): Iterable<Upstream> {
    for (const { upstream } of this.#held.values()) if (upstream !== undefined) yield upstream
  }

  /** Ends all requests and connections of a runtime that is gone. Those that may be are sent to another one. */
  vanished(upstream: Upstream): void {
    upstream.isGone = true
    const former = [upstream.calls, upstream.streams]
    Object.assign(upstream, newPools(upstream.origin, this.#limits, this.sockets, upstream.opened))
    for (const pool of former) pool.destroy(new RuntimeVanishedError()).catch(() => undefined)
    for (const socket of upstream.separate) socket.destroy(new RuntimeVanishedError())
  }

  /** Lets a runtime have requests again, because it accepts connections. */
  returned(upstream: Upstream): void {
    upstream.isGone = false
    upstream.downUntil = 0
  }

  /** Destroys all pools, with the requests in progress. */
  async destroy(): Promise<void> {
    const pools = [...this.#held.values()].flatMap(({ upstream }) =>
      upstream ? [upstream.calls, upstream.streams] : [],
    )
    this.#held.clear()
    await Promise.all(pools.map((pool) => pool.destroy()))
  }

  #upstream(url: string): Upstream | undefined {
    const held = this.#held.get(url)
    if (held === undefined) return undefined
    held.upstream ??= open(url, this.#limits, this.sockets)
    return held.upstream
  }
}

function open(url: string, limits: Limits, sockets: RuntimeSockets): Upstream | undefined {
  if (!URL.canParse(url)) return undefined
  const { protocol, hostname, port, origin } = new URL(url)
  if (protocol !== 'http:') return undefined
  const target = { hostname: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 80 : Number(port) }
  const separate = new Set<Socket>()
  const open = new Set<Socket>()
  const opened = (socket: Socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  }
  const upstream: Upstream = {
    origin,
    ...target,
    sockets: open,
    opened,
    connect() {
      const socket = sockets.connect(target.hostname, target.port)
      separate.add(socket)
      socket.on('connect', () => opened(socket))
      return socket.on('close', () => separate.delete(socket))
    },
    ...newPools(origin, limits, sockets, opened),
    downUntil: 0,
    hasResponded: false,
    isSuspect: false,
    isGone: false,
    isAwaited: () => separate.size > 0 || upstream.calls.stats.running > 0 || upstream.streams.stats.running > 0,
    separate,
  }
  return upstream
}

function newPools(
  origin: string,
  limits: Limits,
  sockets: RuntimeSockets,
  onConnected: (socket: Socket) => void,
): Pick<Upstream, 'calls' | 'streams'> {
  const pool = () =>
    new Pool(origin, {
      connect: sockets.connector(limits.connectTimeout, onConnected),
      headersTimeout: limits.responseTimeout,
      bodyTimeout: limits.responseIdleTimeout,
      keepAliveTimeout: idleMilliseconds,
      // A runtime may request a longer time, which would keep connections from others.
      keepAliveMaxTimeout: idleMilliseconds,
      maxHeaderSize: 64 * 1024,
    })
  return { calls: pool(), streams: pool() }
}
