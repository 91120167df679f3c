// A time limit for one call of somebody else's code.

export class TimeUp extends Error {}

/**
 * Ends with the call, with the caller's signal, or after `milliseconds`, whichever is first: a call that ignores its signal
 * holds nobody up.
 * @throws TimeUp, the signal's reason, or what the call throws
 */
export async function within<T>(
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
  const timer = setTimeout(() => stop(new TimeUp(`no answer within ${milliseconds / 1000} s`)), milliseconds)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([call(limit.signal), cut])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}
