// The random numbers of a run: the same seed gives the same numbers in the same order.

export interface Chance {
  /** Returns a number, uniform in [0, 1). */
  next(): number
  /** Returns an integer, uniform in [0, count). */
  below(count: number): number
  /** Returns a number, uniform in [from, to). */
  between(from: number, to: number): number
  happens(probability: number): boolean
  /** Returns a random entry. @throws RangeError for an empty list */
  pick<T>(list: readonly T[]): T
  hex(digits: number): string
}

export function chanceOf(seed: number): Chance {
  let state = (seed ^ 0x9e3779b9) >>> 0
  // Mulberry32 is small, fast and good enough for random choices.
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (count: number) => Math.floor(next() * count)
  return {
    next,
    below,
    between: (from, to) => from + next() * (to - from),
    happens: (probability) => probability > 0 && next() < probability,
    pick(list) {
      if (list.length === 0) throw new RangeError('nothing to pick from')
      return list[below(list.length)] as (typeof list)[number]
    },
    hex: (digits) => Array.from({ length: digits }, () => below(16).toString(16)).join(''),
  }
}
