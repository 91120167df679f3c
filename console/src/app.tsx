// The operators' console: signs in, then shows the navigation and the screen of the current address.
import { useEffect } from 'preact/hooks'
import { followChanges } from './api/changes.ts'
import type { OwnSession } from './api/types.ts'
import { Navigation } from './navigation.tsx'
import { SessionGate } from './parts/session-gate.tsx'
import { SessionLimits } from './parts/session-limits.tsx'
import { Shell } from './parts/shell.tsx'
import { useRoute } from './router.ts'
import { Screen } from './screens/screen.tsx'
import { SignIn } from './screens/sign-in.tsx'
import { limitOf, SessionContext, useSession } from './session.ts'

/** The whole console. */
export function App() {
  return (
    <SessionGate<OwnSession>
      path="/v1/console-sessions/current"
      // A key that may not be used from this address is no reason to keep others from signing in.
      isSignedOut={({ status, code }) => status === 401 || code === 'ADDRESS_NOT_ALLOWED'}
      signIn={(hasEnded, onSignIn) => <SignIn hasEnded={hasEnded} onSignIn={onSignIn} />}
    >
      {(session, onSignOut) => (
        <SessionContext.Provider value={session}>
          <Console onSignOut={onSignOut} />
        </SessionContext.Provider>
      )}
    </SessionGate>
  )
}

function Console({ onSignOut }: { onSignOut: () => void }) {
  const route = useRoute()
  const [section = 'fleet', subject = ''] = route.path
  const screen = `${section}/${subject}`
  // A limited key may not follow the changes of all tenants.
  const mayFollow = limitOf(useSession()) === 'nothing'
  useEffect(() => {
    followChanges(mayFollow)
    return () => followChanges(false)
  }, [mayFollow])
  return (
    <Shell screen={screen} navigation={<Navigation section={section} onSignOut={onSignOut} />}>
      <SessionLimits />
      <Screen key={screen} route={route} />
    </Shell>
  )
}
