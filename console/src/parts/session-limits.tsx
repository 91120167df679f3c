// States what the session cannot do, and why actions are not shown.
import { limitOf, limitText, useSession } from '../session.ts'
import { Notice } from './feedback.tsx'

/** The limits of the session; nothing for an admin key without limits. */
export function SessionLimits() {
  const session = useSession()
  const { scope } = session
  const limit = limitOf(session)
  if (scope === 'admin' && limit === 'nothing') return null
  return (
    <Notice kind="info">
      {scope !== 'admin' && (
        <>
          This session has the scope {scope}: it can read {scope === 'billing' ? 'usage and invoices' : 'everything'},
          but change nothing. Actions are not shown.{' '}
        </>
      )}
      {limit !== 'nothing' && (
        <>
          It is limited to {limitText(session)}. Figures of all tenants, live updates and screens of the whole
          installation need a key without limits.
        </>
      )}
    </Notice>
  )
}
