// Reads what may not be readable now, although its region is reachable.
import { isUnreachable } from '../engines/index.ts'

/** Returns what is read; undefined if that fails. @throws the error if the signal has aborted, or if the region is unreachable */
export async function readOrUndefined<T>(read: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  try {
    return await read()
  } catch (cause) {
    signal.throwIfAborted()
    if (isUnreachable(cause)) throw cause
    return undefined
  }
}
