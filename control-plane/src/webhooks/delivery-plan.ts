// What comes of an attempt to deliver a message: done, tried again after a while, or given up. Pure.

export interface AttemptResult {
  /** Undefined when there was no answer. */
  status: number | undefined
  error: string | undefined
}

export type Verdict =
  { state: 'delivered' } | { state: 'pending'; afterMilliseconds: number } | { state: 'dead'; isGone: boolean }

/** Before each further attempt: some three days in all. */
const pauseSeconds = [5, 60, 5 * 60, 30 * 60, 2 * 3_600, 5 * 3_600, 10 * 3_600, 14 * 3_600, 20 * 3_600, 24 * 3_600]

export const maxAttempts = pauseSeconds.length + 1

/**
 * @param attempts with this one
 * @param random from 0 to 1: messages that failed together do not come back together
 */
export function verdictOf({ status }: AttemptResult, attempts: number, random: number): Verdict {
  if (status !== undefined && status >= 200 && status < 300) return { state: 'delivered' }
  // Whoever answers 410 wants nothing more, ever.
  if (status === 410) return { state: 'dead', isGone: true }
  const seconds = pauseSeconds[attempts - 1]
  if (seconds === undefined) return { state: 'dead', isGone: false }
  return { state: 'pending', afterMilliseconds: Math.round(seconds * 1000 * (1 + 0.2 * random)) }
}
