// Stores platform keys in the control database.
import { randomUUID } from 'node:crypto'
import type { PlatformKey as KeyRow } from '../../../prisma/client/client.ts'
import { ControlError, tenantNotFound } from '../platform/errors.ts'
import { keyHash, platformKeyPrefix } from './key-text.ts'
import { coversLimit, isLimited, lackedRight } from './key-rights.ts'
import { rightsOf, type KeyLimit, type KeyRights, type PlatformKey, type Scope } from './platform-key.ts'
import type { Database, Prisma, Transaction } from '../platform/database.ts'
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
  const insert = async (
    transaction: Transaction,
    { name, scope, rights }: { name: string; scope: Scope; rights: KeyRights },
    text: string,
  ) =>
    toKey(
      await transaction.platformKey.create({
        data: {
          id: randomUUID(),
          name,
          scope,
          tenantId: rights.tenantId ?? null,
          regionId: rights.region ?? null,
          addresses: [...rights.addresses],
          expiresAt: rights.expiresAt ?? null,
          prefix: text.slice(0, platformKeyPrefix.length + 6),
          sha256: keyHash(text),
          createdAt: now(),
        },
      }),
    )

  const found = async (transaction: Transaction, id: string, visibleTo: KeyLimit) => {
    const row = await transaction.platformKey.findUnique({ where: { id } })
    const key = row === null ? undefined : toKey(row)
    if (key === undefined || !coversLimit(visibleTo, key.limit, await regionOf(transaction, key.limit)))
      throw new ControlError('KEY_NOT_FOUND', 'There is no such platform key.')
    return key
  }

  /** Rejects a new key with a right that its creator lacks. */
  const checkRights = async (transaction: Transaction, own: KeyRights, wanted: KeyRights) => {
    const lacked = lackedRight(own, wanted, await regionOf(transaction, wanted))
    if (lacked === undefined) return
    throw new ControlError(
      'KEY_LIMITED',
      `The new key would have more rights than the platform key of this request, which ${lacked}.`,
    )
  }

  return {
    /** Finds a key by the SHA-256 of its text; revoked and expired ones too. */
    async find(sha256: string): Promise<PlatformKey | undefined> {
      const row = await database.platformKey.findUnique({ where: { sha256 } })
      return row === null ? undefined : toKey(row)
    },

    /** Returns a key by its ID; revoked and expired ones too. */
    async get(id: string): Promise<PlatformKey | undefined> {
      const row = await database.platformKey.findUnique({ where: { id } })
      return row === null ? undefined : toKey(row)
    },

    /**
     * Lists keys, revoked and expired ones too.
     * @param visibleTo the limit of the caller's key: keys with more rights than it are left out
     */
    async list(visibleTo: KeyLimit = {}): Promise<PlatformKey[]> {
      const keys = (await database.platformKey.findMany({ orderBy: [{ createdAt: 'asc' }, { id: 'asc' }] })).map(toKey)
      if (!isLimited(visibleTo)) return keys
      const ids = keys.flatMap(({ limit }) => limit.tenantId ?? [])
      const tenants = await database.tenant.findMany({
        where: { id: { in: ids } },
        select: { id: true, regionId: true },
      })
      const regions = new Map(tenants.map((tenant) => [tenant.id, tenant.regionId]))
      return keys.filter(({ limit }) => coversLimit(visibleTo, limit, regions.get(limit.tenantId ?? '')))
    },

    /**
     * Creates a key with the given text, of which only the hash is stored.
     * @param creator the rights of the caller's key, which the new key may not exceed
     * @throws ControlError KEY_LIMITED; TENANT_NOT_FOUND for a tenant that does not exist
     */
    async create(
      { name, scope, rights, creator }: { name: string; scope: Scope; rights: KeyRights; creator: KeyRights },
      text: string,
      { transaction, audit }: RecordedWrite,
    ): Promise<PlatformKey> {
      await checkRights(transaction, creator, rights)
      if (rights.tenantId !== undefined && (await regionOf(transaction, rights)) === undefined) throw tenantNotFound()
      const key = await insert(transaction, { name, scope, rights }, text)
      audit({ action: 'key.create', target: key.id, detail: { name, scope, ...rightsDetail(rights) } })
      return key
    },

    /**
     * Revokes a key.
     * @param visibleTo the limit of the caller's key: for it, keys with more rights do not exist
     * @throws ControlError KEY_NOT_FOUND, LAST_ADMIN_KEY
     */
    async revoke(id: string, visibleTo: KeyLimit, { transaction, audit }: RecordedWrite): Promise<PlatformKey> {
      await lock(transaction, 'platform keys')
      const key = await found(transaction, id, visibleTo)
      const others = await transaction.platformKey.count({ where: { id: { not: id }, ...permanentAdmin } })
      if (key.scope === 'admin' && !isLimited(key.limit) && others === 0) {
        throw new ControlError(
          'LAST_ADMIN_KEY',
          'This is the last admin key that does not expire. Create another one first.',
        )
      }
      const revoked = await transaction.platformKey.update({
        where: { id },
        data: { revokedAt: key.revokedAt ?? now() },
      })
      audit({ action: 'key.revoke', target: id, detail: { name: key.name } })
      return toKey(revoked)
    },

    /**
     * Creates a key that replaces another one and has the same rights. The old key stays valid until `overlapEnd`, or
     * until its own end.
     * @param creator the rights of the caller's key, which the new key may not exceed
     * @throws ControlError KEY_NOT_FOUND, KEY_NOT_LIVE, KEY_LIMITED
     */
    async rotate(
      { id, overlapEnd, creator }: { id: string; overlapEnd: Date; creator: KeyRights },
      text: string,
      { transaction, audit }: RecordedWrite,
    ): Promise<PlatformKey> {
      await lock(transaction, 'platform keys')
      const old = await found(transaction, id, creator)
      const { expiresAt } = old
      if (
        old.revokedAt !== undefined ||
        (expiresAt !== undefined && expiresAt <= now()) ||
        old.replacedBy !== undefined
      ) {
        throw new ControlError(
          'KEY_NOT_LIVE',
          'The key is revoked, expired or already rotated. Only a valid key can be rotated.',
        )
      }
      const rights = rightsOf(old)
      await checkRights(transaction, creator, rights)
      const expireAt = expiresAt !== undefined && expiresAt < overlapEnd ? expiresAt : overlapEnd
      const key = await insert(transaction, { name: old.name, scope: old.scope, rights }, text)
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
     * @param publish receives the text before the key is valid, and only if it will be
     * @returns whether `text` is now a key
     */
    async createFirst(
      text: string,
      publish: (text: string) => Promise<void>,
      { transaction, audit }: RecordedWrite,
    ): Promise<boolean> {
      // Two control planes may start at the same time.
      await lock(transaction, 'platform keys')
      if ((await transaction.platformKey.count({ where: permanentAdmin })) > 0) return false
      await publish(text)
      const { id, name, scope } = await insert(
        transaction,
        { name: 'first admin key', scope: 'admin', rights: allRights },
        text,
      )
      audit({ action: 'key.create', target: id, detail: { name, scope } })
      return true
    },
  }
}

