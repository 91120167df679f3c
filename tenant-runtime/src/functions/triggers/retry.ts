// The retry schedule of deliveries. Pure.

export const maxAttempts = 8
const firstMilliseconds = 1_000
/** Part of the wait by which it is randomly shorter or longer, so that deliveries that failed together are not retried together. */
const jitter = 0.25

/** Returns the milliseconds to wait after a number of attempts; undefined after the last one. @param random from 0 to 1 */
export function waitAfter(attempts: number, random: number): number | undefined {
  if (attempts >= maxAttempts) return undefined
  return Math.round(firstMilliseconds * 2 ** (attempts - 1) * (1 + jitter * (2 * random - 1)))
}
