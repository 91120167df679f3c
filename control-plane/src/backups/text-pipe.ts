// A pipe for text between two that work at their own pace: whoever writes waits while nobody has read.

interface TextPipe {
  write(text: string): Promise<void>
  /** Nothing more comes. */
  end(): void
  /** Whoever reads gets the error. */
  fail(cause: Error): void
  readonly content: AsyncIterable<Uint8Array>
}

/** Bytes that may wait to be read. */
const roomBytes = 256 * 1024

export function createTextPipe(): TextPipe {
  let waiting: Buffer[] = []
  let bytes = 0
  let ended = false
  let failure: Error | undefined
  let left = false
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
      left = true
      move()
    }
  }

  return {
    async write(text) {
      while (bytes > roomBytes && !left) await moved.promise
      if (left) throw new Error('nobody reads any more')
      const chunk = Buffer.from(text)
      waiting.push(chunk)
      bytes += chunk.length
      move()
    },
    end() {
      ended = true
      move()
    },
    fail(cause) {
      failure = cause
      move()
    },
    content: content(),
  }
}
