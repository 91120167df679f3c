// Stores blocked addresses in the control database.
import { maxBlockedAddresses, type BlockedAddress } from '@tenantry/contract'
import type { BlockedAddress as Row } from '../../../prisma/client/client.ts'
import { recordChange } from '../platform/change-log.ts'
import { decodeCursor, toPage } from '../platform/cursor.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { ControlError } from '../platform/errors.ts'
import { lock } from '../platform/locks.ts'
import type { Page, PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'

/** An entry as operators see it. */
export interface BlockedEntry {
  /** The canonical text of the address or network. */
  address: string
  reason: string
  createdAt: Date
  /** Undefined if it has no end. */
  expiresAt: Date | undefined
}

interface NewEntry extends Pick<BlockedEntry, 'address' | 'reason'> {
  /** Undefined if it has no end. */
  expiresInSeconds: number | undefined
}

/** Form of the canonical texts. */
const addresses = /^[0-9a-f.:]{2,39}(?:\/\d{1,3})?$/

const batchSize = 1_000

/** Stores blocked addresses. */
export type BlockedAddressStore = ReturnType<typeof createBlockedAddressStore>

/** Creates the store of blocked addresses, on the control database. Entries that have expired are treated as removed. */
export function createBlockedAddressStore(database: Database, now: () => Date) {
  const live = () => ({ OR: [{ expiresAt: null }, { expiresAt: { gt: now() } }] })

  const found = async (from: Pick<Transaction, 'blockedAddress'>, address: string) => {
    const row = await from.blockedAddress.findFirst({ where: { address, AND: [live()] } })
    if (row === null) throw new ControlError('BLOCKED_ADDRESS_NOT_FOUND', `The address ${address} is not blocked.`)
    return row
  }

  return {
    /** Lists entries, oldest first. @param among texts of the only networks to list; undefined for all */
    async list(among: readonly string[] | undefined, { limit, cursor }: PageRequest): Promise<Page<BlockedEntry>> {
      const after = cursor === undefined ? undefined : decodeCursor(cursor, addresses)
      const rows = await database.blockedAddress.findMany({
        where: {
          AND: [
            live(),
            among === undefined ? {} : { address: { in: [...among] } },
            after === undefined
              ? {}
              : {
                  OR: [
                    { createdAt: { gt: after.createdAt } },
                    { createdAt: after.createdAt, address: { gt: after.id } },
                  ],
                },
          ],
        },
        orderBy: [{ createdAt: 'asc' }, { address: 'asc' }],
        take: limit + 1,
      })
      return toPage(
        rows.map((row) => ({ ...row, id: row.address })),
        limit,
        toEntry,
      )
    },

    /**
     * Returns the entry of an address or network.
     * @throws ControlError BLOCKED_ADDRESS_NOT_FOUND
     */
    get: async (address: string): Promise<BlockedEntry> => toEntry(await found(database, address)),

    /**
     * Blocks an address or network. It replaces its entry, if there is one.
     * @throws ControlError TOO_MANY_BLOCKED_ADDRESSES
     */
    async put(
      { address, reason, expiresInSeconds }: NewEntry,
      { transaction, audit }: RecordedWrite,
    ): Promise<BlockedEntry> {
      await lock(transaction, 'blocked addresses')
      const createdAt = now()
      const expiresAt = expiresInSeconds === undefined ? null : new Date(createdAt.getTime() + expiresInSeconds * 1_000)
      await removeExpired(transaction, createdAt)
      await transaction.blockedAddress.deleteMany({ where: { address } })
      if ((await transaction.blockedAddress.count()) >= maxBlockedAddresses)
        throw new ControlError(
          'TOO_MANY_BLOCKED_ADDRESSES',
          `${maxBlockedAddresses} addresses are blocked, which is the maximum. Block networks instead, or remove entries.`,
        )
      // A new row has a new generation.
      const row = await transaction.blockedAddress.create({
        data: { address, reason, createdAt, expiresAt },
      })
      await recordChange(transaction, 'blocked', address)
      audit({
        action: 'blocked_address.put',
        target: address,
        detail: { reason, expires_at: expiresAt?.toISOString() ?? null },
      })
      return toEntry(row)
    },

    /**
     * Unblocks an address or network, and leaves other entries that contain it.
     * @throws ControlError BLOCKED_ADDRESS_NOT_FOUND
     */
    async remove(address: string, { transaction, audit }: RecordedWrite): Promise<void> {
      await lock(transaction, 'blocked addresses')
      const { reason } = await found(transaction, address)
      await transaction.blockedAddress.delete({ where: { address } })
      await recordChange(transaction, 'blocked', address)
      audit({ action: 'blocked_address.delete', target: address, detail: { reason } })
    },

    /** Yields all entries for the gateways. */
    async *all(): AsyncGenerator<BlockedAddress> {
      let after = ''
      for (;;) {
        const rows = await database.blockedAddress.findMany({
          where: { address: { gt: after }, AND: [live()] },
          orderBy: { address: 'asc' },
          take: batchSize,
        })
        for (const row of rows) {
          yield toPublished(row)
          after = row.address
        }
        if (rows.length < batchSize) return
      }
    },

    /** Returns those of the entries that exist, for the gateways. */
    async some(among: ReadonlySet<string>): Promise<BlockedAddress[]> {
      const rows = await database.blockedAddress.findMany({ where: { address: { in: [...among] }, AND: [live()] } })
      return rows.map(toPublished)
    },
  }
}

/** Removes the entries that have expired, so that they do not count towards the maximum. */
async function removeExpired(transaction: Transaction, at: Date): Promise<void> {
  await transaction.$executeRaw`
    with expired as (delete from blocked_addresses where expires_at <= ${at} returning address)
    insert into changes (kind, tenant_id, transaction_id)
      select 'blocked', address, pg_current_xact_id()::text::bigint from expired`
}

function toEntry({ address, reason, createdAt, expiresAt }: Row): BlockedEntry {
  return { address, reason, createdAt, expiresAt: expiresAt ?? undefined }
}

function toPublished({ address, generation, expiresAt }: Row): BlockedAddress {
  return { address, generation: Number(generation), expires_at: expiresAt?.toISOString() ?? null }
}
