// Stores platform keys in the control database.
import { randomUUID } from 'node:crypto'
import type { PlatformKey as KeyRow } from '../../../prisma/client/client.ts'
import { ControlError } from '../platform/errors.ts'
import { keyHash, platformKeyPrefix } from './key-text.ts'
import type { PlatformKey, Scope } from './platform-key.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { lock } from '../platform/locks.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'

interface PlatformKeyStoreOptions {
  database: Database
  now: () => Date
}

/** Stores platform keys, but only their hashes. */
export type PlatformKeyStore = ReturnType<typeof createPlatformKeyStore>

/** Creates the store of platform keys, on the control database. */
export function createPlatformKeyStore({ database, now }: PlatformKeyStoreOptions) {
  const live = () => ({ revokedAt: null, OR: [{ expiresAt: null }, { expiresAt: { gt: now() } }] })

  const insert = async (transaction: Transaction, name: string, scope: Scope, text: string) =>
    toKey(
      await transaction.platformKey.create({
        data: {
          id: randomUUID(),
          name,
          scope,
          prefix: text.slice(0, platformKeyPrefix.length + 6),
          sha256: keyHash(text),
          createdAt: now(),
        },
      }),
    )

  const found = async (transaction: Transaction, id: string) => {
    const row = await transaction.platformKey.findUnique({ where: { id } })
    if (row === null) throw new ControlError('KEY_NOT_FOUND', 'There is no such platform key.')
    return row
  }

  return {
    /** Finds a key by the SHA-256 of its text; revoked and expired ones too. */
    async find(sha256: string): Promise<PlatformKey | undefined> {
      const row = await database.platformKey.findUnique({ where: { sha256 } })
      return row === null ? undefined : toKey(row)
    },

    /** Lists all keys, revoked and expired ones too. */
    async list(): Promise<PlatformKey[]> {
      return (await database.platformKey.findMany({ orderBy: [{ createdAt: 'asc' }, { id: 'asc' }] })).map(toKey)
    },

    /** Creates a key with the given text, of which only the hash is stored. */
    async create(
      name: string,
      scope: Scope,
      text: string,
      { transaction, audit }: RecordedWrite,
    ): Promise<PlatformKey> {
      const key = await insert(transaction, name, scope, text)
      audit({ action: 'key.create', target: key.id, detail: { name, scope } })
      return key
    },

    /**
     * Revokes a key.
     * @throws ControlError KEY_NOT_FOUND, LAST_ADMIN_KEY
     */
    async revoke(id: string, { transaction, audit }: RecordedWrite): Promise<PlatformKey> {
      await lock(transaction, 'platform keys')
      const row = await found(transaction, id)
      const others = await transaction.platformKey.count({
        where: { id: { not: id }, scope: 'admin', expiresAt: null, revokedAt: null },
      })
      if (row.scope === 'admin' && others === 0) {
        throw new ControlError(
          'LAST_ADMIN_KEY',
          'This is the last admin key that does not expire. Create another one first.',
        )
      }
      const revoked = await transaction.platformKey.update({
        where: { id },
        data: { revokedAt: row.revokedAt ?? now() },
      })
      audit({ action: 'key.revoke', target: id, detail: { name: row.name } })
      return toKey(revoked)
    },

    /**
     * Creates a key that replaces another one. The old key stays valid until `expireAt`.
     * @throws ControlError KEY_NOT_FOUND, KEY_NOT_LIVE
     */
    async rotate(
      id: string,
      text: string,
      expireAt: Date,
      { transaction, audit }: RecordedWrite,
    ): Promise<PlatformKey> {
      await lock(transaction, 'platform keys')
      const row = await found(transaction, id)
      if (row.revokedAt !== null || (row.expiresAt !== null && row.expiresAt <= now()) || row.replacedBy !== null) {
        throw new ControlError(
          'KEY_NOT_LIVE',
          'The key is revoked, expired or already rotated. Only a valid key can be rotated.',
        )
      }
      const key = await insert(transaction, row.name, toKey(row).scope, text)
      await transaction.platformKey.update({ where: { id }, data: { expiresAt: expireAt, replacedBy: key.id } })
      audit({
        action: 'key.rotate',
        target: id,
        detail: { new_key: key.id, old_key_expires_at: expireAt.toISOString() },
      })
      return key
    },

    /**
     * Creates the first admin key when there is no valid one.
     * @returns whether `text` is now a key
     */
    async createFirst(text: string, { transaction, audit }: RecordedWrite): Promise<boolean> {
      // Two control planes may start at the same time.
      await lock(transaction, 'platform keys')
      const existing = await transaction.platformKey.findFirst({ where: { scope: 'admin', ...live() } })
      if (existing !== null) return false
      const { id, name, scope } = await insert(transaction, 'first admin key', 'admin', text)
      audit({ action: 'key.create', target: id, detail: { name, scope } })
      return true
    },
  }
}

function toKey(row: KeyRow): PlatformKey {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    // A check constraint limits it to the scopes.
    scope: row.scope as Scope,
    createdAt: row.createdAt,
    expiresAt: row.expiresAt ?? undefined,
    revokedAt: row.revokedAt ?? undefined,
    replacedBy: row.replacedBy ?? undefined,
  }
}
