// The leader's ledger of archives in the control database. Every write throws `LeadershipLost` when another control plane
// leads.
import { randomBytes, randomUUID } from 'node:crypto'
import type { Prisma } from '../../../../prisma/client/client.ts'
import type { Database, Transaction } from '../../platform/database.ts'
import { ledWrite } from '../../platform/led-write.ts'
import type { Seal } from '../../platform/seal.ts'
import { emitOperatorEvent } from '../../webhooks/index.ts'
import { keyBytes } from '../encrypted-stream.ts'
import { BackupError } from '../backup-error.ts'
import type { Archive } from './archive.ts'
import type { Isolation } from '../../stacks/index.ts'
import type { BaseBounds } from './spool.ts'
import { isCutOff } from './timelines.ts'
import { timelineOf } from './wal.ts'

/** A tenant whose WAL is archived now. */
export interface ArchivedTenant {
  id: string
  regionId: string
  isolation: Isolation
  /** Days that recovery covers. */
  days: number
}

export type ArchiveLedger = ReturnType<typeof createArchiveLedger>

/** Returns the context that binds an archive's sealed key to the archive. */
export function archiveKeyContext(archiveId: string): string {
  return `archive:${archiveId}`
}

const withBases = { bases: { orderBy: { createdAt: 'asc' } } } as const

/** Converts a row of an archive. */
export function toArchive(row: Prisma.ArchiveGetPayload<{ include: typeof withBases }>): Archive {
  return {
    id: row.id,
    tenantId: row.tenantId,
    // A check constraint limits the state to its values.
    state: row.state as Archive['state'],
    firstSegment: row.firstSegment ?? undefined,
    lastSegment: row.lastSegment ?? undefined,
    latest: row.latest ?? undefined,
    bytes: Number(row.bytes),
    error: row.error ?? undefined,
    createdAt: row.createdAt,
    bases: row.bases.map((base) => ({
      id: base.id,
      startSegment: base.startSegment ?? undefined,
      stopSegment: base.stopSegment ?? undefined,
      completeAt: base.completeAt ?? undefined,
      createdAt: base.createdAt,
    })),
  }
}

/** Returns a tenant's archives, the oldest first. */
export async function archivesOf(database: Pick<Transaction, 'archive'>, tenantId: string): Promise<Archive[]> {
  const rows = await database.archive.findMany({
    where: { tenantId },
    include: withBases,
    orderBy: { createdAt: 'asc' },
  })
  return rows.map(toArchive)
}

