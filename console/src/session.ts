// The session of the signed-in operator, for all screens.
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { OwnSession, Scope } from './api/types.ts'

export const SessionContext = createContext<OwnSession | undefined>(undefined)

/** Returns the session. @throws Error outside of the signed-in part of the console */
export function useSession(): OwnSession {
  const session = useContext(SessionContext)
  if (session === undefined) throw new Error('There is no session.')
  return session
}

/** Whether the session may change things. */
export function useIsAdmin(): boolean {
  return useSession().scope === 'admin'
}

/** Returns what the session's key is limited to: nothing, a region, or a tenant. */
export function limitOf({ tenant_id: tenantId, region }: OwnSession): 'nothing' | 'region' | 'tenant' {
  if (tenantId !== null) return 'tenant'
  return region === null ? 'nothing' : 'region'
}

/** The sessions that may open a screen: their scopes, and the narrowest limit of their keys. */
export interface ScreenAccess {
  scopes: readonly Scope[]
  limit: 'nothing' | 'region' | 'tenant'
}

const widths = ['nothing', 'region', 'tenant']

/**
 * Returns why the session may not use a screen; undefined if it may.
 * @param access the scopes that may use it, and the narrowest limit with which a key may
 */
export function reasonAgainst(session: OwnSession, { scopes, limit }: ScreenAccess): string | undefined {
  if (!scopes.includes(session.scope))
    return `It needs a key with the scope ${scopes.join(' or ')}. This session has the scope ${session.scope}.`
  if (widths.indexOf(limitOf(session)) <= widths.indexOf(limit)) return undefined
  const subject = limit === 'nothing' ? 'the whole installation' : 'a whole region'
  return `It is about ${subject}. This session is limited to ${limitText(session)}.`
}

/** Returns what the session is limited to, in words. */
export function limitText({ tenant_id: tenantId, region }: OwnSession): string {
  if (tenantId !== null) return `the tenant ${tenantId}`
  return region === null ? 'nothing' : `the region ${region}`
}
