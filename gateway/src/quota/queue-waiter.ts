// A place among those who wait for a lease or a slot: for so long at most, and told once what came of it.
import type { Waiter } from './lease.ts'

interface WaiterOptions {
  /** Those who wait with it. */
  waiters: Set<Waiter>
  /** Milliseconds. */
  maxWait: number
  /** Whether what it waits for is used up, as far as is known when it has waited for too long. */
  isExhausted: () => boolean
  /** It is no longer among those who wait, and nobody else took it out. */
  onRemaining: () => void
}

/** @returns leaves the place; whoever has left is told nothing more */
export function enterQueue(waiter: Waiter, { waiters, maxWait, isExhausted, onRemaining }: WaiterOptions): () => void {
  const timer = setTimeout(() => {
    leave()
    if (isExhausted()) waiter.exhausted()
    else waiter.unknown()
  }, maxWait)
  const seated: Waiter = {
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
    if (waiters.delete(seated)) onRemaining()
  }
  waiters.add(seated)
  return leave
}
