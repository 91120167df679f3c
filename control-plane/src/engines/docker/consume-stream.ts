// Reads a response that streams until it ends, its signal aborts, or it is silent for too long.
import type { Readable } from 'node:stream'
import { engineError } from './errors.ts'
import { CallTimeout } from './with-timeout.ts'

interface Timeouts {
  /** Maximum silence, after which the stream is destroyed; undefined for streams that may be silent, such as events. */
  silentSeconds?: number
}

interface ConsumedStream extends AsyncIterable<Buffer> {
  /** Restarts the limit of silence, for example because bytes moved in the other direction. */
  noteActivity: () => void
}

/** Reads a stream and destroys it at its end, whatever the cause. @throws EngineError, or the signal's reason */
export function consumeStream(
  doing: string,
  stream: Readable,
  signal: AbortSignal,
  { silentSeconds }: Timeouts = {},
): ConsumedStream {
  let timer: NodeJS.Timeout | undefined
  const cut = () =>
    stream.destroy(signal.reason instanceof Error ? signal.reason : new Error('The stream was aborted.'))
  // The reader gets the error. Before there is one, an error without a listener would end this process.
  stream.on('error', () => undefined)
  if (signal.aborted) cut()
  signal.addEventListener('abort', cut, { once: true })
  if (silentSeconds !== undefined) {
    timer = setTimeout(
      () => stream.destroy(new CallTimeout(`The stream was silent for ${silentSeconds} s.`)),
      silentSeconds * 1000,
    )
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
  return { [Symbol.asyncIterator]: read, noteActivity: () => void timer?.refresh() }
}
