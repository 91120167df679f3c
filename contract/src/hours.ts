// The hours that usage is counted by: those of the clock, in UTC. Pure.

/** Milliseconds of an hour. */
export const hourMilliseconds = 3_600_000

/** Start of the hour in which a moment lies, both in milliseconds since 1970. */
export function hourOf(at: number): number {
  return Math.floor(at / hourMilliseconds) * hourMilliseconds
}
