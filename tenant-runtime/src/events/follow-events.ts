// One subscriber: what the log has for them, as server-sent events, page by page as they take it. Nothing is read ahead
// of the reader, so nothing is buffered without bound.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EventPage } from './event-reader.ts'

export interface Subscription {
  /** Of the answer, beside its own. */
  headers: Readonly<Record<string, string>>
  /** The last entry that the subscriber has; undefined for whoever wants what comes from now on. */
  after: bigint | undefined
  /** Up to where the log is final, as soon as that is beyond `after`. */
  beyond(after: bigint, signal: AbortSignal): Promise<bigint>
  /** At most a page of what the subscriber may see. Tried again when it fails. @throws Ended when there is no going on */
  read(after: bigint, upTo: bigint): Promise<EventPage>
  /** Asked with each heartbeat. Undefined: they may go on. */
  objection(): Promise<End | undefined>
}

/** Why a stream ended: sent as its last event. */
export interface End {
  code: 'SLOW_READER' | 'INVALID_TOKEN' | 'TENANT_CHANGED' | 'STOPPING' | 'EVENTS_GONE'
  message: string
}

export interface Pace {
  /** Milliseconds. */
  heartbeat: number
  /** A reader that takes nothing for so long is cut off; they may come again with the last id they have. */
  timeout: number
  /** What is still unread then, and the reason behind it, is kept so long for them. */
  farewell: number
  /** Until a database that did not answer is asked again. */
  again: number
}

const defaultPace: Pace = { heartbeat: 15_000, timeout: 30_000, farewell: 30_000, again: 1_000 }

const slowReader: End = {
  code: 'SLOW_READER',
  message: 'what was sent was not read in time; connect again with the last id',
}

export class Ended extends Error {
  readonly end: End

  constructor(end: End) {
    super(end.message)
    this.end = end
  }
}

/** Returns when it is over; never throws. `signal` aborts with `Ended` to say why. */
export async function followEvents(
  raw: ServerResponse,
  subscription: Subscription,
  signal: AbortSignal,
  pace: Pace = defaultPace,
): Promise<void> {
  const left = new AbortController()
  raw.once('close', () => left.abort(new Error('the reader has left')))
  if (raw.destroyed) return
  const over = AbortSignal.any([signal, left.signal])
  raw.writeHead(200, {
    ...subscription.headers,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-accel-buffering': 'no',
  })
  raw.write('retry: 2000\n\n')
  // An id without data is no event: it moves the place from which the reader would come again.
  let location = ':'
  const beating = setInterval(() => {
    if (!raw.writableNeedDrain) raw.write(`${location}\n\n`)
    subscription.objection().then(
      (end) => end && left.abort(new Ended(end)),
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
          if (error instanceof Ended) throw error
          return undefined
        })
        over.throwIfAborted()
        if (page === undefined) {
          await sleep(pace.again, undefined, { signal: over }).catch(() => over.throwIfAborted())
          continue
        }
        for (const { seq, payload } of page.events) {
          if (!raw.write(`id: ${seq}\ndata: ${payload}\n\n`)) await drained(raw, over, pace.timeout)
          after = seq
          location = `id: ${seq}`
        }
        if (page.isLast) after = upTo
        location = `id: ${after}`
      }
    }
  } catch (error) {
    finish(raw, error instanceof Ended ? error.end : undefined, pace.farewell)
  } finally {
    clearInterval(beating)
  }
}

async function drained(raw: ServerResponse, over: AbortSignal, timeout: number): Promise<void> {
  const late = AbortSignal.timeout(timeout)
  await once(raw, 'drain', { signal: AbortSignal.any([over, late]) }).catch((error: unknown) => {
    over.throwIfAborted()
    throw late.aborted ? new Ended(slowReader) : error
  })
}

/** The reason goes out behind what is still unread; who does not read that either is cut off. */
function finish(raw: ServerResponse, end: End | undefined, farewell: number): void {
  if (end === undefined) {
    raw.destroy()
    return
  }
  raw.end(`event: end\ndata: ${JSON.stringify(end)}\n\n`)
  const cut = setTimeout(() => raw.destroy(), farewell)
  raw.once('close', () => clearTimeout(cut))
}
