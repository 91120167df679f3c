// Reads a month's usage: counts from the ledger, stored bytes from the tenant's runtime, the services' usage from their
// engine.
import { storedNow, type StoredNowDeps, statusSourceOf, type StatusDeps } from '../health/index.ts'
import type { KeyLimit } from '../keys/index.ts'
import { monthText, nextMonth } from '../platform/months.ts'
import type { PlanHistory, Plan, PlanStore } from '../plans/index.ts'
import type { TenantStore } from '../tenants/index.ts'
import { settleMilliseconds } from './jobs-close-ledger.ts'
import { componentUsage } from './component-usage.ts'
import { startOfHour } from './hours.ts'
import { monthResources } from './month-resources.ts'
import type { MonthUsage } from './month-usage.ts'
import { dayParts, hourParts } from './usage-parts.ts'
import type { MonthState, UsageSubject, Usage, Granularity, UsageSeries, UsagePage } from './usage.ts'
import type { UsagePostings } from './store-postings.ts'

interface UsageReaderDeps extends StatusDeps, StoredNowDeps {
  postings: UsagePostings
  tenants: Pick<TenantStore, 'get'>
  plans: PlanStore
  history: PlanHistory
}

/** Reads usage. `month` is the first instant of the month, UTC. */
export type UsageReader = ReturnType<typeof createUsageReader>

/** Creates the reader of usage for the API (specification, section 4.4). */
export function createUsageReader(deps: UsageReaderDeps) {
  const { postings, tenants, history, clock } = deps

  /** Returns the time before which all hours of the month should be closed. */
  const due = (month: Date) =>
    new Date(
      Math.min(startOfHour(new Date(clock.now().getTime() - settleMilliseconds)).getTime(), nextMonth(month).getTime()),
    )

  const stateOf = async ({ id }: UsageSubject, month: Date, usage: MonthUsage): Promise<MonthState> => {
    const lived = usage.isThere || (await history.periods(id, month, nextMonth(month))).length > 0
    const incomplete = usage.closedAt === undefined && lived
    return {
      tenant_id: id,
      month: monthText(month),
      incomplete,
      missing_sources: incomplete ? await postings.missing(due(month), id) : [],
      period: periodOf(month),
    }
  }

  return {
    /** Finds a tenant; undefined when there never was one with this id. */
    async subject(id: string): Promise<UsageSubject | undefined> {
      const tenant = await tenants.get(id)
      return tenant !== undefined || (await postings.isKnown(id)) ? { id, tenant } : undefined
    },

    /** Reads the usage of a month by resource, with the present usage for the current month. */
    async read(subject: UsageSubject, month: Date): Promise<Usage> {
      const { id, tenant } = subject
      const now = clock.now()
      const statusSource =
        tenant !== undefined && now < nextMonth(month) ? await statusSourceOf(deps, tenant) : undefined
      const [usage, plan, stored, components] = await Promise.all([
        postings.month(id, month),
        planOf(deps, subject, month),
        storedNow(deps, statusSource),
        tenant === undefined || tenant.isolation === 'schema-per-tenant'
          ? undefined
          : componentUsage(clock, statusSource, tenant.isolation),
      ])
      return {
        ...(await stateOf(subject, month, usage)),
        resources: monthResources({
          usage,
          plan,
          stored,
          elapsedMilliseconds: Math.min(now.getTime(), nextMonth(month).getTime()) - month.getTime(),
        }),
        corrections: usage.corrections,
        ...(components === undefined ? {} : { components }),
      }
    },

    /** Reads the usage of a month by hour or by day. */
    async series(subject: UsageSubject, month: Date, granularity: Granularity): Promise<UsageSeries> {
      const hours = await postings.hours(subject.id, month)
      return {
        ...(await stateOf(subject, month, hours)),
        granularity,
        parts: granularity === 'hour' ? hourParts(hours) : dayParts(hours),
        corrections: hours.corrections,
      }
    },

    /**
     * Reads the month's totals of many tenants, in the order of their IDs.
     * @param keyLimit what the caller's key is limited to
     */
    async page(month: Date, page: { after: string; limit: number }, keyLimit: KeyLimit): Promise<UsagePage> {
      const [found, missing] = await Promise.all([postings.page(month, page, keyLimit), postings.missing(due(month))])
      return { month: monthText(month), missing_sources: missing, period: periodOf(month), tenants: found }
    },
  }
}

function periodOf(month: Date) {
  return { start: month.toISOString(), end: nextMonth(month).toISOString() }
}

/** Returns the plan at the month's end, or now; the tenant's present plan for a month before the tenant existed. */
async function planOf(
  { history, plans }: UsageReaderDeps,
  { id, tenant }: UsageSubject,
  month: Date,
): Promise<Plan | undefined> {
  const [periods, all] = await Promise.all([history.periods(id, month, nextMonth(month)), plans.list()])
  const name = periods.at(-1)?.plan ?? tenant?.plan
  return all.find((plan) => plan.id === name)
}
