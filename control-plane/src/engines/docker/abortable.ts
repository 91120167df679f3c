// Waiting for what the Engine shows a moment later than it refuses a second one: the name of a thing is taken first.
import { setTimeout as delay } from 'node:timers/promises'

const attempts = 10
const pauseMilliseconds = 100

/** Looks again for about a second; undefined when there is nothing still. */
export async function abortable<T>(poll: () => Promise<T | undefined>, signal: AbortSignal): Promise<T | undefined> {
  for (let attempt = 1; ; attempt++) {
    const found = await poll()
    if (found !== undefined || attempt === attempts) return found
    await delay(pauseMilliseconds, undefined, { signal })
  }
}
