// Later tries of a request whose runtime could not be reached. The cause may pass (for example the gateway was restarted
// and is not on the tenant's network yet), and nothing of the request was sent.
import type { Limits } from '../limits.ts'
import type { ForwardedResponse } from './forwarded-response.ts'

/** Milliseconds before the next try; doubled each time. */
const firstDelayMs = 100
const maxDelayMs = 500

/**
 * Creates the function that the caller calls after each failed try. It returns whether there will be another try, within
 * `reachTimeout` of this call.
 * @param elapsed milliseconds, monotonic
 */
export function laterTries(
  response: ForwardedResponse,
  limits: Limits,
  elapsed: () => number,
  tryAgain: () => void,
): () => boolean {
  const startedAt = elapsed()
  let delay = firstDelayMs
  return () => {
    if (response.isOver || elapsed() - startedAt + delay > limits.reachTimeout) return false
    const timer = setTimeout(() => {
      response.proceed()
      tryAgain()
    }, delay)
    response.waitFor({ abort: () => clearTimeout(timer) })
    delay = Math.min(delay * 2, maxDelayMs)
    return true
  }
}
