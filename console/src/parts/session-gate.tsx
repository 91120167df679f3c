// Shows the sign-in to users without a session, and the console to those with one.
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { call, get, setCsrfToken, whenSessionEnds, type ApiError } from '../api/client.ts'
import { toApiError } from '../api/use-load.ts'
import { ErrorBox, Loading } from './feedback.tsx'

type State<Session> =
  | { is: 'loading' }
  | { is: 'failed'; error: ApiError }
  | { is: 'out'; hasEnded: boolean }
  | { is: 'in'; session: Session }

interface SessionGateProps<Session> {
  /** The path of the own session. */
  path: string
  /** Whether an error of the first request means that there is no session. */
  isSignedOut: (error: ApiError) => boolean
  signIn: (hasEnded: boolean, onSignIn: (session: Session) => void) => ComponentChildren
  children: (session: Session, onSignOut: () => void) => ComponentChildren
}

/** The session of the page. */
export function SessionGate<Session extends { csrf_token: string }>(props: SessionGateProps<Session>) {
  const { path, isSignedOut, signIn, children } = props
  const [state, setState] = useState<State<Session>>({ is: 'loading' })
  const enter = (session: Session) => {
    setCsrfToken(session.csrf_token)
    setState({ is: 'in', session })
  }
  const load = () => {
    setState({ is: 'loading' })
    get<Session>(path).then(enter, (error: unknown) => {
      const failure = toApiError(error)
      if (isSignedOut(failure)) setState({ is: 'out', hasEnded: failure.code === 'SESSION_ENDED' })
      else setState({ is: 'failed', error: failure })
    })
  }
  useEffect(() => {
    whenSessionEnds(() => setState((before) => (before.is === 'in' ? { is: 'out', hasEnded: true } : before)))
    load()
  }, [])
  const isIn = state.is === 'in'
  useEffect(() => {
    if (!isIn) setCsrfToken(undefined)
  }, [isIn])

  const signOut = () => {
    const out = () => setState({ is: 'out', hasEnded: false })
    // A session that could not be ended is still valid, so the page must not look as if it were over.
    call('DELETE', path).then(out, (error: unknown) => {
      const failure = toApiError(error)
      if (failure.status === 401) out()
      else setState({ is: 'failed', error: failure })
    })
  }
  switch (state.is) {
    case 'loading':
      return <Loading what="the console" />
    case 'failed':
      return (
        <main class="lonely">
          <ErrorBox error={state.error} onRetry={load} />
        </main>
      )
    case 'out':
      return <>{signIn(state.hasEnded, enter)}</>
    case 'in':
      return <>{children(state.session, signOut)}</>
  }
}
