// Slots for long-lived connections in the control database, as a part of the calls that lease requests.
import type { LeaseResponse, LeaseCall, SlotGrant, SlotReport } from '@tenantry/contract'
import { decideSlots } from './slot-plan.ts'
import { warnedFrom } from './quota-warning.ts'
import type { Transaction } from '../platform/database.ts'

interface SlotCall {
  call: LeaseCall
  /** Whether it is the first call of its boot. */
  isFirst: boolean
  at: Date
  /** Holders that have not called since this time are not waited for. */
  seenSince: Date
  recalledUntil: Date
}

/**
 * Records and grants slots.
 * @param slotCall a call of the latest boot of its source; earlier boots have no connections any more
 */
export async function shareSlots(
  transaction: Transaction,
  { call, isFirst, at, seenSince, recalledUntil }: SlotCall,
): Promise<Pick<LeaseResponse, 'slots' | 'slots_recalled'>> {
  const { source, slots: reports = [], stopping } = call
  if (stopping) {
    await freeSlots(transaction, source)
    return { slots: [], slots_recalled: [] }
  }
  await lockBudgets(transaction, reports)
  if (isFirst)
    await freeSlots(
      transaction,
      source,
      reports.filter(({ keep }) => keep > 0).map(({ tenant_id: id }) => id),
    )
  await recordReports(transaction, source, reports)
  const slots = await grant(transaction, source, reports, { at, seenSince, recalledUntil })
  return { slots, slots_recalled: await recalled(transaction, source, at) }
}

/**
 * Releases all slots of a gateway, except those of some tenants: its connections are closed, or it is gone for good.
 */
export async function freeSlots(
  transaction: Transaction,
  source: string,
  except: readonly string[] = [],
): Promise<void> {
  await transaction.$executeRaw`delete from connection_slots where source = ${source} and tenant_id <> all(${[...except]})`
}

async function lockBudgets(transaction: Transaction, reports: readonly SlotReport[]): Promise<void> {
  if (reports.length === 0) return
  const ids = reports.map(({ tenant_id: id }) => id)
  // The locks are taken in order, so that two calls never wait for each other. No locked tenant is removed before the
  // end.
  await transaction.$executeRaw`
    insert into connection_budgets (tenant_id)
    select t.id from tenants t join plans p on p.id = t.plan_id
    where t.id = any(${ids}) and p.realtime_connections is not null
    order by t.id for key share of t on conflict do nothing`
  await transaction.$queryRaw`select 1 as held from connection_budgets where tenant_id = any(${ids}) order by tenant_id for update`
}

async function recordReports(transaction: Transaction, source: string, reports: readonly SlotReport[]): Promise<void> {
  if (reports.length === 0) return
  await transaction.$executeRaw`
    update connection_slots s set slots = least(s.slots, r.keep), open = least(s.slots, r.keep, r.open)
    from jsonb_to_recordset(${JSON.stringify(reports)}::jsonb) as r(tenant_id text, keep integer, open integer)
    where s.tenant_id = r.tenant_id and s.source = ${source} and r.keep > 0`
  const none = reports.filter(({ keep }) => keep === 0).map(({ tenant_id: id }) => id)
  if (none.length > 0)
    await transaction.$executeRaw`delete from connection_slots where source = ${source} and tenant_id = any(${none})`
}

interface QuotaState {
  tenant_id: string
  limit: number
  own: number
  others: number
  open: number
  reclaimable: number
}

