// The context of a caller, which every access to a tenant's data requires (specification, section 5).

export type RlsContext =
  | { readonly role: 'anon' }
  | { readonly role: 'authenticated'; readonly userId: string; readonly claims: string }
  /** The explicit bypass. `reason` names the key or the part of the runtime that uses it, for the log. */
  | { readonly role: 'service'; readonly reason: string }

export const anonymous: RlsContext = { role: 'anon' }

/** Whether two contexts have the same settings. */
export function isSameCaller(one: RlsContext, other: RlsContext): boolean {
  if (one.role !== 'authenticated' || other.role !== 'authenticated') return one.role === other.role
  return one.userId === other.userId && one.claims === other.claims
}

/** Returns the settings that the home's policies read, as values for `set_config`. */
export function contextSettings(
  tenantId: string,
  context: RlsContext,
): [tenant: string, role: string, user: string, claims: string] {
  switch (context.role) {
    case 'anon':
      return [tenantId, 'anon', '', '{"role":"anon"}']
    case 'authenticated':
      return [tenantId, 'authenticated', context.userId, context.claims]
    case 'service':
      return [tenantId, 'service_role', '', '{"role":"service_role"}']
  }
}
