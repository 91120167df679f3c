// Loads a path of the API, and loads it again when its subject changes.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { onChanges } from './changes.ts'
import { ApiError, backgroundHeaders, call } from './client.ts'

/** The state of a path: its data stays while it is loaded again. */
export interface Loaded<Body> {
  data: Body | undefined
  etag: string | undefined
  headers: Headers | undefined
  error: ApiError | undefined
  isLoading: boolean
  reload: () => void
}

/** The reason for which a path is loaded again: changes of a tenant or of any, or an interval for what no change reports. */
export type Live = { tenant: string } | 'all' | { everyMs: number } | undefined

interface State<Body> {
  path: string | undefined
  data: Body | undefined
  etag: string | undefined
  headers: Headers | undefined
  error: ApiError | undefined
  isLoading: boolean
}

/** The minimum time between two loads that changes of one tenant cause, and that changes of any tenant cause. */
const liveMilliseconds = 1_000
const fleetMilliseconds = 5_000

const nothing = { data: undefined, etag: undefined, headers: undefined, error: undefined }

/** Loads a path; undefined loads nothing. `more` are headers that never change. */
export function useLoad<Body>(path: string | undefined, live?: Live, more: Record<string, string> = {}): Loaded<Body> {
  const empty = { path, ...nothing, isLoading: path !== undefined }
  const [state, setState] = useState<State<Body>>(empty)
  const [turn, setTurn] = useState(0)
  const isBackground = useRef(false)
  const reload = useCallback(() => {
    isBackground.current = false
    setTurn((before) => before + 1)
  }, [])
  const reloadLive = useCallback(() => {
    isBackground.current = true
    setTurn((before) => before + 1)
  }, [])
  const subject = typeof live === 'object' ? ('tenant' in live ? live.tenant : undefined) : live
  useLive(path === undefined ? undefined : subject, reloadLive)
  const everyMs = typeof live === 'object' && 'everyMs' in live ? live.everyMs : undefined
  useEffect(() => {
    if (path === undefined || everyMs === undefined) return undefined
    const timer = setInterval(reloadLive, everyMs)
    return () => clearInterval(timer)
  }, [path, everyMs, reloadLive])

  useEffect(() => {
    if (path === undefined) {
      setState({ path, ...nothing, isLoading: false })
      return undefined
    }
    const stopping = new AbortController()
    setState((before) =>
      before.path === path ? { ...before, isLoading: true } : { path, ...nothing, isLoading: true },
    )
    const headers: Record<string, string> = isBackground.current ? { ...more, ...backgroundHeaders } : more
    isBackground.current = false
    call<Body>('GET', path, { signal: stopping.signal, headers }).then(
      ({ body, etag, headers: received }) =>
        setState({ path, data: body, etag, headers: received, error: undefined, isLoading: false }),
      (error: unknown) => {
        if (stopping.signal.aborted) return
        setState((before) => ({ ...before, error: toApiError(error), isLoading: false }))
      },
    )
    return () => stopping.abort()
  }, [path, turn])

  // The state of the path before is not shown for the new path.
  const shown = state.path === path ? state : empty
  return { ...shown, reload }
}

function useLive(subject: string | undefined, reload: () => void): void {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => {
    if (subject === undefined) return undefined
    const unsubscribe = onChanges((ids) => {
      if (subject !== 'all' && ids !== undefined && !ids.includes(subject)) return
      const milliseconds = subject === 'all' ? fleetMilliseconds : liveMilliseconds
      timer.current ??= setTimeout(() => {
        timer.current = undefined
        reload()
      }, milliseconds)
    })
    return () => {
      unsubscribe()
      clearTimeout(timer.current)
      timer.current = undefined
    }
  }, [subject, reload])
}

/** Converts an error of any kind for display. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  return new ApiError(0, 'CONSOLE', error instanceof Error ? error.message : 'Unexpected error.', undefined)
}
