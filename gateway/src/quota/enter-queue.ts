// The queue of requests or connections that wait for a lease or a slot, with a time limit.
import type { Waiter, WaiterQueue } from './waiter-queue.ts'

interface QueueOptions {
  /** The waiters in the queue. */
  waiters: WaiterQueue
  /** Milliseconds. */
  maxWait: number
  /** Whether the quota is known to be used up when the time limit is reached. */
  isExhausted: () => boolean
  /** Called when the waiter leaves the queue and was not removed by the owner of `waiters`. */
  onLeave: () => void
}

/**
 * Adds a waiter to the queue.
 * @returns a function that removes it, after which the waiter is not called any more
 */
export function enterQueue(waiter: Waiter, { waiters, maxWait, isExhausted, onLeave }: QueueOptions): () => void {
  const timer = setTimeout(() => {
    leave()
    if (isExhausted()) waiter.exhausted()
    else waiter.unknown()
  }, maxWait)
  const timedWaiter: Waiter = {
    go: () => {
      clearTimeout(timer)
      waiter.go()
    },
    exhausted: () => {
      clearTimeout(timer)
      waiter.exhausted()
    },
    unknown: () => {
      clearTimeout(timer)
      waiter.unknown()
    },
  }
  const leave = () => {
    clearTimeout(timer)
    if (waiters.delete(timedWaiter)) onLeave()
  }
  waiters.add(timedWaiter)
  return leave
}