async function grant(
  transaction: Transaction,
  source: string,
  reports: readonly SlotReport[],
  { at, seenSince, recalledUntil }: Pick<SlotCall, 'at' | 'seenSince' | 'recalledUntil'>,
): Promise<SlotGrant[]> {
  if (reports.length === 0) return []
  const quotas = await transaction.$queryRaw<QuotaState[]>`
    select t.id as tenant_id, p.realtime_connections as limit, shared.*
    from unnest(${reports.map(({ tenant_id: id }) => id)}::text[]) as wanted(id)
    join tenants t on t.id = wanted.id join plans p on p.id = t.plan_id
    cross join lateral (
      select coalesce(sum(s.slots) filter (where s.source = ${source}), 0)::integer as own,
        coalesce(sum(s.slots) filter (where s.source <> ${source}), 0)::integer as others,
        coalesce(sum(s.open), 0)::integer as open,
        coalesce(sum(s.slots - s.open) filter (where s.source <> ${source} and exists (
          select from lease_holders h
          where h.source = s.source and h.latest and not h.ended and h.seen_at > ${seenSince})), 0)::integer as reclaimable
      from connection_slots s where s.tenant_id = t.id) as shared
    where p.realtime_connections is not null`
  const byId = new Map(quotas.map((quota) => [quota.tenant_id, quota]))
  const decided = reports.flatMap((report) => {
    const quota = byId.get(report.tenant_id)
    if (quota === undefined) return []
    const { ask: requested, waiting } = report
    const decision = decideSlots({ ...quota, requested, waiting })
    // A waiting connection opens as soon as the gateway has the response.
    const open = quota.open + Math.min(decision.amount, waiting)
    return [{ report, quota, decision, open }]
  })
  const granted = decided
    .filter(({ decision }) => decision.amount > 0)
    .map(({ report, decision }) => ({
      tenant_id: report.tenant_id,
      amount: decision.amount,
      open: Math.min(decision.amount, report.waiting),
    }))
  if (granted.length > 0) {
    await transaction.$executeRaw`
      insert into connection_slots (tenant_id, source, slots, open)
      select tenant_id, ${source}, amount, open
      from jsonb_to_recordset(${JSON.stringify(granted)}::jsonb) as g(tenant_id text, amount integer, open integer)
      on conflict (tenant_id, source) do update set
        slots = connection_slots.slots + excluded.slots, open = connection_slots.open + excluded.open`
  }
  await recall(
    transaction,
    decided.filter(({ decision }) => decision.recall).map(({ quota }) => quota.tenant_id),
    recalledUntil,
  )
  await recordPeaks(
    transaction,
    decided
      .filter(({ open, quota }) => open * 100 >= quota.limit * warnedFrom)
      .map(({ quota, open }) => ({ tenant_id: quota.tenant_id, open, of: quota.limit })),
    at,
  )
  const limited = decided.map(({ quota, decision, open }): SlotGrant => ({
    tenant_id: quota.tenant_id,
    held: quota.own + decision.amount,
    limit: quota.limit,
    open,
    state: decision.state,
  }))
  const unlimited = reports
    .filter(({ tenant_id: id }) => !byId.has(id))
    .map(({ tenant_id: id, open }): SlotGrant => ({ tenant_id: id, held: null, limit: null, open, state: 'granted' }))
  return [...limited, ...unlimited]
}

async function recall(transaction: Transaction, tenantIds: readonly string[], until: Date): Promise<void> {
  if (tenantIds.length === 0) return
  await transaction.$executeRaw`
    insert into connection_budgets (tenant_id, recalled_until) select id, ${until} from unnest(${[...tenantIds].sort()}::text[]) as t(id)
    on conflict (tenant_id) do update set recalled_until = excluded.recalled_until`
}

/**
 * Records the maximums of tenants near their quota, which are the only ones that are read. A maximum under another plan
 * does not count.
 */
async function recordPeaks(
  transaction: Transaction,
  peaks: readonly { tenant_id: string; open: number; of: number }[],
  at: Date,
): Promise<void> {
  if (peaks.length === 0) return
  const month = `${at.toISOString().slice(0, 7)}-01`
  await transaction.$executeRaw`
    insert into connection_budgets as b (tenant_id, peak, peak_limit, peak_month)
    select p.tenant_id, p.open, p.of, ${month}::date
    from jsonb_to_recordset(${JSON.stringify(peaks)}::jsonb) as p(tenant_id text, open integer, "of" integer)
    order by p.tenant_id
    on conflict (tenant_id) do update set peak = excluded.peak, peak_limit = excluded.peak_limit, peak_month = excluded.peak_month
    where (b.peak_month, b.peak_limit) is distinct from (excluded.peak_month, excluded.peak_limit) or b.peak < excluded.peak`
}

async function recalled(transaction: Transaction, source: string, at: Date): Promise<string[]> {
  const rows = await transaction.$queryRaw<{ tenant_id: string }[]>`
    select s.tenant_id from connection_slots s join connection_budgets b on b.tenant_id = s.tenant_id
    where s.source = ${source} and b.recalled_until > ${at}`
  return rows.map(({ tenant_id: id }) => id)
}
