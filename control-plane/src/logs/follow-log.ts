// Streams a service's log as server-sent events, from container to container, until the reader disconnects, is too slow, or
// may no longer read it.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Clock } from '../platform/clock.ts'
import { type LogLine, type LogOptions, EngineError } from '../engines/index.ts'
import { ControlError } from '../platform/errors.ts'
import { logTime } from './log-times.ts'

export interface Followed {
  /** Returns the log of the present container; it ends when the container does. */
  log: (options: LogOptions, signal: AbortSignal) => AsyncIterable<LogLine>
  tail: number
  since: string | undefined
  /** The time of the last line that the reader has. Lines up to it are left out. */
  after: string | undefined
  /** Checks whether the reader may still read the log. @throws ControlError if not */
  checkAccess: () => Promise<void>
}

/** The time between two comments. The reader's access is checked as often. */
const heartbeatMilliseconds = 15_000
/** The time after which a stream ends. The reader then connects again with its last id, and a key that is still valid. */
const maxStreamMilliseconds = 300_000
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
  clock: Pick<Clock, 'every' | 'later' | 'sleep' | 'timeout'>,
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
  const stops: (() => void)[] = []
  const end = (text: string) => {
    if (raw.writableEnded) return
    raw.end(text)
    stops.push(clock.later(timeoutMilliseconds, () => raw.destroy()))
  }
  stops.push(
    clock.every(heartbeatMilliseconds, () => {
      if (raw.writableEnded) return
      raw.write(':\n\n')
      followed.checkAccess().catch((error: unknown) => {
        // While the database does not respond, the stream continues until its maximum time.
        if (error instanceof ControlError) end(endEvent(error.message))
      })
    }),
    clock.later(maxStreamMilliseconds, () => end('')),
  )
  try {
    const after = followed.after ?? (followed.tail === 0 ? await lastTime(followed, signal) : undefined)
    // A reader that has received no line yet then continues from here.
    if (after !== undefined) raw.write(`id: ${after}\n\n`)
    for await (const line of linesOf({ ...followed, after }, clock, signal)) {
      if (raw.writableEnded) return
      const event = `event: log\nid: ${line.at}\ndata: ${JSON.stringify({ at: line.at, stream: line.stream, text: line.text })}\n\n`
      if (!raw.write(event))
        await once(raw, 'drain', { signal: AbortSignal.any([signal, clock.timeout(timeoutMilliseconds)]) })
    }
  } catch (error) {
    if (error instanceof EngineError) end(endEvent(error.message))
    else raw.destroy()
  } finally {
    for (const stop of stops) stop()
  }
}

function endEvent(message: string): string {
  return `event: end\ndata: ${JSON.stringify({ message })}\n\n`
}

/** Returns the time of the log's last line; undefined if it has none. */
async function lastTime({ log, since }: Followed, signal: AbortSignal): Promise<string | undefined> {
  let last: string | undefined
  for await (const { at } of log({ follow: false, tail: 1, ...(since === undefined ? {} : { since }) }, signal))
    last = logTime(at) ?? at
  return last
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
