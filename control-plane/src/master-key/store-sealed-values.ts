// All sealed values of the control database, of any feature, and the master key that seals them.
import { ConfigurationError } from '@tenantry/contract'
import { Prisma } from '../../../prisma/client/client.ts'
import { appendToChain } from '../platform/audit-chain.ts'
import type { Database } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'
import type { Seal } from '../platform/seal.ts'

/** Columns of sealed values, with the SQL of a row's key and of the context of its value. */
const sealedColumns = [
  { table: 'tenant_secrets', column: 'sealed', key: 'id::text', context: "tenant_id || ':' || kind" },
  {
    table: 'idempotency_records',
    column: 'answer',
    key: "platform_key_id::text || ':' || key",
    context: "'idempotency:' || platform_key_id::text || ':' || key",
  },
  { table: 'backups', column: 'key', key: 'id::text', context: "'backup:' || id::text" },
  { table: 'archives', column: 'key', key: 'id::text', context: "'archive:' || id::text" },
  { table: 'webhook_endpoints', column: 'secret', key: 'id::text', context: "'webhook:' || id::text" },
  { table: 'webhook_endpoints', column: 'former_secret', key: 'id::text', context: "'webhook:' || id::text" },
  { table: 'certificate_authority', column: 'sealed_key', key: 'id::text', context: "'certificate authority'" },
  { table: 'regions', column: 'superuser_password', key: 'id', context: "'region:' || id" },
  { table: 'regions', column: 'next_superuser_password', key: 'id', context: "'region:' || id || ':next'" },
  { table: 'regions', column: 'first_superuser_password', key: 'id', context: "'region:' || id || ':first'" },
  { table: 'regions', column: 'etcd_credentials', key: 'id', context: "'etcd:' || id" },
] as const
type SealedColumn = (typeof sealedColumns)[number]

const batchSize = 500

/** The result of one pass over all values. */
export interface Pass {
  /** The number of values that were sealed again. */
  renewed: number
  /** The number of values that were being changed. The next pass reads them again. */
  skipped: number
  /** The values that no master key opens, as the table and the row's key. */
  unreadable: string[]
}

interface Renewed {
  key: string
  former: Uint8Array
  renewed: Uint8Array
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

/** The sealed values, for the leader. Every write throws `LeadershipLost` when another control plane leads. */
export type SealedValues = ReturnType<typeof createSealedValues>

/** Creates the store of sealed values. */
export function createSealedValues(database: Database, seal: Seal, now: () => Date) {
  const page = ({ table, column, key, context }: SealedColumn, after: string) =>
    database.$queryRaw<{ key: string; context: string; sealed: Uint8Array }[]>`
      select key, context, sealed
      from (select (${Prisma.raw(key)}) collate "C" as key, ${Prisma.raw(context)} as context,
              ${Prisma.raw(column)} as sealed from ${Prisma.raw(table)}) as sealed_values
      where sealed is not null and key > ${after} order by key limit ${batchSize}`

  /** Replaces the values that no other transaction has changed or is changing, and waits for none. @returns their number */
  const replace = ({ table, column, key }: SealedColumn, values: readonly Renewed[], epoch: bigint): Promise<number> =>
    ledWrite(
      database,
      epoch,
      [],
      (transaction) => transaction.$executeRaw`
        update ${Prisma.raw(table)} as stored set ${Prisma.raw(column)} = decode(free.renewed, 'hex')
        from (
          select found.ctid as location, fresh.renewed
          from ${Prisma.raw(table)} as found
          join unnest(
            ${values.map((value) => value.key)}::text[],
            ${values.map(({ former }) => hex(former))}::text[],
            ${values.map(({ renewed }) => hex(renewed))}::text[]
          ) as fresh (row_key, former, renewed) on ${Prisma.raw(key)} = fresh.row_key
          where found.${Prisma.raw(column)} = decode(fresh.former, 'hex')
          for update of found skip locked
        ) as free
        where stored.ctid = free.location`,
    )

  /** Seals the values of a page again that a former key has sealed. */
  const renewPage = async (
    column: SealedColumn,
    rows: Awaited<ReturnType<typeof page>>,
    epoch: bigint,
  ): Promise<Pass> => {
    const unreadable: string[] = []
    const values = rows.flatMap(({ key, context, sealed }): Renewed[] => {
      try {
        const renewed = seal.renew(sealed, context)
        return renewed === undefined ? [] : [{ key, former: sealed, renewed }]
      } catch {
        unreadable.push(`${column.table} ${key}`)
        return []
      }
    })
    const renewed = values.length === 0 ? 0 : await replace(column, values, epoch)
    return { renewed, skipped: values.length - renewed, unreadable }
  }

  return {
    /** Returns the fingerprint of the master key that seals all values; undefined before it is first recorded. */
    async masterKeyId(): Promise<string | undefined> {
      return (await database.installation.findFirstOrThrow()).masterKeyId ?? undefined
    },

    /** Seals all values with the newest master key that a former one has sealed. It can be interrupted at any point. */
    async reseal(epoch: bigint): Promise<Pass> {
      const total: Pass = { renewed: 0, skipped: 0, unreadable: [] }
      for (const column of sealedColumns) {
        for (let after = ''; ;) {
          const rows = await page(column, after)
          const { renewed, skipped, unreadable } = await renewPage(column, rows, epoch)
          total.renewed += renewed
          total.skipped += skipped
          total.unreadable.push(...unreadable)
          const last = rows.at(-1)
          if (last === undefined || rows.length < batchSize) break
          after = last.key
        }
      }
      return total
    },

    /** Records that the newest master key seals all values. A change of the key is an entry of the audit log. */
    recordSealed: (former: string | undefined, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, ['installation'], async (transaction) => {
        const { count } = await transaction.installation.updateMany({
          where: { masterKeyId: former ?? null },
          data: { masterKeyId: seal.masterKeyId },
        })
        // The first key of an installation replaces no other.
        if (count === 0 || seal.masterKeyIds.length === 1) return
        const detail = { former: former ?? seal.masterKeyIds.at(-1) ?? '' }
        await appendToChain(
          transaction,
          'system',
          [{ action: 'master_key.rotate', target: seal.masterKeyId, detail }],
          now,
        )
      }),
  }
}

/**
 * Rejects a file of master keys without the one that seals the values of the control database.
 * @throws ConfigurationError
 */
export async function rejectUnknownMasterKey(database: Database, seal: Seal): Promise<void> {
  const { masterKeyId } = await database.installation.findFirstOrThrow()
  if (masterKeyId !== null && !seal.masterKeyIds.includes(masterKeyId))
    throw new ConfigurationError(
      `The control database is sealed with the master key ${masterKeyId}, which TENANTRY_MASTER_KEY_FILE does not contain.`,
    )
}
