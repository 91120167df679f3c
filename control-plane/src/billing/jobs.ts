// The job that makes the invoices of past months, and repeats until every tenant has one.
import type { Clock } from '../platform/clock.ts'
import { ControlError } from '../platform/errors.ts'
import { repeat } from '../platform/repeat.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import type { PlanHistory } from '../plans/index.ts'
import type { ClosedUsage } from '../usage/index.ts'
import type { Billing } from './billing.ts'
import type { BillingConfig } from './billing-config.ts'
import type { InvoiceContent } from './invoice.ts'
import type { InvoiceLedger } from './store-invoices.ts'
import { monthText, nextMonth } from '../platform/months.ts'

/** Counts of tenants without an invoice of a past month. */
interface MissingInvoices {
  month: Date
  /** Tenants whose usage of the month may still arrive. */
  notClosed: number
  /** Tenants whose invoice failed; the log has the error. */
  failed: number
  /** Tenants whose data changed while the invoice was made; the job makes it again. */
  outdated: number
}

/** The dependencies of the job that makes invoices of closed months. */
export interface ClosingDeps {
  billing: Pick<Billing, 'composeAll'>
  config: BillingConfig
  ledger: InvoiceLedger
  usage: Pick<ClosedUsage, 'closedTenants'>
  history: Pick<PlanHistory, 'tenants'>
  clock: Clock
  /** Receives the counts after each run; undefined when this control plane is no longer the leader. */
  measure: (missing: readonly MissingInvoices[] | undefined) => void
  log: Pick<Log, 'info' | 'warn'>
}

const intervalMilliseconds = 600_000
/**
 * Invoices per transaction: large enough that a month of many tenants takes minutes, small enough that other writers
 * are not blocked.
 */
const batch = 100
const dayMilliseconds = 86_400_000

/** Creates the job, which runs while this control plane leads. */
export function closeMonths(deps: ClosingDeps): (leadership: Leadership) => Promise<void> {
  return ({ epoch, lost }) => {
    const closing = createClosing(deps, epoch)
    return repeat(
      {
        clock: deps.clock,
        work: closing.poll,
        onError: (error) => deps.log.warn({ err: error }, 'The invoices could not be made. The work is retried.'),
      },
      lost,
    ).finally(() => deps.measure(undefined))
  }
}

/**
 * Creates the steps of the job. `poll` makes the invoices that can be made now and returns the milliseconds until the
 * next poll.
 * @throws LeadershipLost once another control plane leads
 */
export function createClosing(deps: ClosingDeps, epoch: bigint) {
  const { config, ledger, clock, log } = deps
  const finished = new Set<number>()

  /** Composes invoices and counts the tenants whose invoice failed, so that one tenant does not block the others. */
  const compose = async (
    tenants: readonly string[],
    month: Date,
    missing: MissingInvoices,
  ): Promise<InvoiceContent[]> => {
    const composed = await deps.billing.composeAll(tenants, month)
    for (const one of composed) {
      if (one.content !== undefined) continue
      if (one.error instanceof ControlError && one.error.code === 'MONTH_NOT_CLOSED') {
        missing.notClosed++
        continue
      }
      missing.failed++
      log.warn(
        { err: one.error, tenant: one.tenantId, month: monthText(month) },
        'The invoice of a tenant could not be made. The work is retried.',
      )
    }
    return composed.flatMap(({ content }) => content ?? [])
  }

  /**
   * Makes the month's invoices that can be made now.
   * @returns the tenants that remain
   */
  const close = async (month: Date, final: boolean, signal: AbortSignal): Promise<MissingInvoices> => {
    const missing = { month, notClosed: 0, failed: 0, outdated: 0 }
    for await (const tenants of pages(deps, month)) {
      signal.throwIfAborted()
      const settled = await ledger.settled(month, tenants, { drafts: !final })
      const open = tenants.filter((tenant) => !settled.has(tenant))
      const contents = open.length === 0 ? [] : await compose(open, month, missing)
      const stored = contents.length === 0 ? 0 : await ledger.saveAll(contents, final, epoch)
      if (stored > 0) log.info({ month: monthText(month), invoices: stored, final }, 'Invoices were made.')
      missing.outdated += contents.length - stored
    }
    return missing
  }

  /**
   * Polls once.
   * @returns the milliseconds until the next poll
   */
  const poll = async (signal: AbortSignal): Promise<number> => {
    const now = clock.now()
    const first = config.lists[0]?.from ?? now
    const missing: MissingInvoices[] = []
    for (let month = first; nextMonth(month) <= now; month = nextMonth(month)) {
      if (finished.has(month.getTime()) || (await ledger.finished(month))) {
        finished.add(month.getTime())
        continue
      }
      const final = now.getTime() >= nextMonth(month).getTime() + config.draftDays * dayMilliseconds
      const remaining = await close(month, final, signal)
      missing.push(remaining)
      if (final && remaining.notClosed + remaining.failed + remaining.outdated === 0) await ledger.finish(month, epoch)
    }
    deps.measure(missing)
    return intervalMilliseconds
  }

  return { poll }
}

/** Yields pages of the ids, in order, of tenants that had a plan or any usage in the month. */
async function* pages({ usage, history }: ClosingDeps, month: Date): AsyncGenerator<string[]> {
  for (let after = ''; ;) {
    const [used, planned] = await Promise.all([
      usage.closedTenants(month, { after: after === '' ? undefined : after, limit: batch }),
      history.tenants(month, nextMonth(month), after, batch),
    ])
    const tenants = [...new Set([...used, ...planned])].sort().slice(0, batch)
    const last = tenants.at(-1)
    if (last === undefined) return
    yield tenants
    after = last
  }
}
