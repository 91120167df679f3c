// Who asks: the one value that every access to a tenant's data takes (specification, section 5).

export type RlsContext =
  | { readonly role: 'anon' }
  | { readonly role: 'authenticated'; readonly userId: string; readonly claims: string }
  /** The explicit bypass: `reason` says which key or which part of the runtime uses it, and goes to the log. */
  | { readonly role: 'service'; readonly reason: string }

export const anonymous: RlsContext = { role: 'anon' }

/** True for two whose settings are the same. */
export function isSameCaller(one: RlsContext, other: RlsContext): boolean {
  if (one.role !== 'authenticated' || other.role !== 'authenticated') return one.role === other.role
  return one.userId === other.userId && one.claims === other.claims
}

/** The settings that the policies in the home read, as `set_config` values. */
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
