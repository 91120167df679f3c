// The link to one host of several. A host that does not respond is left out for a few seconds, so that it does not delay the work
// on the others.
import type { DockerHost } from '../docker/index.ts'
import { type ContainerHost, EngineError, isUnreachable } from '../index.ts'

/** A host that a link calls. */
export type LinkedHost = Omit<DockerHost, 'close'>

/** Time after a failed call in which a host is not called. */
const restMilliseconds = 5_000
/** Age of the last response from which on a host is asked for a sign of life before it is read. */
const freshMilliseconds = 2_000

/** The link to one host. */
export type HostLink = ReturnType<typeof linkTo>

/**
 * Returns the link to a host.
 * @param now returns the time in milliseconds
 */
export function linkTo(id: string, host: LinkedHost, now: () => number) {
  let restsUntil = 0
  let respondedAt = -Infinity
  let isSilent = false
  let pinging: Promise<void> | undefined

  const unreachable = (cause?: unknown) =>
    new EngineError('HOST_UNREACHABLE', `The host "${id}" does not respond.`, { cause })

  const note = (error: unknown): unknown => {
    if (!isUnreachable(error)) return error
    restsUntil = now() + restMilliseconds
    respondedAt = -Infinity
    isSilent = true
    return unreachable(error)
  }

  /** Makes a call. @throws EngineError HOST_UNREACHABLE at once while the host rests */
  const call = async <T>(work: (host: LinkedHost) => Promise<T>): Promise<T> => {
    if (now() < restsUntil) throw unreachable()
    try {
      const result = await work(host)
      // A call that was sent before another one failed does not show that the host responds again.
      if (now() < restsUntil) return result
      respondedAt = now()
      isSilent = false
      return result
    } catch (error) {
      throw note(error)
    }
  }

  async function* stream<T>(open: () => AsyncIterable<T>): AsyncGenerator<T, undefined> {
    if (now() < restsUntil) throw unreachable()
    try {
      yield* open()
    } catch (error) {
      throw note(error)
    }
  }

  /** The calls of a host, each through this link. */
  const linked: ContainerHost = {
    info: (...a) => call((one) => one.info(...a)),
    observe: (...a) => call((one) => one.observe(...a)),
    image: (...a) => call((one) => one.image(...a)),
    createNetwork: (...a) => call((one) => one.createNetwork(...a)),
    createVolume: (...a) => call((one) => one.createVolume(...a)),
    createContainer: (...a) => call((one) => one.createContainer(...a)),
    startContainer: (...a) => call((one) => one.startContainer(...a)),
    unpauseContainer: (...a) => call((one) => one.unpauseContainer(...a)),
    stopContainer: (...a) => call((one) => one.stopContainer(...a)),
    updateResources: (...a) => call((one) => one.updateResources(...a)),
    connect: (...a) => call((one) => one.connect(...a)),
    disconnect: (...a) => call((one) => one.disconnect(...a)),
    writeFiles: (...a) => call((one) => one.writeFiles(...a)),
    addFiles: (...a) => call((one) => one.addFiles(...a)),
    removeContainer: (...a) => call((one) => one.removeContainer(...a)),
    removeNetwork: (...a) => call((one) => one.removeNetwork(...a)),
    removeVolume: (...a) => call((one) => one.removeVolume(...a)),
    removeUnlabelledVolume: (...a) => call((one) => one.removeUnlabelledVolume(...a)),
    exec: (...a) => call((one) => one.exec(...a)),
    execStream: (...a) => stream(() => host.execStream(...a)),
    logs: (...a) => stream(() => host.logs(...a)),
    stats: (...a) => call((one) => one.stats(...a)),
    volumeBytes: (...a) => call((one) => one.volumeBytes(...a)),
    events: (...a) => stream(() => host.events(...a)),
  }

  return {
    id,
    host: linked,
    call,
    /** Whether the host did not respond at the last call. */
    isDown: () => isSilent,
    /** Whether the host responds now. One that has just responded is not called. @throws the signal's reason */
    async responds(signal: AbortSignal): Promise<boolean> {
      if (now() < restsUntil) return false
      if (now() - respondedAt < freshMilliseconds) return true
      // Callers share it, so none of them may end it. It has a time limit of its own.
      pinging ??= call((one) => one.ping(new AbortController().signal)).finally(() => (pinging = undefined))
      try {
        await pinging
        return true
      } catch {
        signal.throwIfAborted()
        return false
      }
    },
  }
}
