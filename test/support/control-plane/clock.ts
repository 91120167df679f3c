// A clock that stops until a test moves it.
import type { Clock } from '#control-plane/platform/clock.ts'

export interface StoppedClock extends Clock {
  /** Advances the time and runs all timers that become due, in the order of their times. */
  pass(seconds: number): void
}

export function stoppedClock(begin = '2026-03-01T12:00:00.000Z'): StoppedClock {
  let at = Date.parse(begin)
  const timers = new Set<{ due: number; work: () => void }>()

  const later = (milliseconds: number, work: () => void) => {
    const timer = { due: at + milliseconds, work }
    timers.add(timer)
    return () => void timers.delete(timer)
  }

  return {
    now: () => new Date(at),
    later,
    sleep: (milliseconds, signal) =>
      new Promise((resolve, reject) => {
        const rejectWith = () => {
          cancel()
          reject(signal?.reason as Error)
        }
        const cancel = later(milliseconds, () => {
          signal?.removeEventListener('abort', rejectWith)
          resolve()
        })
        if (signal?.aborted === true) rejectWith()
        else signal?.addEventListener('abort', rejectWith, { once: true })
      }),
    timeout(milliseconds) {
      const controller = new AbortController()
      later(milliseconds, () => controller.abort(new Error('the time is over')))
      return controller.signal
    },
    every(milliseconds, work) {
      let cancel: () => void = () => undefined
      const again = () => {
        cancel = later(milliseconds, () => {
          again()
          work()
        })
      }
      again()
      return () => cancel()
    },
    pass(seconds) {
      const until = at + seconds * 1000
      for (;;) {
        const [next] = [...timers].filter(({ due }) => due <= until).sort((a, b) => a.due - b.due)
        if (next === undefined) break
        timers.delete(next)
        at = Math.max(at, next.due)
        next.work()
      }
      at = until
    },
  }
}
