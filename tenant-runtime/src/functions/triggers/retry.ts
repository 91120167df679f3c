// When a delivery that failed is tried again. Pure.

export const maxAttempts = 8
const firstMilliseconds = 1_000
/** Part of the wait by which it is shorter or longer, so that what failed together does not come again together. */
const jitter = 0.25

/** Milliseconds to wait after so many attempts; undefined: no more of them. @param random from 0 to 1 */
export function waitAfter(attempts: number, random: number): number | undefined {
  if (attempts >= maxAttempts) return undefined
  return Math.round(firstMilliseconds * 2 ** (attempts - 1) * (1 + jitter * (2 * random - 1)))
}
