// Follows the tenant's event log: connects again after a lost connection, from the last position, so that no event is missed.
import { ApiError, backgroundHeaders, request } from '../../api/client.ts'
import { toApiError } from '../../api/use-load.ts'
import { readStream, type StreamedEvent } from './read-stream.ts'

/** An event of the log. */
export interface LoggedEvent {
  /** Its position in the log: a number that can have more digits than a JavaScript number. */
  id: string
  /** JSON. */
  text: string
}

interface LogListeners {
  onEvent: (event: LoggedEvent) => void
  /** Called with each new position, from which the log can be continued. */
  onPosition: (position: string) => void
  onConnected: () => void
  /** Called before each attempt after a lost connection. */
  onWait: (milliseconds: number) => void
}

const minWaitMilliseconds = 1_000
const maxWaitMilliseconds = 30_000

/** A stream sends something every 15 s. One without anything for this time is lost, as after a sleep of the computer. */
const silenceMilliseconds = 45_000

/** Errors of a stream's end after which its position is of no use. */
const finalEnds = new Set(['EVENTS_GONE'])

/**
 * Follows the log until the signal aborts.
 * @param filter the parameters of the stream
 * @param position the last event that the caller has; undefined for new events only
 * @throws ApiError when another attempt would be rejected too
 */
export async function followLog(
  filter: URLSearchParams,
  position: string | undefined,
  signal: AbortSignal,
  listeners: LogListeners,
): Promise<void> {
  const { onEvent, onPosition, onConnected, onWait } = listeners
  let last = position
  let wait = minWaitMilliseconds
  const take = ({ id, event, data }: StreamedEvent) => {
    if (event === 'end') {
      const { code, message } = JSON.parse(data ?? '{}') as { code: string; message: string }
      if (finalEnds.has(code)) throw new ApiError(0, code, message, undefined)
      return
    }
    if (id === undefined) return
    last = id
    onPosition(id)
    if (data !== undefined) onEvent({ id, text: data })
  }
  const isOver = () => signal.aborted
  for (let attempt = 0; !isOver(); attempt++) {
    const lost = new AbortController()
    const expectMore = () => setTimeout(() => lost.abort(), silenceMilliseconds)
    let timer = expectMore()
    try {
      const query = filter.toString()
      const response = await request('GET', `/events/v1${query === '' ? '' : `?${query}`}`, {
        signal: AbortSignal.any([signal, lost.signal]),
        isStream: true,
        headers: {
          accept: 'text/event-stream',
          ...(last === undefined ? {} : { 'last-event-id': last }),
          ...(attempt === 0 ? {} : backgroundHeaders),
        },
      })
      if (response.body === null) return
      onConnected()
      wait = minWaitMilliseconds
      for await (const event of readStream(response.body)) {
        clearTimeout(timer)
        timer = expectMore()
        take(event)
      }
    } catch (cause) {
      if (isOver()) return
      const error = toApiError(cause)
      if (isFinal(error)) throw error
    } finally {
      clearTimeout(timer)
    }
    onWait(wait)
    await sleep(wait, signal)
    wait = Math.min(2 * wait, maxWaitMilliseconds)
  }
}

/** Whether another attempt would fail in the same way. */
function isFinal({ status, code }: ApiError): boolean {
  return finalEnds.has(code) || (status >= 400 && status < 500)
}

function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, milliseconds)
    signal.addEventListener('abort', end)
  })
}
