// Leases of monthly requests on the control database, and slots with them: one transaction a call, whatever the number of
// tenants in it.
import type { LeaseResponse, LeaseCall, LeaseGrant, LeaseReport } from '@tenantry/contract'
import { decideLease } from './lease-plan.ts'
import type { RequestLeases } from './request-leases.ts'
import { shareSlots } from './store-connection-slots.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { monthText, nextMonth, startOfMonth } from '../platform/months.ts'

/** A holder that was not heard of for so long is not waited for to give back. It calls each second. */
const silentMilliseconds = 5_000
/** For how long holders are asked to give back. */
const recallMilliseconds = 3_000

/** Leases of monthly requests and slots of connections, on the control database (specification, section 8). */
export function createRequestLeases(database: Database, now: () => Date): RequestLeases {
  return {
    async call(call) {
      const at = now()
      const start = startOfMonth(at)
      const end = nextMonth(start)
      const response = { now: at.toISOString(), month: monthText(start), resets_at: end.toISOString() }
      return database.$transaction(
        async (transaction): Promise<LeaseResponse> => {
          const held = await hold(transaction, call, at)
          if (held === undefined)
            return { ...response, accepted: false, grants: [], recalled: [], slots: [], slots_recalled: [] }
          await inherit(transaction, call, response.month)
          if (held.latest) await endEarlier(transaction, call)
          // Who goes on with an earlier incarnation's lease is told how much of it there is.
          const requested = call.stopping
            ? []
            : call.reports.filter(({ ask: request, inherited }) => request > 0 || inherited !== undefined)
          // Before its counts are taken down: what one gives back must not be granted twice.
          const budgets = await lockBudgets(transaction, requested, start)
          await takeDown(transaction, call, response.month)
          const grants = await grant(
            transaction,
            call,
            requested.filter(({ tenant_id: id }) => budgets.has(id)),
            start,
            at,
          )
          const unlimited = requested
            .filter(({ tenant_id: id }) => !budgets.has(id))
            .map(({ tenant_id: id, used }): LeaseGrant => ({
              tenant_id: id,
              granted: null,
              limit: null,
              used,
              state: 'granted',
            }))
          if (call.stopping)
            await transaction.$executeRaw`update lease_holders set ended = true where source = ${call.source} and boot = ${call.boot}::uuid`
          const shared = held.latest
            ? await shareSlots(transaction, {
                call,
                isFirst: held.isFirst,
                at,
                heardOf: lastSeen(at),
                recalledUntil: recalledUntil(at),
              })
            : noSlots
          return {
            ...response,
            accepted: true,
            grants: [...grants, ...unlimited],
            recalled: await recalled(transaction, call, start, at),
            ...shared,
          }
        },
        { maxWait: 5_000, timeout: 10_000 },
      )
    },
  }
}

const noSlots = { slots: [], slots_recalled: [] }

function lastSeen(at: Date): Date {
  return new Date(at.getTime() - silentMilliseconds)
}

function recalledUntil(at: Date): Date {
  return new Date(at.getTime() + recallMilliseconds)
}

/**
 * Holds the incarnation's row until the end of the transaction. Its first call makes it the latest of its source: that waits
 * for a call of an earlier one that is under way.
 * @returns undefined when the call comes late or the incarnation has ended
 */
async function hold(
  transaction: Transaction,
  { source, boot, sequence }: LeaseCall,
  at: Date,
): Promise<{ isFirst: boolean; latest: boolean } | undefined> {
  const [held] = await transaction.$queryRaw<{ is_first: boolean; latest: boolean }[]>`
    insert into lease_holders (source, boot, sequence, seen_at) values (${source}, ${boot}::uuid, ${sequence}, ${at})
    on conflict (source, boot) do update set sequence = excluded.sequence, seen_at = excluded.seen_at
    where not lease_holders.ended and lease_holders.sequence < excluded.sequence
    returning latest, not exists (
      select from lease_holders known where known.source = ${source} and known.boot = ${boot}::uuid) as is_first`
  if (held?.is_first === true)
    await transaction.$executeRaw`update lease_holders set latest = false where source = ${source} and boot <> ${boot}::uuid and latest`
  return held && { isFirst: held.is_first, latest: held.latest }
}

/**
 * What is left of an earlier incarnation's lease becomes this one's: it goes on with it while nobody could be asked. What
 * was taken over already is not taken again. An incarnation in between may have taken it over and died before it knew: then it
 * is taken from that one.
 */
