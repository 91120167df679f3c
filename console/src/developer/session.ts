// The session of the signed-in developer, for all screens.
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'

/** The body of `/console/v1/session`. */
export interface DeveloperSession {
  tenant_id: string
  tenant_name: string
  csrf_token: string
  /** Times in ISO 8601. */
  expires_at: string
  idle_expires_at: string
}

export const SessionContext = createContext<DeveloperSession | undefined>(undefined)

/** Returns the session. @throws Error outside of the signed-in part of the console */
export function useSession(): DeveloperSession {
  const session = useContext(SessionContext)
  if (session === undefined) throw new Error('There is no session.')
  return session
}
