// Platform keys, which authenticate operators and billing jobs.
import type { RecordedWrite } from '../platform/recorded-write.ts'

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

/** Stores platform keys, but only their hashes. */
export interface PlatformKeyStore {
  /** Finds a key by the SHA-256 of its text; revoked and expired ones too. */
  find(sha256: string): Promise<PlatformKey | undefined>
  /** Lists all keys, revoked and expired ones too. */
  list(): Promise<PlatformKey[]>
  /** Creates a key with the given text, of which only the hash is stored. */
  create(name: string, scope: Scope, text: string, write: RecordedWrite): Promise<PlatformKey>
  /**
   * Revokes a key.
   * @throws ControlError KEY_NOT_FOUND, LAST_ADMIN_KEY
   */
  revoke(id: string, write: RecordedWrite): Promise<PlatformKey>
  /**
   * Creates a key that replaces another one. The old key stays valid until `expireAt`.
   * @throws ControlError KEY_NOT_FOUND, KEY_NOT_LIVE
   */
  rotate(id: string, text: string, expireAt: Date, write: RecordedWrite): Promise<PlatformKey>
  /**
   * Creates the first admin key when there is no valid one.
   * @returns whether `text` is now a key
   */
  createFirst(text: string, write: RecordedWrite): Promise<boolean>
}
