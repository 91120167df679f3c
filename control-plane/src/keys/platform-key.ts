// Platform keys, which authenticate operators and billing jobs.

export const scopes = ['admin', 'read', 'billing'] as const
export type Scope = (typeof scopes)[number]

export interface PlatformKey {
  id: string
  name: string
  /** The first characters of the key, by which users recognize it. */
  prefix: string
  scope: Scope
  createdAt: Date
  expiresAt: Date | undefined
  revokedAt: Date | undefined
  replacedBy: string | undefined
}
