// Polls for an object that the Engine reports a moment after it rejects a second one: it reserves the name first.
import { setTimeout as delay } from 'node:timers/promises'

const attempts = 10
const pauseMilliseconds = 100

/** Polls for about a second. @returns undefined if the object still does not exist */
export async function pollUntilFound<T>(
  poll: () => Promise<T | undefined>,
  signal: AbortSignal,
): Promise<T | undefined> {
  for (let attempt = 1; ; attempt++) {
    const found = await poll()
    if (found !== undefined || attempt === attempts) return found
    await delay(pauseMilliseconds, undefined, { signal })
  }
}
