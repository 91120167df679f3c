// What a screen shows while it waits, when it failed, and when there is nothing to show.
import type { ComponentChildren } from 'preact'
import type { ApiError } from '../api/client.ts'
import type { Loaded } from '../api/use-load.ts'

/** Shows that something is loading, in words. */
export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      <span class="spinner" aria-hidden="true" /> Loading {what} …
    </p>
  )
}

/** Shows an error as the API returned it, with the ID of the request. */
export function ErrorBox({ error, onRetry }: { error: ApiError; onRetry?: (() => void) | undefined }) {
  return (
    <div class="notice notice-bad" role="alert">
      <p class="notice-text">{error.message}</p>
      <p class="notice-detail">
        {error.status > 0 && <>Status {error.status} · </>}
        <code>{error.code}</code>
        {error.requestId !== undefined && (
          <>
            {' '}
            · request <code>{error.requestId}</code>
          </>
        )}
      </p>
      {onRetry !== undefined && (
        <button type="button" class="button small" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

/** Shows a message with a meaning: good, warn or bad. */
export function Notice({ kind, children }: { kind: 'good' | 'warn' | 'bad' | 'info'; children: ComponentChildren }) {
  return (
    <div class={`notice notice-${kind}`} role="status">
      {children}
    </div>
  )
}

/** Shows that there is nothing yet, and the next step. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      <div class="empty-text">{children}</div>
    </div>
  )
}

interface LoadProps<Body> {
  load: Loaded<Body>
  /** What is loaded, for the text of the wait. */
  what: string
  children: (body: Body) => ComponentChildren
}

/** Shows what was loaded, or that it is loading, or the error. Data stays visible while it is loaded again. */
export function Load<Body>({ load, what, children }: LoadProps<Body>) {
  const { data, error, reload } = load
  return (
    <>
      {error !== undefined && <ErrorBox error={error} onRetry={reload} />}
      {data !== undefined ? children(data) : error === undefined && <Loading what={what} />}
    </>
  )
}
