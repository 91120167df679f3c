// The hours of usage, which are clock hours in UTC. Pure.

/** Length of an hour in milliseconds. */
export const hourMilliseconds = 3_600_000

/** Returns the start of a moment's hour, both in milliseconds since 1970. */
export function hourOf(at: number): number {
  return Math.floor(at / hourMilliseconds) * hourMilliseconds
}
