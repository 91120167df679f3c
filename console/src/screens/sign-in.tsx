// The sign-in of operators: exchanges a platform key for a session.
import { call } from '../api/client.ts'
import type { OwnSession } from '../api/types.ts'
import { SignInForm } from '../parts/sign-in-form.tsx'

/** The screen of operators without a session. */
export function SignIn({ hasEnded, onSignIn }: { hasEnded: boolean; onSignIn: (session: OwnSession) => void }) {
  return (
    <SignInForm
      title="Sign in to the console"
      label="Platform key"
      hint={
        <>
          It begins with <code>tnp_</code>. The first one is in the file <code>secrets/platform-key</code> of the
          installation.
        </>
      }
      hasEnded={hasEnded}
      exchange={async (key) => {
        const { body } = await call<OwnSession>('POST', '/v1/console-sessions', { body: { platform_key: key } })
        return () => onSignIn(body)
      }}
    />
  )
}
