// Finds runtimes that are gone without having closed their connections, as when their host loses its power or its network. Otherwise, a
// request that waits for one would wait until its time limit, and every new connection until the limit of connecting.
import { connect, isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { isSilent } from './failures.ts'
import type { Upstream, Upstreams } from './upstreams.ts'

/** The watch of the runtimes, which lasts until it is stopped. */
export interface RuntimeWatch {
  stop(): void
}

interface WatchOptions {
  upstreams: Pick<Upstreams, 'opened' | 'vanished' | 'returned'>
  /** Milliseconds between two checks of all runtimes. One has one and a half times this to accept a connection. */
  interval: number
}

/** Checks without a response, while requests wait, after which a runtime is probed. */
const silentChecks = 1
/**
 * Probes that are neither accepted nor rejected, after which a runtime is gone. Each is a connection of its own, so that a lost packet does
 * not count as a lost host. They overlap, because requests wait.
 */
const silentProbes = 3
/** The maximum time of a probe, and the time between the begins of two, as parts of the interval. */
const probePart = 1.5
const gapPart = 0.75
/** Checks until the next probe of a runtime that accepts connections and is only slow. */
const restingChecks = 8

/** The checks and the probes of one runtime. */
interface Watched {
  silent: number
  isProbing: boolean
}

/** Starts the watch. */
export function watchRuntimes({ upstreams, interval }: WatchOptions): RuntimeWatch {
  const known = new WeakMap<Upstream, Watched>()
  let isStopped = false

  const probe = async (upstream: Upstream, watched: Watched): Promise<void> => {
    watched.isProbing = true
    // What requests wait for is at the addresses of the connections. Docker has no name for a container soon after the loss of its host.
    const addresses = upstream.isGone ? [] : addressesOf(upstream)
    const hosts = addresses.length === 0 ? [upstream.hostname] : addresses
    const probes = upstream.isGone ? 1 : silentProbes
    const outcomes = await Promise.all(hosts.map((host) => reachByAny(host, upstream.port, probes, interval)))
    watched.isProbing = false
    const outcome = (['accepted', 'rejected', 'unknown'] as const).find((one) => outcomes.includes(one)) ?? 'silent'
    // This machine could not even try.
    if (outcome === 'unknown' || isStopped) return
    // Requests may wait for another address meanwhile. The next check probes that.
    if (outcome === 'silent' && addressesOf(upstream).some((address) => !addresses.includes(address))) return
    if (outcome === 'accepted' && upstream.isGone) upstreams.returned(upstream)
    if (outcome !== 'silent') {
      upstream.isSuspect = false
      watched.silent = silentChecks - restingChecks
    } else if (!upstream.isGone) upstreams.vanished(upstream)
  }

  const check = () => {
    for (const upstream of upstreams.opened()) {
      let watched = known.get(upstream)
      if (watched === undefined) known.set(upstream, (watched = { silent: 0, isProbing: false }))
      if (upstream.hasResponded || !upstream.isAwaited()) watched.silent = 0
      else watched.silent++
      upstream.hasResponded = false
      const isDue = upstream.isGone || upstream.isSuspect || watched.silent >= silentChecks
      if (isDue && !watched.isProbing) void probe(upstream, watched)
    }
  }
  const timer = setInterval(check, interval)
  timer.unref()
  return {
    stop() {
      isStopped = true
      clearInterval(timer)
    },
  }
}

/** Returns the IP addresses of the open connections. */
function addressesOf({ sockets }: Upstream): string[] {
  return [...new Set([...sockets].flatMap(({ remoteAddress }) => remoteAddress ?? []))]
}

type Outcome = 'accepted' | 'rejected' | 'silent' | 'unknown'

/** Opens overlapping connections until one has another outcome than silence. */
function reachByAny(host: string, port: number, probes: number, interval: number): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  let undecided = probes
  let isDecided = false
  const probe = async (number: number) => {
    await delay(number * interval * gapPart, undefined, { ref: false })
    if (isDecided) return
    const outcome = await reach(host, port, interval * probePart)
    undecided--
    if (outcome === 'silent' && undecided > 0) return
    isDecided = true
    resolve(outcome)
  }
  for (let number = 0; number < probes; number++) void probe(number)
  return promise
}

/** Opens a connection and closes it. The kernel of a host accepts one for a program that is busy. */
function reach(host: string, port: number, milliseconds: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    let timer: NodeJS.Timeout | undefined
    const end = (outcome: Outcome) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(outcome)
    }
    const start = () => {
      // After a pause of this program, a connection that was accepted meanwhile is noticed before the end of the time.
      timer = setTimeout(() => setImmediate(end, 'silent'), milliseconds)
    }
    if (isIP(host) > 0) start()
    else socket.once('lookup', start)
    socket.on('connect', () => end('accepted'))
    socket.on('error', (error) => {
      if (isSilent(error)) end('silent')
      else end('code' in error && error.code === 'ECONNREFUSED' ? 'rejected' : 'unknown')
    })
  })
}
