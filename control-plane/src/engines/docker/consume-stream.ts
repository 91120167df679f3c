// An answer that goes on, read until it ends, until the caller's signal says so or until nothing came for too long.
import type { Readable } from 'node:stream'
import { engineError } from './errors.ts'
import { TimeUp } from './within.ts'

interface Timeouts {
  /** Silence longer than this is the end; undefined: silence is normal, as it is for events. */
  silentSeconds?: number
}

interface ConsumedStream extends AsyncIterable<Buffer> {
  /** Something else moved, e.g. bytes in the other direction. */
  moved: () => void
}

/** Destroys the stream at its end, whatever ends it. @throws EngineError, or the signal's reason */
export function consumeStream(
  doing: string,
  stream: Readable,
  signal: AbortSignal,
  { silentSeconds }: Timeouts = {},
): ConsumedStream {
  let timer: NodeJS.Timeout | undefined
  const cut = () => stream.destroy(signal.reason instanceof Error ? signal.reason : new Error('cut off'))
  // Whoever reads gets the error; before that it has no listener, which would end this process.
  stream.on('error', () => undefined)
  if (signal.aborted) cut()
  signal.addEventListener('abort', cut, { once: true })
  if (silentSeconds !== undefined) {
    timer = setTimeout(() => stream.destroy(new TimeUp(`silent for ${silentSeconds} s`)), silentSeconds * 1000)
  }
  async function* read(): AsyncGenerator<Buffer, undefined> {
    try {
      for await (const chunk of stream) {
        timer?.refresh()
        yield chunk as Buffer
      }
    } catch (cause) {
      signal.throwIfAborted()
      throw engineError(doing, cause)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', cut)
      stream.destroy()
    }
  }
  return { [Symbol.asyncIterator]: read, moved: () => void timer?.refresh() }
}
