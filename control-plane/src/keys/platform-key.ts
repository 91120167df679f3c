// Platform keys, which authenticate operators and billing jobs.

export const scopes = ['admin', 'read', 'billing'] as const
export type Scope = (typeof scopes)[number]

/** The one tenant or the one region that a limited key may use. Neither is set for an unlimited key. */
export interface KeyLimit {
  readonly tenantId?: string
  readonly region?: string
}

/** The rights of a key in addition to its scope. A key never creates one with more rights. */
export interface KeyRights extends KeyLimit {
  /** Networks of the clients that may use the key, in canonical form; empty: all clients. */
  readonly addresses: readonly string[]
  readonly expiresAt: Date | undefined
}

/** A platform key as callers see it: never the key itself. */
export interface PlatformKey {
  id: string
  name: string
  /** The first characters of the key, by which users recognize it. */
  prefix: string
  scope: Scope
  /** The tenant or the region that the key is limited to; empty for an unlimited key. */
  limit: KeyLimit
  /** Networks of the clients that may use the key, in canonical form; empty: all clients. */
  addresses: readonly string[]
  createdAt: Date
  expiresAt: Date | undefined
  revokedAt: Date | undefined
  replacedBy: string | undefined
}

/** Returns the rights of a key. */
export function rightsOf({ limit, addresses, expiresAt }: PlatformKey): KeyRights {
  return { ...limit, addresses, expiresAt }
}
