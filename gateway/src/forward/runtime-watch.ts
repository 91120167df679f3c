// Finds runtimes that are gone without having closed their connections, as when their host loses its power or its network. Otherwise, a
// request that waits for one would wait until its time limit, and every new connection until the limit of connecting.
import { connect, isIP } from 'node:net'
import { isSilent } from './failures.ts'
import type { Upstream, Upstreams } from './upstreams.ts'

/** The watch of the runtimes, which lasts until it is stopped. */
export interface RuntimeWatch {
  stop(): void
}

interface WatchOptions {
  upstreams: Pick<Upstreams, 'opened' | 'vanished' | 'returned'>
  /** Milliseconds between two checks of all runtimes. One has three quarters of it to accept a connection. */
  interval: number
}

/** Checks without a response, while requests wait, after which a runtime is probed. */
const silentChecks = 1
/**
 * Probes in succession that are neither accepted nor rejected, after which a runtime is gone. Each is a connection of its own, so that a
 * lost packet does not count as a lost host.
 */
const silentProbes = 3
const probePart = 0.75
/** Checks until the next probe of a runtime that accepts connections and is only slow. */
const restingChecks = 4

/** The checks and the probes of one runtime. */
interface Watched {
  silent: number
  isProbing: boolean
}

/** Starts the watch. */
export function watchRuntimes({ upstreams, interval }: WatchOptions): RuntimeWatch {
  const known = new WeakMap<Upstream, Watched>()

  const probe = async (upstream: Upstream, watched: Watched): Promise<void> => {
    watched.isProbing = true
    let outcome: Outcome = 'silent'
    for (let probes = upstream.isGone ? 1 : silentProbes; probes > 0 && outcome === 'silent'; probes--)
      outcome = await reach(upstream, interval * probePart)
    watched.isProbing = false
    // This machine could not even try.
    if (outcome === 'unknown') return
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
  return { stop: () => clearInterval(timer) }
}

type Outcome = 'accepted' | 'rejected' | 'silent' | 'unknown'

/** Opens a connection and closes it. The kernel of a host accepts one for a program that is busy. */
function reach({ hostname, port }: Upstream, milliseconds: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port })
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
    if (isIP(hostname) > 0) start()
    else socket.once('lookup', start)
    socket.on('connect', () => end('accepted'))
    socket.on('error', (error) => {
      if (isSilent(error)) end('silent')
      else end('code' in error && error.code === 'ECONNREFUSED' ? 'rejected' : 'unknown')
    })
  })
}
