// Merges streams of events into one, which ends with the first of them.

/** Maximum number of values that wait for the caller. */
const maxWaiting = 1_000

/** The parts of a merged stream. */
interface Parts<T> {
  streams: readonly AsyncIterable<T>[]
  /** Other reasons for its end. */
  ends: readonly Promise<void>[]
}

/**
 * Yields the values of all streams as they arrive. It ends when one of them ends or fails, for another reason of the parts, when too many
 * values wait, or when the signal aborts, and then ends the others.
 * @throws the error of the stream that has failed
 * @param open opens the streams; their signal aborts at the end
 */
export async function* mergeStreams<T>(
  open: (signal: AbortSignal) => Parts<T>,
  signal: AbortSignal,
): AsyncGenerator<T, undefined> {
  const end = new AbortController()
  const { streams, ends } = open(AbortSignal.any([signal, end.signal]))
  const arrived: T[] = []
  const state: { hasEnded: boolean; failure: Error | undefined; wake: () => void } = {
    hasEnded: false,
    failure: undefined,
    wake: () => {},
  }
  const finish = () => {
    state.hasEnded = true
    state.wake()
  }
  const read = async (stream: AsyncIterable<T>) => {
    for await (const value of stream) {
      if (arrived.push(value) > maxWaiting) return
      state.wake()
    }
  }
  const readers = [...streams.map(read), ...ends].map((reader) =>
    reader.then(finish, (error: unknown) => {
      state.failure ??= error instanceof Error ? error : new Error('A stream has failed.', { cause: error })
      finish()
    }),
  )
  const hasEnded = () => state.hasEnded
  try {
    for (;;) {
      while (arrived.length > 0) yield* arrived.splice(0)
      if (hasEnded()) break
      await new Promise<void>((resolve) => {
        state.wake = resolve
        if (arrived.length > 0 || hasEnded()) resolve()
      })
    }
  } finally {
    end.abort()
    await Promise.all(readers)
  }
  signal.throwIfAborted()
  if (state.failure !== undefined) throw state.failure
}
