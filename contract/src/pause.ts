// A wait that ends early and without an error when it is aborted.
import { setTimeout as sleep } from 'node:timers/promises'

/** Resolves after the time, or when the signal aborts; never rejects. */
export async function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => undefined)
}
