// Calls of backup targets with a limit of time. A file system whose server is gone never responds, and each call of it occupies
// one of the few threads that this process has for files and names.
import type { Clock } from '../platform/clock.ts'
import { unavailableTarget } from './backup-error.ts'

/** The name of a target, unique among the targets. */
interface Named {
  readonly name: string
}

/**
 * Calls of targets. While a call that was too late has not returned, further calls of that target fail at once.
 */
export interface TargetCalls {
  /**
   * Calls a target, which returns in time or counts as unavailable.
   * @param work gets a signal that aborts at the end of the time
   * @throws BackupError TARGET_UNAVAILABLE
   */
  inTime<T>(target: Named, milliseconds: number, work: (limit: AbortSignal) => Promise<T>): Promise<T>
  /**
   * Writes into a target for as long as it takes more of the content. The time in which the source of the content is
   * slow does not count.
   * @param work gets the content to write, and a signal that aborts when the target takes no more
   * @throws BackupError TARGET_UNAVAILABLE
   */
  writing<T>(
    target: Named,
    content: AsyncIterable<Uint8Array>,
    work: (content: AsyncIterable<Uint8Array>, limit: AbortSignal) => Promise<T>,
  ): Promise<T>
  /**
   * Reads from a target for as long as it returns more. The time in which the reader is slow does not count.
   * @throws BackupError TARGET_UNAVAILABLE
   */
  reading(target: Named, content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, undefined>
}

/** The time in which a target responds to a small request. */
export const readMilliseconds = 20_000
/** The time without progress after which a long read or write has failed; at most twice that much passes. */
const progressMilliseconds = 60_000

/** Creates the calls of a set of targets, which several stores in the same targets share. */
export function createTargetCalls(clock: Pick<Clock, 'timeout'>): TargetCalls {
  /** The names of the targets that have not returned in time, with the number of such calls. */
  const stuck = new Map<string, number>()

  const rejectStuck = ({ name }: Named) => {
    if (stuck.has(name)) throw unavailableTarget(name, new Error('An earlier call has not returned.'))
  }
  /** Settles as the call does, or rejects when the limit aborts. Until the call returns, the target counts as stuck. */
  const settle = async <T>({ name }: Named, result: Promise<T>, limit: AbortSignal): Promise<T> => {
    const late = new Promise<never>((_resolve, reject) => {
      const expire = () => {
        stuck.set(name, (stuck.get(name) ?? 0) + 1)
        const returned = () => {
          const others = (stuck.get(name) ?? 1) - 1
          if (others === 0) stuck.delete(name)
          else stuck.set(name, others)
        }
        result.then(returned, returned)
        reject(unavailableTarget(name, limit.reason))
      }
      limit.addEventListener('abort', expire, { once: true })
      const done = () => limit.removeEventListener('abort', expire)
      result.then(done, done)
    })
    return Promise.race([result, late])
  }

  /** Watches a target that must make progress whenever it is waited for. */
  const watch = () => {
    const stalled = new AbortController()
    let steps = 0
    let isWaiting = true
    let isOver = false
    const arm = () => {
      const before = steps
      clock.timeout(progressMilliseconds).addEventListener(
        'abort',
        () => {
          if (isOver) return
          if (isWaiting && steps === before) stalled.abort(new Error('The target makes no progress.'))
          else arm()
        },
        { once: true },
      )
    }
    arm()
    return {
      stalled: stalled.signal,
      /** Notes a step, after which the target is waited for, or something else. */
      step: (isNowWaiting: boolean) => {
        steps++
        isWaiting = isNowWaiting
      },
      end: () => void (isOver = true),
    }
  }

  return {
    async inTime(target, milliseconds, work) {
      rejectStuck(target)
      const limit = clock.timeout(milliseconds)
      return settle(target, work(limit), limit)
    },

    async writing(target, content, work) {
      rejectStuck(target)
      const { stalled, step, end } = watch()
      async function* watched() {
        step(false)
        try {
          for await (const chunk of content) {
            step(true)
            yield chunk
            step(false)
          }
        } finally {
          step(true)
        }
      }
      try {
        return await settle(target, work(watched(), stalled), stalled)
      } finally {
        end()
      }
    },

    async *reading(target, content) {
      rejectStuck(target)
      const { stalled, step, end } = watch()
      const chunks = content[Symbol.asyncIterator]()
      let isStalled = false
      try {
        for (;;) {
          step(true)
          const next = await settle(target, chunks.next(), stalled)
          step(false)
          if (next.done === true) return undefined
          yield next.value
        }
      } catch (cause) {
        isStalled = stalled.aborted
        throw cause
      } finally {
        end()
        // The end of a read that hangs would hang, too.
        if (!isStalled) await chunks.return?.()
      }
    },
  }
}