async function inherit(transaction: Transaction, { source, boot, reports }: LeaseCall, month: string): Promise<void> {
  const heirs = reports
    .filter((report) => report.month === month)
    .flatMap(({ tenant_id: id, inherited }) => (inherited === undefined ? [] : [{ tenant_id: id, ...inherited }]))
  if (heirs.length === 0) return
  await transaction.$executeRaw`
    with wanted as (
      select l.tenant_id, l.month, l.boot, least(r.amount - coalesce(own.inherited, 0), l.granted - l.used) as amount
      from jsonb_to_recordset(${JSON.stringify(heirs)}::jsonb) as r(tenant_id text, boot uuid, amount bigint)
      join request_leases l on l.tenant_id = r.tenant_id and l.month = (${month} || '-01')::date and l.source = ${source}
        and (l.boot = r.boot or l.inherited > 0)
      join lease_holders h on h.source = l.source and h.boot = l.boot and not h.ended
      left join request_leases own
        on own.tenant_id = l.tenant_id and own.month = l.month and own.source = l.source and own.boot = ${boot}::uuid
      where l.boot <> ${boot}::uuid),
    given as (
      update request_leases l set granted = l.granted - wanted.amount
      from wanted
      where wanted.amount > 0 and l.tenant_id = wanted.tenant_id and l.month = wanted.month and l.source = ${source}
        and l.boot = wanted.boot
      returning l.tenant_id, l.month, wanted.amount)
    insert into request_leases (tenant_id, month, source, boot, granted, inherited)
    select tenant_id, month, ${source}, ${boot}::uuid, sum(amount), sum(amount) from given group by tenant_id, month
    on conflict (tenant_id, month, source, boot) do update set
      granted = request_leases.granted + excluded.granted, inherited = request_leases.inherited + excluded.inherited`
}

/**
 * All that an earlier incarnation has let in was counted by now; the rest of its leases is free again. What was counted
 * since the hour of its last report is in the counters, which count the same requests.
 */
async function endEarlier(transaction: Transaction, { source, boot, unfinished }: LeaseCall): Promise<void> {
  const ended = await transaction.$executeRaw`
    with gone as (
      update lease_holders set ended = true
      where source = ${source} and boot <> all(${[boot, ...unfinished]}::uuid[]) and not ended returning boot),
    counted as (
      select l.tenant_id, l.month, l.boot, least(l.granted, greatest(l.used, l.used_before + coalesce(sum(c.value), 0)))::bigint as used
      from request_leases l join gone using (boot)
      left join usage_counters c on c.tenant_id = l.tenant_id and c.source = l.source and c.boot = l.boot and c.meter = 'requests'
        and c.hour >= greatest(l.hour, l.month::timestamp at time zone 'UTC')
        and c.hour < (l.month + interval '1 month') at time zone 'UTC'
      where l.source = ${source}
      group by l.tenant_id, l.month, l.source, l.boot)
    update request_leases l set used = counted.used, granted = counted.used
    from counted where l.tenant_id = counted.tenant_id and l.month = counted.month and l.source = ${source} and l.boot = counted.boot`
  if (ended === 0) return
  // Each incarnation is granted something of every tenant: most of it is never used.
  await transaction.$executeRaw`
    delete from request_leases l using lease_holders h
    where l.source = ${source} and h.source = l.source and h.boot = l.boot and h.ended and l.granted = 0 and l.used = 0`
}

/** @returns the tenants of which requests are leased; an unlimited, deleted or unknown one is none of them */
async function lockBudgets(
  transaction: Transaction,
  requested: readonly LeaseReport[],
  start: Date,
): Promise<Set<string>> {
  if (requested.length === 0) return new Set()
  // In order, so that two calls never wait for each other.
  const rows = await transaction.$queryRaw<{ tenant_id: string }[]>`
    insert into request_budgets (tenant_id, month)
    select t.id, (${monthText(start)} || '-01')::date from tenants t join plans p on p.id = t.plan_id
    where t.id = any(${requested.map(({ tenant_id: id }) => id)}) and p.requests_per_month is not null
    order by t.id
    on conflict (tenant_id, month) do update set month = excluded.month
    returning tenant_id`
  return new Set(rows.map(({ tenant_id: id }) => id))
}

