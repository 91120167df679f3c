// Platform keys: what an operator or a billing job proves itself with.
import type { RecordedWrite } from '../platform/recorded-write.ts'

export const scopes = ['admin', 'read', 'billing'] as const
export type Scope = (typeof scopes)[number]

export interface PlatformKey {
  id: string
  name: string
  /** First characters of the key, to tell keys apart. */
  prefix: string
  scope: Scope
  createdAt: Date
  expiresAt: Date | undefined
  revokedAt: Date | undefined
  replacedBy: string | undefined
}

/** Platform keys, of which only the hash is stored. */
export interface PlatformKeyStore {
  /** By the SHA-256 of the key's text; revoked and expired ones too. */
  find(sha256: string): Promise<PlatformKey | undefined>
  /** All keys, revoked and expired ones too. */
  list(): Promise<PlatformKey[]>
  /** Makes a key of the given text, of which only the hash is stored. */
  create(name: string, scope: Scope, text: string, write: RecordedWrite): Promise<PlatformKey>
  /** @throws ControlError KEY_NOT_FOUND, LAST_ADMIN_KEY */
  revoke(id: string, write: RecordedWrite): Promise<PlatformKey>
  /**
   * A new key beside the old one, which lives on until `expireAt`.
   * @throws ControlError KEY_NOT_FOUND, KEY_NOT_LIVE
   */
  rotate(id: string, text: string, expireAt: Date, write: RecordedWrite): Promise<PlatformKey>
  /** Makes the first admin key when there is no live one. @returns whether `text` is now a key */
  createFirst(text: string, write: RecordedWrite): Promise<boolean>
}
