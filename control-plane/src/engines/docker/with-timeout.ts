// A time limit for one call of code that may ignore its signal.

export class CallTimeout extends Error {}

/**
 * Ends with the call, with the caller's signal, or after `milliseconds`, whichever is first. A call that ignores its
 * signal does not block the caller.
 * @throws CallTimeout, the signal's reason, or the error of the call
 */
export async function withTimeout<T>(
  milliseconds: number,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted()
  const limit = new AbortController()
  const { promise: cut, reject } = Promise.withResolvers<never>()
  const stop = (reason: unknown) => {
    reject(reason)
    limit.abort(reason)
  }
  const onAbort = () => stop(signal.reason)
  const timer = setTimeout(() => stop(new CallTimeout(`No response within ${milliseconds / 1000} s.`)), milliseconds)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([call(limit.signal), cut])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}
