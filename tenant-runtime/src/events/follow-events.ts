// Sends a log's entries to one subscriber as server-sent events, page by page as the client reads them. Nothing is read
// ahead of the client, so the buffers are bounded.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EventPage } from './event-reader.ts'

export interface Subscription {
  /** Headers of the response, in addition to its own. */
  headers: Readonly<Record<string, string>>
  /** The last entry that the subscriber has; undefined when they want only new entries. */
  after: bigint | undefined
  /** Resolves to the position up to which the log is final, when that is beyond `after`. */
  beyond(after: bigint, signal: AbortSignal): Promise<bigint>
  /**
   * Reads a page of the entries that the subscriber may see. A failure is retried.
   * @throws StreamEndedError when the stream must end
   */
  read(after: bigint, upTo: bigint): Promise<EventPage>
  /** Checks the subscription at each heartbeat. Undefined lets it continue. */
  check(): Promise<End | undefined>
}

/** The reason for the end of a stream, which is sent as its last event. */
export interface End {
  code: 'SLOW_READER' | 'INVALID_TOKEN' | 'TENANT_CHANGED' | 'STOPPING' | 'EVENTS_GONE'
  message: string
}

export interface Pace {
  /** Milliseconds between heartbeats. */
  heartbeat: number
  /** The milliseconds after which a client that reads nothing is disconnected. It may connect again with its last ID. */
  timeout: number
  /** The milliseconds for which unread events and the reason of the end remain available to the client. */
  drainTimeout: number
  /** The milliseconds before a database that did not respond is queried again. */
  retryDelay: number
}

const defaultPace: Pace = { heartbeat: 15_000, timeout: 30_000, drainTimeout: 30_000, retryDelay: 1_000 }

const slowReader: End = {
  code: 'SLOW_READER',
  message: 'The events were not read in time. Connect again with the last ID.',
}

export class StreamEndedError extends Error {
  readonly end: End

  constructor(end: End) {
    super(end.message)
    this.end = end
  }
}

/** Sends entries until the stream ends. Never throws. `signal` aborts with `StreamEndedError` to state the reason. */
export async function followEvents(
  raw: ServerResponse,
  subscription: Subscription,
  signal: AbortSignal,
  pace: Pace = defaultPace,
): Promise<void> {
  const ended = new AbortController()
  raw.once('close', () => ended.abort(new Error('The client closed the connection.')))
  if (raw.destroyed) return
  const over = AbortSignal.any([signal, ended.signal])
  raw.writeHead(200, {
    ...subscription.headers,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-accel-buffering': 'no',
  })
  raw.write('retry: 2000\n\n')
  // An ID without data is not an event. It moves the position from which the client would continue.
  let position = ':'
  const beating = setInterval(() => {
    if (!raw.writableNeedDrain) raw.write(`${position}\n\n`)
    subscription.check().then(
      (end) => end && ended.abort(new StreamEndedError(end)),
      () => undefined,
    )
  }, pace.heartbeat)
  try {
    let after = subscription.after ?? (await subscription.beyond(-1n, over))
    raw.write(`id: ${after}\n\n`)
    for (;;) {
      const upTo = await subscription.beyond(after, over)
      while (after < upTo) {
        const page = await subscription.read(after, upTo).catch((error: unknown) => {
          if (error instanceof StreamEndedError) throw error
          return undefined
        })
        over.throwIfAborted()
        if (page === undefined) {
          await sleep(pace.retryDelay, undefined, { signal: over }).catch(() => over.throwIfAborted())
          continue
        }
        for (const { seq, payload } of page.events) {
          if (!raw.write(`id: ${seq}\ndata: ${payload}\n\n`)) await drained(raw, over, pace.timeout)
          after = seq
          position = `id: ${seq}`
        }
        if (page.isLast) after = upTo
        position = `id: ${after}`
      }
    }
  } catch (error) {
    finish(raw, error instanceof StreamEndedError ? error.end : undefined, pace.drainTimeout)
  } finally {
    clearInterval(beating)
  }
}

async function drained(raw: ServerResponse, over: AbortSignal, timeout: number): Promise<void> {
  const late = AbortSignal.timeout(timeout)
  await once(raw, 'drain', { signal: AbortSignal.any([over, late]) }).catch((error: unknown) => {
    over.throwIfAborted()
    throw late.aborted ? new StreamEndedError(slowReader) : error
  })
}

/** Sends the reason after the unread events, and disconnects a client that does not read it in time. */
function finish(raw: ServerResponse, end: End | undefined, drainTimeout: number): void {
  if (end === undefined) {
    raw.destroy()
    return
  }
  raw.end(`event: end\ndata: ${JSON.stringify(end)}\n\n`)
  const cut = setTimeout(() => raw.destroy(), drainTimeout)
  raw.once('close', () => clearTimeout(cut))
}
