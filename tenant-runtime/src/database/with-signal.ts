// Ends the wait for something that is acquired, without losing it.

/**
 * Waits until the signal aborts. What is acquired afterwards is passed to `release`.
 * @throws the reason of the signal
 */
export function withSignal<T>(
  acquiring: Promise<T>,
  signal: AbortSignal | undefined,
  release: (late: T) => void,
): Promise<T> {
  if (signal === undefined) return acquiring
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const abort = () => {
    reject(signal.reason)
    acquiring.then(release, () => undefined)
  }
  signal.addEventListener('abort', abort, { once: true })
  acquiring.finally(() => signal.removeEventListener('abort', abort)).then(resolve, reject)
  return promise
}
