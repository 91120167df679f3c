// The platform key store on the control database.
import { randomUUID } from 'node:crypto'
import type { PlatformKey as KeyRow } from '../../../prisma/client/client.ts'
import { ControlError } from '../platform/errors.ts'
import { keyHash, platformKeyPrefix } from './key-text.ts'
import type { PlatformKey, PlatformKeyStore, Scope } from './platform-key-store.ts'
import type { Seal } from '../platform/seal.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { recordedWrite } from '../platform/recorded-write.ts'

interface PlatformKeyStoreOptions {
  database: Database
  seal: Seal
  now: () => Date
}

export function createPlatformKeyStore({ database, seal, now }: PlatformKeyStoreOptions): PlatformKeyStore {
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
    if (row === null) throw new ControlError('KEY_NOT_FOUND', 'there is no such platform key')
    return row
  }

  return {
    async find(sha256) {
      const row = await database.platformKey.findUnique({ where: { sha256 } })
      return row === null ? undefined : toKey(row)
    },

    async list() {
      return (await database.platformKey.findMany({ orderBy: [{ createdAt: 'asc' }, { id: 'asc' }] })).map(toKey)
    },

    create: (name, scope, text, context, answer) =>
      recordedWrite(database, seal, now, context, async (transaction) => {
        const result = await insert(transaction, name, scope, text)
        return {
          result,
          audit: { action: 'key.create', target: result.id, detail: { name, scope } },
          answer: answer(result),
        }
      }),

    revoke: (id, context) =>
      recordedWrite(database, seal, now, context, async (transaction) => {
        const row = await found(transaction, id)
        const others = await transaction.platformKey.count({
          where: { id: { not: id }, scope: 'admin', expiresAt: null, revokedAt: null },
        })
        if (row.scope === 'admin' && others === 0) {
          throw new ControlError('LAST_ADMIN_KEY', 'this is the last admin key that lasts; make another one first')
        }
        const revoked = await transaction.platformKey.update({
          where: { id },
          data: { revokedAt: row.revokedAt ?? now() },
        })
        return { result: toKey(revoked), audit: { action: 'key.revoke', target: id, detail: { name: row.name } } }
      }),

    rotate: (id, text, expireAt, context, answer) =>
      recordedWrite(database, seal, now, context, async (transaction) => {
        const row = await found(transaction, id)
        if (row.revokedAt !== null || (row.expiresAt !== null && row.expiresAt <= now()) || row.replacedBy !== null) {
          throw new ControlError(
            'KEY_NOT_LIVE',
            'only a key that is neither revoked nor expired nor rotated already can be rotated',
          )
        }
        const result = await insert(transaction, row.name, toKey(row).scope, text)
        await transaction.platformKey.update({ where: { id }, data: { expiresAt: expireAt, replacedBy: result.id } })
        const detail = { new_key: result.id, old_key_expires_at: expireAt.toISOString() }
        return { result, audit: { action: 'key.rotate', target: id, detail }, answer: answer(result) }
      }),

    async createFirst(text) {
      const context = { actor: { keyId: 'system' }, idempotency: undefined }
      return recordedWrite(database, seal, now, context, async (transaction) => {
        const existing = await transaction.platformKey.findFirst({ where: { scope: 'admin', ...live() } })
        if (existing !== null) throw new AdminKeyExists()
        const key = await insert(transaction, 'first admin key', 'admin', text)
        return {
          result: true,
          audit: { action: 'key.create', target: key.id, detail: { name: key.name, scope: key.scope } },
        }
      }).catch((cause: unknown) => {
        if (cause instanceof AdminKeyExists) return false
        throw cause
      })
    },
  }
}

/** Rolls the transaction back; two control planes may start at once. */
class AdminKeyExists extends Error {}

function toKey(row: KeyRow): PlatformKey {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    // A check constraint holds it to the scopes.
    scope: row.scope as Scope,
    createdAt: row.createdAt,
    expiresAt: row.expiresAt ?? undefined,
    revokedAt: row.revokedAt ?? undefined,
    replacedBy: row.replacedBy ?? undefined,
  }
}
