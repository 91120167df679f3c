// A place among those who wait for a lease or a slot: for so long at most, and told once what came of it.
import type { Waiter } from './lease.ts'

interface SeatOptions {
  /** Those who wait with it. */
  waiters: Set<Waiter>
  /** Milliseconds. */
  patience: number
  /** Whether what it waits for is used up, as far as is known when it has waited for too long. */
  isExhausted: () => boolean
  /** It is no longer among those who wait, and nobody else took it out. */
  onLeft: () => void
}

/** @returns leaves the place; whoever has left is told nothing more */
export function seat(waiter: Waiter, { waiters, patience, isExhausted, onLeft }: SeatOptions): () => void {
  const timer = setTimeout(() => {
    leave()
    if (isExhausted()) waiter.exhausted()
    else waiter.unknown()
  }, patience)
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
    if (waiters.delete(seated)) onLeft()
  }
  waiters.add(seated)
  return leave
}