/** Creates the leader's part of the store of archives, on the control database. */
export function createArchiveLedger(database: Database, seal: Seal, now: () => Date) {
  const write = <T>(tenantId: string, epoch: bigint, work: (transaction: Transaction) => Promise<T>): Promise<T> =>
    ledWrite(database, epoch, [`tenant:${tenantId}`], work)

  /** Writes the event of an archive's first failure since its last success. */
  const report = async (transaction: Transaction, { id, tenantId }: Archive, message: string) => {
    const tenant = await transaction.tenant.findUnique({ where: { id: tenantId } })
    if (tenant === null || tenant.desired === 'deleted') return
    const { name, planId: plan, regionId: region } = tenant
    const data = { tenant_id: tenantId, name, plan, region, archive_id: id, message }
    const at = now()
    const event = { type: 'archive.failed' as const, tenantId, data }
    await emitOperatorEvent(transaction, event, at, `archive.failed:${id}:${at.toISOString()}`)
  }

  return {
    /** Returns the running tenants whose WAL is archived, of one region or of all. */
    async archived(regionId?: string): Promise<ArchivedTenant[]> {
      const rows = await database.tenant.findMany({
        where: {
          ...(regionId === undefined ? {} : { regionId }),
          archiveDays: { not: null },
          isolation: { in: ['database-per-tenant', 'cluster-per-tenant'] },
          desired: 'active',
          status: 'ready',
          homeVersion: { not: null },
        },
        select: { id: true, regionId: true, isolation: true, archiveDays: true },
        orderBy: { id: 'asc' },
      })
      return rows.flatMap(({ id, regionId, isolation, archiveDays }) =>
        archiveDays === null ? [] : [{ id, regionId, isolation: isolation as Isolation, days: archiveDays }],
      )
    },

    /** Returns a tenant's archives, the oldest first. */
    of: (tenantId: string): Promise<Archive[]> => archivesOf(database, tenantId),

    /** Returns the archive's key, 32 bytes. */
    async key(archiveId: string): Promise<Uint8Array> {
      const { key } = await database.archive.findUniqueOrThrow({ where: { id: archiveId }, select: { key: true } })
      return Buffer.from(seal.open(key, archiveKeyContext(archiveId)), 'base64')
    },

    /** Records a new archive with a new key, before anything of it exists. A tenant has one open archive. */
    begin: (tenantId: string, epoch: bigint): Promise<void> =>
      write(tenantId, epoch, async (transaction) => {
        const open = await transaction.archive.count({ where: { tenantId, state: 'open' } })
        if (open > 0) throw new Error(`The tenant ${tenantId} already has an open archive.`)
        const id = randomUUID()
        const key = seal.seal(randomBytes(keyBytes).toString('base64'), archiveKeyContext(id))
        await transaction.archive.create({ data: { id, tenantId, key, createdAt: now() } })
      }),

    /**
     * Records stored segments, and until when the archive is complete. Base backups that end after the branch of a new
     * timeline are removed: its log does not continue them.
     * @param stored.branches the first segments of new timelines
     * @param stored.error null removes the recorded failure
     */
    advance: (
      { id, tenantId }: Archive,
      stored: {
        firstSegment?: string
        lastSegment?: string
        branches: readonly string[]
        bytes: number
        latest?: Date
        error?: null
      },
      epoch: bigint,
    ): Promise<void> =>
      write(tenantId, epoch, async (transaction) => {
        const { bytes, branches, ...columns } = stored
        const bases = branches.length === 0 ? [] : await transaction.archiveBase.findMany({ where: { archiveId: id } })
        const cut = bases.filter(
          ({ stopSegment: stop }) => stop !== null && branches.some((one) => isCutOff(stop, one)),
        )
        if (cut.length > 0)
          await transaction.archiveBase.deleteMany({ where: { id: { in: cut.map((base) => base.id) } } })
        await transaction.archive.updateMany({
          where: { id, state: 'open' },
          data: { ...columns, bytes: { increment: bytes } },
        })
      }),

    /** Records a failure. The archive stays open, and the next success removes the failure. */
    fail: (archive: Archive, error: string, epoch: bigint): Promise<void> =>
      write(archive.tenantId, epoch, async (transaction) => {
        const where = { id: archive.id, error: null }
        const { count } = await transaction.archive.updateMany({ where, data: { error } })
        if (count > 0) await report(transaction, archive, error)
      }),

    /** Ends an archive for good. What it covers can still be recovered. */
    end: (archive: Archive, error: string, epoch: bigint): Promise<void> =>
      write(archive.tenantId, epoch, async (transaction) => {
        const where = { id: archive.id, state: 'open' }
        const { count } = await transaction.archive.updateMany({ where, data: { state: 'ended', error } })
        await transaction.archiveBase.deleteMany({ where: { archiveId: archive.id, completeAt: null } })
        if (count > 0) await report(transaction, archive, error)
      }),

    /** Records a base backup that is about to be taken. Those that were interrupted are removed. @returns its ID */
    beginBase: ({ id, tenantId }: Archive, epoch: bigint): Promise<string> =>
      write(tenantId, epoch, async (transaction) => {
        await transaction.archiveBase.deleteMany({ where: { archiveId: id, completeAt: null } })
        const base = await transaction.archiveBase.create({
          data: { id: randomUUID(), archiveId: id, createdAt: now() },
        })
        return base.id
      }),

    /** Records a base backup that is stored. @throws BackupError FAILED if the log has left its timeline meanwhile */
    completeBase: ({ id, tenantId }: Archive, baseId: string, bounds: BaseBounds, bytes: number, epoch: bigint) =>
      write(tenantId, epoch, async (transaction) => {
        const { lastSegment } = await transaction.archive.findUniqueOrThrow({ where: { id } })
        if (lastSegment !== null && timelineOf(lastSegment) > timelineOf(bounds.stopSegment))
          throw new BackupError('FAILED', 'The primary was replaced while the base backup was taken.')
        await transaction.archiveBase.updateMany({ where: { id: baseId, archiveId: id }, data: bounds })
        await transaction.archive.update({ where: { id }, data: { bytes: { increment: bytes } } })
      }),

    /** Removes base backups from the ledger; their files are removed afterwards. */
    removeBases: ({ id, tenantId }: Archive, baseIds: readonly string[], epoch: bigint): Promise<void> =>
      write(tenantId, epoch, async (transaction) => {
        await transaction.archiveBase.deleteMany({ where: { archiveId: id, id: { in: [...baseIds] } } })
      }),

    /** Records the first segment that remains, and the bytes that were removed. */
    trim: ({ id, tenantId }: Archive, firstSegment: string, bytes: number, epoch: bigint): Promise<void> =>
      write(tenantId, epoch, async (transaction) => {
        await transaction.archive.updateMany({ where: { id }, data: { firstSegment, bytes: { decrement: bytes } } })
      }),

    /** Decides that an archive is removed. Its files follow, then its row. */
    markRemoving: ({ id, tenantId }: Archive, epoch: bigint): Promise<void> =>
      write(tenantId, epoch, async (transaction) => {
        await transaction.archive.updateMany({ where: { id }, data: { state: 'removing' } })
      }),

    /** Removes the row of an archive whose files are removed. */
    remove: ({ id, tenantId }: Archive, epoch: bigint): Promise<void> =>
      write(tenantId, epoch, async (transaction) => {
        await transaction.archive.deleteMany({ where: { id, state: 'removing' } })
      }),

    /** Returns the archives whose files are stored: all that are not being removed. */
    async stored(): Promise<Archive[]> {
      const rows = await database.archive.findMany({
        where: { state: { not: 'removing' } },
        include: withBases,
        orderBy: { createdAt: 'asc' },
      })
      return rows.map(toArchive)
    },

    /** Whether an archive exists and is not being removed. */
    isStored: async (id: string): Promise<boolean> =>
      (await database.archive.count({ where: { id, state: { not: 'removing' } } })) > 0,

    /** Returns archives that are to be removed: of tenants that are gone or that have no archive any more. */
    async unwanted(): Promise<Archive[]> {
      const rows = await database.archive.findMany({ include: withBases })
      const tenants = await database.tenant.findMany({
        where: { id: { in: rows.map(({ tenantId }) => tenantId) }, archiveDays: { not: null } },
        select: { id: true },
      })
      const wanted = new Set(tenants.map(({ id }) => id))
      return rows.filter(({ state, tenantId }) => state === 'removing' || !wanted.has(tenantId)).map(toArchive)
    },
  }
}
