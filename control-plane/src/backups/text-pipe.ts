// A pipe for text between a writer and a reader of different speeds. The writer waits while nothing is read.

/** The maximum number of bytes that wait to be read. */
const roomBytes = 256 * 1024

export function createTextPipe() {
  let waiting: Buffer[] = []
  let bytes = 0
  let ended = false
  let failure: Error | undefined
  let isReaderGone = false
  let moved = Promise.withResolvers<undefined>()
  const move = () => {
    moved.resolve(undefined)
    moved = Promise.withResolvers()
  }

  async function* content(): AsyncGenerator<Uint8Array, undefined> {
    try {
      for (;;) {
        if (failure !== undefined) throw failure
        if (waiting.length > 0) {
          const all = Buffer.concat(waiting)
          waiting = []
          bytes = 0
          move()
          yield all
        } else if (ended) return
        else await moved.promise
      }
    } finally {
      isReaderGone = true
      move()
    }
  }

  return {
    async write(text: string): Promise<void> {
      while (bytes > roomBytes && !isReaderGone) await moved.promise
      if (isReaderGone) throw new Error('The reader of the pipe has ended.')
      const chunk = Buffer.from(text)
      waiting.push(chunk)
      bytes += chunk.length
      move()
    },
    /** Ends the text. */
    end(): void {
      ended = true
      move()
    },
    /** Passes an error to the reader. */
    fail(cause: Error): void {
      failure = cause
      move()
    },
    content: content(),
  }
}