/** The rights of a key without limits. */
export const allRights: KeyRights = { addresses: [], expiresAt: undefined }

/** Admin keys that may do everything, from every address. */
const unlimitedAdmin = {
  scope: 'admin' satisfies Scope,
  tenantId: null,
  regionId: null,
  addresses: { equals: [] },
} satisfies Prisma.PlatformKeyWhereInput

/** Admin keys without limits that neither expire nor are revoked. One of them always remains. */
const permanentAdmin = { ...unlimitedAdmin, expiresAt: null, revokedAt: null }

/** Returns the region of a limit's tenant; undefined without a tenant, or if it does not exist. */
async function regionOf(transaction: Transaction, { tenantId }: KeyLimit): Promise<string | undefined> {
  if (tenantId === undefined) return undefined
  return (await transaction.tenant.findUnique({ where: { id: tenantId }, select: { regionId: true } }))?.regionId
}

/** Returns the limits of a key for the audit log, without those that it does not have. */
function rightsDetail({ tenantId, region, addresses, expiresAt }: KeyRights): Prisma.InputJsonObject {
  return {
    ...(tenantId === undefined ? {} : { tenant_id: tenantId }),
    ...(region === undefined ? {} : { region }),
    ...(addresses.length === 0 ? {} : { addresses: [...addresses] }),
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt.toISOString() }),
  }
}

function toAddresses(stored: Prisma.JsonValue): string[] {
  if (Array.isArray(stored) && stored.every((one) => typeof one === 'string')) return stored
  throw new Error('The addresses of a platform key are not a list of texts.')
}

function toKey(row: KeyRow): PlatformKey {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    // A check constraint limits it to the scopes.
    scope: row.scope as Scope,
    limit: {
      ...(row.tenantId === null ? {} : { tenantId: row.tenantId }),
      ...(row.regionId === null ? {} : { region: row.regionId }),
    },
    addresses: toAddresses(row.addresses),
    createdAt: row.createdAt,
    expiresAt: row.expiresAt ?? undefined,
    revokedAt: row.revokedAt ?? undefined,
    replacedBy: row.replacedBy ?? undefined,
  }
}
