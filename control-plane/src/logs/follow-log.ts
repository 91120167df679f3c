// Streams a service's log as server-sent events, from container to container, until the reader disconnects or is too
// slow.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Clock } from '../platform/clock.ts'
import { type LogLine, type LogOptions, EngineError } from '../engines/index.ts'
import { logTime } from './log-times.ts'

export interface Followed {
  /** Returns the log of the present container; it ends when the container does. */
  log: (options: LogOptions, signal: AbortSignal) => AsyncIterable<LogLine>
  tail: number
  since: string | undefined
  /** The time of the last line that the reader has. Lines up to it are left out. */
  after: string | undefined
}

const heartbeatMilliseconds = 15_000
/** The maximum time for which a reader may take nothing. It can then reconnect with its last id. */
const timeoutMilliseconds = 30_000
/** The time between the end of a container and the search for the next one. */
const retryMilliseconds = 1_000
/** The maximum number of lines that are read when a log continues. */
const maxLines = 10_000

/** Streams a log and returns at its end. Never throws. Nothing is read ahead of the reader. */
export async function followLog(
  raw: ServerResponse,
  followed: Followed,
  clock: Pick<Clock, 'every' | 'sleep' | 'timeout'>,
): Promise<void> {
  const disconnected = new AbortController()
  raw.once('close', () => disconnected.abort())
  if (raw.destroyed) return
  const { signal } = disconnected
  raw.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  raw.write('retry: 2000\n\n')
  const stopBeating = clock.every(heartbeatMilliseconds, () => void raw.write(':\n\n'))
  try {
    for await (const line of linesOf(followed, clock, signal)) {
      const event = `event: log\nid: ${line.at}\ndata: ${JSON.stringify({ at: line.at, stream: line.stream, text: line.text })}\n\n`
      if (!raw.write(event))
        await once(raw, 'drain', { signal: AbortSignal.any([signal, clock.timeout(timeoutMilliseconds)]) })
    }
  } catch (error) {
    if (error instanceof EngineError) raw.end(`event: end\ndata: ${JSON.stringify({ message: error.message })}\n\n`)
    else raw.destroy()
  } finally {
    stopBeating()
  }
}

async function* linesOf(
  { log, tail, since, after }: Followed,
  clock: Pick<Clock, 'sleep'>,
  signal: AbortSignal,
): AsyncGenerator<LogLine, undefined> {
  let last = after
  for (;;) {
    const options =
      last === undefined
        ? { follow: true, tail, ...(since === undefined ? {} : { since }) }
        : { follow: true, tail: maxLines, since: last }
    for await (const line of log(options, signal)) {
      const at = logTime(line.at) ?? line.at
      if (last !== undefined && at <= last) continue
      last = at
      yield { ...line, at }
    }
    await clock.sleep(retryMilliseconds, signal)
  }
}
