// A wait that ends early, without an error, when it is aborted.
import { setTimeout as sleep } from 'node:timers/promises'

/** Resolves after the time, or as soon as the signal aborts; never rejects. */
export async function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => undefined)
}
