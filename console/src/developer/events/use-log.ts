// The state of the events view: follows the log while the view is open and not paused.
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ApiError } from '../../api/client.ts'
import { toApiError } from '../../api/use-load.ts'
import { followLog, type LoggedEvent } from './follow-log.ts'

/** The newest events that the page keeps, and the maximum characters of all of them. */
const maxEvents = 500
const maxCharacters = 8_000_000

/** The filter of the log: names, separated by commas, or nothing. */
export interface LogFilter {
  type: string
  bucket: string
  collection: string
}

/** An event as the view shows it. */
export interface ShownEvent extends LoggedEvent {
  type: string
  /** ISO 8601; undefined if the event has none. */
  timestamp: string | undefined
  /** The changed thing, in a few words. */
  subject: string
}

/** The state of the connection. */
export type LogState = 'connecting' | 'following' | 'waiting' | 'paused' | 'failed'

/** Follows the log. */
export function useLog() {
  const [start, setStart] = useState<{ filter: LogFilter }>({ filter: { type: '', bucket: '', collection: '' } })
  const [isPaused, setPaused] = useState(false)
  const [state, setState] = useState<LogState>('connecting')
  const [error, setError] = useState<ApiError | undefined>(undefined)
  const [position, setPosition] = useState<string | undefined>(undefined)
  const [events, setEvents] = useState<readonly ShownEvent[]>([])
  const last = useRef<string | undefined>(undefined)
  useEffect(() => {
    if (isPaused) {
      setState('paused')
      return undefined
    }
    setState('connecting')
    setError(undefined)
    const stopping = new AbortController()
    let arrived: ShownEvent[] = []
    let frame: number | undefined
    // Many events in one moment are drawn once.
    const draw = () => {
      frame = undefined
      const added = arrived.reverse()
      arrived = []
      setEvents((before) => newest([...added, ...before]))
      setPosition(last.current)
    }
    const later = () => (frame ??= requestAnimationFrame(draw))
    followLog(parametersOf(start.filter), last.current, stopping.signal, {
      onConnected: () => setState('following'),
      onWait: () => setState('waiting'),
      onPosition(id) {
        last.current = id
        later()
      },
      onEvent(event) {
        arrived.push(toShown(event))
        later()
      },
    }).catch((cause: unknown) => {
      setState('failed')
      setError(toApiError(cause))
    })
    return () => {
      stopping.abort()
      if (frame !== undefined) {
        cancelAnimationFrame(frame)
        draw()
      }
    }
  }, [start, isPaused])
  const begin = (filter: LogFilter, from: string | undefined) => {
    last.current = from
    setPosition(from)
    setEvents([])
    setPaused(false)
    setStart({ filter })
  }
  return {
    events,
    state,
    error,
    position,
    isPaused,
    pause: setPaused,
    clear: () => setEvents([]),
    /** Empties the view, and follows with another filter, after a position or from now on. */
    begin,
    /** Connects again: from the same position, or from now where the log no longer has it. */
    retry: () => {
      if (error !== undefined && withoutPosition.has(error.code)) last.current = undefined
      setStart((before) => ({ ...before }))
    },
  }
}

/** Errors of a position that the log does not have. */
const withoutPosition = new Set(['EVENTS_GONE', 'INVALID_EVENT_ID'])

function newest(events: ShownEvent[]): ShownEvent[] {
  let characters = 0
  const end = events.findIndex(({ text }, at) => (characters += text.length) > maxCharacters || at >= maxEvents)
  // The newest event stays, however long it is.
  return end < 0 ? events : events.slice(0, Math.max(1, end))
}

function parametersOf(filter: LogFilter): URLSearchParams {
  const parameters = new URLSearchParams()
  for (const name of ['type', 'bucket', 'collection'] as const) {
    const names = filter[name].replaceAll(/\s+/g, '')
    if (names !== '') parameters.set(name, names)
  }
  return parameters
}

/** The members of an event that name its subject; `functions.…` have a name. */
interface Members {
  type?: unknown
  timestamp?: unknown
  collection?: unknown
  id?: unknown
  bucket?: unknown
  path?: unknown
  to_bucket?: unknown
  to_path?: unknown
  name?: unknown
  removed?: unknown
}

function toShown(event: LoggedEvent): ShownEvent {
  const members = JSON.parse(event.text) as Members
  const { type, timestamp } = members
  return {
    ...event,
    type: typeof type === 'string' ? type : 'event',
    timestamp: typeof timestamp === 'string' ? timestamp : undefined,
    subject: subjectOf(members),
  }
}

function subjectOf(event: Members): string {
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
  if (event.collection !== undefined) return `${text(event.collection)} ${text(event.id)}`
  if (event.to_path !== undefined)
    return `${text(event.bucket)}/${text(event.path)} → ${text(event.to_bucket)}/${text(event.to_path)}`
  if (event.path !== undefined) return `${text(event.bucket)}/${text(event.path)}`
  if (event.removed !== undefined) return `${text(event.bucket)}: ${text(event.removed)} objects`
  return event.bucket === undefined ? text(event.name ?? '') : text(event.bucket)
}
