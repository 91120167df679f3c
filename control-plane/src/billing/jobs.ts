// Makes the invoices of months that are over, again and again until everybody has one.
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
import type { InvoiceLedger } from './invoice-store.ts'
import { monthText, nextMonth } from '../platform/months.ts'

/** Tenants of a month that is over that have no invoice yet. */
interface MissingInvoices {
  month: Date
  /** Usage of the month may still come. */
  notClosed: number
  /** It could not be made; the log says why. */
  failed: number
  /** What it was made of has changed meanwhile: it is made anew. */
  outdated: number
}

/** What the job needs that makes invoices of closed months. */
export interface ClosingDeps {
  billing: Pick<Billing, 'composeAll'>
  config: BillingConfig
  ledger: InvoiceLedger
  usage: Pick<ClosedUsage, 'closedTenants'>
  history: Pick<PlanHistory, 'tenants'>
  clock: Clock
  /** Told after each look; undefined when this control plane leads no longer. */
  measure: (missing: readonly MissingInvoices[] | undefined) => void
  log: Pick<Log, 'info' | 'warn'>
}

const intervalMilliseconds = 600_000
/** Invoices of one transaction: enough that a month of many tenants takes minutes, few enough that other writers get in between. */
const batch = 100
const dayMilliseconds = 86_400_000

/** Runs while this control plane leads. */
export function closeMonths(deps: ClosingDeps): (leadership: Leadership) => Promise<void> {
  return ({ epoch, lost }) => {
    const closing = createClosing(deps, epoch)
    return repeat(
      {
        clock: deps.clock,
        work: closing.poll,
        onError: (error) => deps.log.warn({ err: error }, 'invoices could not be made; it is tried again'),
      },
      lost,
    ).finally(() => deps.measure(undefined))
  }
}

/**
 * Makes the job that invoices months that are over. `look` does once what can be done now and returns after how many
 * milliseconds to look again; it throws LeadershipLost once another control plane leads.
 */
export function createClosing(deps: ClosingDeps, epoch: bigint) {
  const { config, ledger, clock, log } = deps
  const finished = new Set<number>()

  /** Of those whose invoice can be made; one that can't must not keep the others waiting for theirs. */
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
        "a tenant's invoice could not be made; it is tried again",
      )
    }
    return composed.flatMap(({ content }) => content ?? [])
  }

  /** Makes what can be made. */
  const close = async (month: Date, final: boolean, signal: AbortSignal): Promise<MissingInvoices> => {
    const missing = { month, notClosed: 0, failed: 0, outdated: 0 }
    for await (const tenants of pages(deps, month)) {
      signal.throwIfAborted()
      const settled = await ledger.settled(month, tenants, { drafts: !final })
      const open = tenants.filter((tenant) => !settled.has(tenant))
      const contents = open.length === 0 ? [] : await compose(open, month, missing)
      const stored = contents.length === 0 ? 0 : await ledger.keepAll(contents, final, epoch)
      if (stored > 0) log.info({ month: monthText(month), invoices: stored, final }, 'invoices were made')
      missing.outdated += contents.length - stored
    }
    return missing
  }

  /** Once. @returns after how many milliseconds to look again */
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
      const left = await close(month, final, signal)
      missing.push(left)
      if (final && left.notClosed + left.failed + left.outdated === 0) await ledger.finish(month, epoch)
    }
    deps.measure(missing)
    return intervalMilliseconds
  }

  return { poll }
}

/** Ids in order of everybody who had a plan or used anything in the month. */
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
