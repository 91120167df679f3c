// Decides the result of an attempt to deliver a message: delivered, retried later, or given up. Pure.

export interface AttemptResult {
  /** The HTTP status; undefined without a response. */
  status: number | undefined
  error: string | undefined
}

export type Verdict =
  { state: 'delivered' } | { state: 'pending'; afterMilliseconds: number } | { state: 'dead'; isGone: boolean }

/** The pauses before each further attempt, about three days in all. */
const pauseSeconds = [5, 60, 5 * 60, 30 * 60, 2 * 3_600, 5 * 3_600, 10 * 3_600, 14 * 3_600, 20 * 3_600, 24 * 3_600]

export const maxAttempts = pauseSeconds.length + 1

/**
 * Returns the result of an attempt.
 * @param attempts the number of attempts, this one included
 * @param random from 0 to 1, so that messages that failed together are not retried together
 */
export function verdictOf({ status }: AttemptResult, attempts: number, random: number): Verdict {
  if (status !== undefined && status >= 200 && status < 300) return { state: 'delivered' }
  // A receiver that responds with 410 wants no further messages.
  if (status === 410) return { state: 'dead', isGone: true }
  const seconds = pauseSeconds[attempts - 1]
  if (seconds === undefined) return { state: 'dead', isGone: false }
  return { state: 'pending', afterMilliseconds: Math.round(seconds * 1000 * (1 + 0.2 * random)) }
}
