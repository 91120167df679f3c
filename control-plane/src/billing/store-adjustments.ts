// Stores adjustments in the control database.
import { randomUUID } from 'node:crypto'
import type { Adjustment } from './adjustment.ts'
import type { InvoiceState } from './invoice-state.ts'
import { decimalText } from './money.ts'
import { ControlError } from '../platform/errors.ts'
import { afterPosition, decodeCursor, toPage } from '../platform/cursor.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { lock } from '../platform/locks.ts'
import type { PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import { uuidPattern } from '../platform/uuid.ts'

/** The maximum number of a tenant's adjustments that are on no invoice yet. One invoice bills them all. */
const maxDue = 1_000
const invoice = { select: { id: true, label: true, month: true, state: true } } as const

interface NewAdjustment {
  tenantId: string
  description: string
  /** The net amount in millionths of the currency's unit; never 0. */
  amount: bigint
  currency: string
}

interface AdjustmentRow {
  id: string
  tenantId: string
  description: string
  amountMicro: bigint
  currency: string
  createdAt: Date
  invoice: { id: string; label: string | null; month: Date; state: string } | null
}

/** The adjustments of tenants. */
export type AdjustmentStore = ReturnType<typeof createAdjustmentStore>

export function createAdjustmentStore({ database, now }: { database: Database; now: () => Date }) {
  return {
    /** Lists a tenant's adjustments, oldest first. The tenant may be deleted. */
    async list(
      tenantId: string,
      { limit, cursor }: PageRequest,
    ): Promise<{ items: Adjustment[]; nextCursor: string | undefined }> {
      const rows = await database.adjustment.findMany({
        where: { tenantId, ...(cursor === undefined ? {} : afterPosition(decodeCursor(cursor, uuidPattern))) },
        include: { invoice },
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
        take: limit + 1,
      })
      return toPage(rows, limit, toAdjustment)
    },

    /** @throws ControlError TOO_MANY_ADJUSTMENTS */
    async create(
      { tenantId, description, amount, currency }: NewAdjustment,
      { transaction, audit }: RecordedWrite,
    ): Promise<Adjustment> {
      await lock(transaction, `tenant:${tenantId}`)
      const due = await transaction.adjustment.count({ where: { tenantId, invoiceId: null } })
      if (due >= maxDue)
        throw new ControlError(
          'TOO_MANY_ADJUSTMENTS',
          `The tenant has ${due} adjustments that are on no invoice. At most ${maxDue} are allowed.`,
        )
      const data = { id: randomUUID(), tenantId, description, amountMicro: amount, currency, createdAt: now() }
      const made = toAdjustment(await transaction.adjustment.create({ data, include: { invoice } }))
      audit({ action: 'adjustment.create', target: tenantId, detail: detailOf(made) })
      return made
    },

    /**
     * Deletes an adjustment and returns it.
     * @throws ControlError ADJUSTMENT_NOT_FOUND; ADJUSTMENT_BILLED when it is on a final invoice
     */
    async remove(tenantId: string, id: string, { transaction, audit }: RecordedWrite): Promise<Adjustment> {
      await lock(transaction, `tenant:${tenantId}`)
      const row = await transaction.adjustment.findFirst({ where: { id, tenantId }, include: { invoice } })
      if (row === null) throw new ControlError('ADJUSTMENT_NOT_FOUND', 'There is no such adjustment.')
      if (row.invoice?.state === 'final')
        throw new ControlError(
          'ADJUSTMENT_BILLED',
          `The adjustment is on the final invoice ${row.invoice.label ?? row.invoice.id}.`,
        )
      await transaction.adjustment.delete({ where: { id } })
      const removed = toAdjustment(row)
      audit({ action: 'adjustment.delete', target: tenantId, detail: detailOf(removed) })
      return removed
    },

    /**
     * Returns the adjustments that an invoice of the month would bill, by tenant and oldest first: those that are on no
     * invoice or on the month's draft. Tenants without any are left out.
     */
    due: (tenantIds: readonly string[], month: Date): Promise<ReadonlyMap<string, Adjustment[]>> =>
      dueAdjustments(database, tenantIds, month),
  }
}

/** Reads what `AdjustmentStore.due` returns. */
export async function dueAdjustments(
  database: Pick<Transaction, 'adjustment'>,
  tenantIds: readonly string[],
  month: Date,
): Promise<ReadonlyMap<string, Adjustment[]>> {
  const rows = await database.adjustment.findMany({
    where: { tenantId: { in: [...tenantIds] }, OR: [{ invoiceId: null }, { invoice: { state: 'draft', month } }] },
    include: { invoice },
    orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
  })
  return Map.groupBy(rows.map(toAdjustment), ({ tenantId }) => tenantId)
}

/**
 * Assigns adjustments to the invoices that bill them.
 * @throws Error when one is on an invoice already
 */
export async function billAdjustments(
  transaction: Transaction,
  billed: readonly { adjustmentId: string; invoiceId: string }[],
): Promise<void> {
  if (billed.length === 0) return
  const changed = await transaction.$executeRaw`
    update adjustments a set invoice_id = b.invoice_id::uuid
    from unnest(
      ${billed.map(({ adjustmentId }) => adjustmentId)}::text[], ${billed.map(({ invoiceId }) => invoiceId)}::text[]
    ) b(id, invoice_id)
    where a.id = b.id::uuid and a.invoice_id is null`
  if (changed !== billed.length)
    throw new Error(`${billed.length - changed} adjustments are on another invoice already.`)
}

/** Removes the adjustments of an invoice from it, so that the next invoice bills them. */
export async function releaseAdjustments(transaction: Transaction, invoiceId: string): Promise<void> {
  await transaction.adjustment.updateMany({ where: { invoiceId }, data: { invoiceId: null } })
}

function detailOf({ id, description, amount, currency }: Adjustment) {
  return { adjustment_id: id, description, amount: decimalText(amount), currency }
}

function toAdjustment({
  id,
  tenantId,
  description,
  amountMicro,
  currency,
  createdAt,
  invoice: on,
}: AdjustmentRow): Adjustment {
  return {
    id,
    tenantId,
    description,
    currency,
    createdAt,
    amount: amountMicro,
    // A check constraint limits the state to its values.
    invoice:
      on === null
        ? undefined
        : { id: on.id, number: on.label ?? undefined, month: on.month, state: on.state as InvoiceState },
  }
}