/** Who knows of no month was granted nothing that it knows of: what was lost on its way to it is free again. */
async function takeDown(
  transaction: Transaction,
  { source, boot, reports }: LeaseCall,
  present: string,
): Promise<void> {
  const known = reports.map((report) => ({ ...report, month: report.month ?? present }))
  if (known.length === 0) return
  await transaction.$executeRaw`
    update request_leases l set
      used = least(l.granted, greatest(l.used, r.used)),
      granted = greatest(l.used, least(l.granted, greatest(r.used, r.keep))),
      used_before = least(l.granted, greatest(l.used, r.used), r.used_before),
      hour = coalesce(r.hour, l.hour)
    from jsonb_to_recordset(${JSON.stringify(known)}::jsonb)
      as r(tenant_id text, month text, used bigint, hour timestamptz, used_before bigint, keep bigint)
    where l.tenant_id = r.tenant_id and l.month = (r.month || '-01')::date and l.source = ${source} and l.boot = ${boot}::uuid`
}

interface QuotaState {
  tenant_id: string
  limit: bigint
  own: bigint
  others: bigint
  used: bigint
  reclaimable: bigint
}

async function grant(
  transaction: Transaction,
  { source, boot }: LeaseCall,
  requested: readonly LeaseReport[],
  start: Date,
  at: Date,
): Promise<LeaseGrant[]> {
  if (requested.length === 0) return []
  const month = monthText(start)
  const standings = await transaction.$queryRaw<QuotaState[]>`
    select t.id as tenant_id, p.requests_per_month as limit,
      coalesce(sum(l.granted) filter (where is_own), 0)::bigint as own,
      coalesce(sum(l.granted) filter (where not is_own), 0)::bigint as others,
      coalesce(sum(l.used), 0)::bigint as used,
      coalesce(sum(l.granted - l.used) filter (where not is_own and not h.ended and h.seen_at > ${lastSeen(at)}), 0)::bigint as reclaimable
    from tenants t join plans p on p.id = t.plan_id
    left join request_leases l on l.tenant_id = t.id and l.month = (${month} || '-01')::date
    left join lease_holders h on h.source = l.source and h.boot = l.boot
    cross join lateral (select l.source = ${source} and l.boot = ${boot}::uuid as is_own) o
    where t.id = any(${requested.map(({ tenant_id: id }) => id)}) and p.requests_per_month is not null
    group by t.id, p.requests_per_month`
  const byId = new Map(standings.map((present) => [present.tenant_id, present]))
  const decided = requested.flatMap(({ tenant_id: id, ask: request, waiting }) => {
    const present = byId.get(id)
    if (present === undefined) return []
    const { limit, own, others, reclaimable } = present
    const decision = decideLease({
      limit: Number(limit),
      own: Number(own),
      others: Number(others),
      reclaimable: Number(reclaimable),
      request,
      waiting,
    })
    return [{ id, present, decision }]
  })
  const granted = decided
    .filter(({ decision }) => decision.amount > 0)
    .map(({ id, decision }) => ({ tenant_id: id, amount: decision.amount }))
  if (granted.length > 0) {
    await transaction.$executeRaw`
      insert into request_leases (tenant_id, month, source, boot, granted)
      select tenant_id, (${month} || '-01')::date, ${source}, ${boot}::uuid, amount
      from jsonb_to_recordset(${JSON.stringify(granted)}::jsonb) as g(tenant_id text, amount bigint)
      on conflict (tenant_id, month, source, boot) do update set granted = request_leases.granted + excluded.granted`
  }
  const recalls = decided.filter(({ decision }) => decision.recall).map(({ id }) => id)
  if (recalls.length > 0) {
    await transaction.$executeRaw`
      update request_budgets set recalled_until = ${recalledUntil(at)}
      where tenant_id = any(${recalls}) and month = (${month} || '-01')::date`
  }
  return decided.map(({ id, present, decision }) => ({
    tenant_id: id,
    granted: Number(present.own) + decision.amount,
    limit: Number(present.limit),
    used: Number(present.used),
    state: decision.state,
  }))
}

async function recalled(
  transaction: Transaction,
  { source, boot, stopping }: LeaseCall,
  start: Date,
  at: Date,
): Promise<string[]> {
  if (stopping) return []
  const rows = await transaction.$queryRaw<{ tenant_id: string }[]>`
    select l.tenant_id from request_budgets b join request_leases l on l.tenant_id = b.tenant_id and l.month = b.month
    where b.recalled_until > ${at} and b.month = (${monthText(start)} || '-01')::date and l.source = ${source}
      and l.boot = ${boot}::uuid and l.granted > l.used`
  return rows.map(({ tenant_id: id }) => id)
}
