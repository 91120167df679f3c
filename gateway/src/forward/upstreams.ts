// The connections to the runtimes: pools by base URL, which exist as long as a route names them.
import type { Socket } from 'node:net'
import { Pool, type Dispatcher } from 'undici'
import type { Limits } from '../limits.ts'
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
  readonly connect: () => Socket
  readonly calls: Dispatcher
  /** The pool for long responses. They have their own, because a pool searches all its connections for a free one. */
  readonly streams: Dispatcher
  /** Milliseconds on the clock of `now` until which other runtimes have precedence; 0 while the runtime is reachable. */
  downUntil: number
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
      if (upstream.downUntil === 0 || upstream.downUntil <= this.#now()) return upstream
      fallback ??= upstream
    }
    return fallback
  }

  markDown(upstream: Upstream): void {
    upstream.downUntil = this.#now() + downMilliseconds
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
  const pool = () =>
    new Pool(origin, {
      connect: sockets.connector(limits.connectTimeout),
      headersTimeout: limits.responseTimeout,
      bodyTimeout: limits.responseIdleTimeout,
      keepAliveTimeout: idleMilliseconds,
      // A runtime may request a longer time, which would keep connections from others.
      keepAliveMaxTimeout: idleMilliseconds,
      maxHeaderSize: 64 * 1024,
    })
  const address = { hostname: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 80 : Number(port) }
  return {
    origin,
    ...address,
    connect: () => sockets.connect(address.hostname, address.port),
    calls: pool(),
    streams: pool(),
    downUntil: 0,
  }
}
