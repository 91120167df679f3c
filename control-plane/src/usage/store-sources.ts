// The ledger's sources in the control database.
import type { UsageSource as SourceRow } from '../../../prisma/client/client.ts'
import { ControlError } from '../platform/errors.ts'
import { freeSlots } from '../quotas/index.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { lock } from '../platform/locks.ts'
import type { PageRequest, Page } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'

export const sourceKinds = ['gateway', 'home'] as const
type SourceKind = (typeof sourceKinds)[number]

export interface UsageSource {
  source: string
  /** The tenant of a home; undefined for a gateway. */
  tenantId: string | undefined
  /** The time before which all counts of the source have arrived. */
  completeUntil: Date
  firstSeenAt: Date
  lastSeenAt: Date
  /** The time since which hours close without the source. */
  retiredAt: Date | undefined
}

/** A source that reported within this time is active. */
const liveMilliseconds = 60_000

interface UsageSourcesOptions {
  database: Database
  now: () => Date
}

/** The sources of usage. */
export type UsageSources = ReturnType<typeof createUsageSources>

/** Creates the store of the ledger's sources, on the control database. */
export function createUsageSources({ database, now }: UsageSourcesOptions) {
  return {
    /** Lists sources by their names. */
    async list(kind: SourceKind | undefined, { limit, cursor }: PageRequest): Promise<Page<UsageSource>> {
      const rows = await database.usageSource.findMany({
        where: {
          ...(cursor === undefined ? {} : { source: { gt: decoded(cursor) } }),
          ...(kind === undefined ? {} : { tenantId: kind === 'gateway' ? null : { not: null } }),
        },
        orderBy: { source: 'asc' },
        take: limit + 1,
      })
      const items = rows.slice(0, limit).map(toSource)
      const last = rows.length > limit ? items.at(-1)?.source : undefined
      return { items, nextCursor: last === undefined ? undefined : Buffer.from(last).toString('base64url') }
    },

    /**
     * Retires a source: hours close without it, until its next push. A retired source stays as it is.
     * @throws ControlError SOURCE_NOT_FOUND, SOURCE_LIVES
     */
    async retire(source: string, { transaction, audit }: RecordedWrite): Promise<UsageSource> {
      const row = source.includes('\0') ? null : await lockedSource(transaction, source)
      if (row === null) throw new ControlError('SOURCE_NOT_FOUND', 'There is no such source of usage.')
      const at = now()
      if (row.retiredAt === null && at.getTime() - row.lastSeenAt.getTime() < liveMilliseconds) {
        throw new ControlError(
          'SOURCE_LIVES',
          `The source ${source} last reported at ${row.lastSeenAt.toISOString()}. Stop it first.`,
        )
      }
      const retired = await transaction.usageSource.update({
        where: { source },
        data: { retiredAt: row.retiredAt ?? at },
      })
      // A retired gateway has no connections. If it returns, it is granted slots that are free.
      await freeSlots(transaction, source)
      audit({
        action: 'usage_source.retire',
        target: source,
        detail: { complete_until: row.completeUntil.toISOString() },
      })
      return toSource(retired)
    },
  }
}

async function lockedSource(transaction: Transaction, source: string): Promise<SourceRow | null> {
  await lock(transaction, `source:${source}`)
  return transaction.usageSource.findUnique({ where: { source } })
}

/**
 * Reads a cursor.
 * @throws ControlError INVALID_PARAMETER
 */
function decoded(cursor: string): string {
  const source = Buffer.from(cursor, 'base64url').toString('utf8')
  if (source === '' || source.includes('\0') || Buffer.from(source).toString('base64url') !== cursor) {
    throw new ControlError('INVALID_PARAMETER', 'Invalid cursor. It must be the "next_cursor" of an earlier page.')
  }
  return source
}

function toSource({ source, tenantId, completeUntil, firstSeenAt, lastSeenAt, retiredAt }: SourceRow): UsageSource {
  return {
    source,
    tenantId: tenantId ?? undefined,
    completeUntil,
    firstSeenAt,
    lastSeenAt,
    retiredAt: retiredAt ?? undefined,
  }
}
