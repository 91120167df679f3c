// Later tries of a request whose runtime could not be reached: that may pass (the gateway was started anew and is not on
// the tenant's network yet), and nothing of the request was sent.
import type { Limits } from '../limits.ts'
import type { ForwardedResponse } from './forwarded-response.ts'

/** Milliseconds before the next try, doubled each time. */
const firstDelay = 100
const maxDelay = 500

/**
 * @param elapsed milliseconds, monotonic
 * @returns to be called after each failed try: whether there will be another one, within `reachTimeout` of this call
 */
export function laterTries(
  response: ForwardedResponse,
  limits: Limits,
  elapsed: () => number,
  tryAgain: () => void,
): () => boolean {
  const begun = elapsed()
  let delay = firstDelay
  return () => {
    if (response.isOver || elapsed() - begun + delay > limits.reachTimeout) return false
    const timer = setTimeout(() => {
      response.proceed()
      tryAgain()
    }, delay)
    response.waitFor({ abort: () => clearTimeout(timer) })
    delay = Math.min(delay * 2, maxDelay)
    return true
  }
}
