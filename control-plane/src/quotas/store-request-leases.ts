// Leases of monthly requests, and slots, in the control database. A call is one transaction, for any number of tenants.
import type { LeaseResponse, LeaseCall, LeaseGrant, LeaseReport } from '@tenantry/contract'
import { decideLease } from './lease-plan.ts'
import type { RequestLeases } from './request-leases.ts'
import { shareSlots } from './store-connection-slots.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { monthText, nextMonth, startOfMonth } from '../platform/months.ts'

/** A holder that has not called for this long is not waited for. It calls each second. */
const silentMilliseconds = 5_000
/** The duration of a recall, in which holders release what they have not used. */
const recallMilliseconds = 3_000

/**
 * Creates the leases of monthly requests and slots of connections, on the control database (specification, section 8).
 */
export function createRequestLeases(database: Database, now: () => Date): RequestLeases {
  return {
    async call(call) {
      const at = now()
      const start = startOfMonth(at)
      const end = nextMonth(start)
      const response = { now: at.toISOString(), month: monthText(start), resets_at: end.toISOString() }
      return database.$transaction(
        async (transaction): Promise<LeaseResponse> => {
          const held = await lockHolder(transaction, call, at)
          if (held === undefined)
            return { ...response, accepted: false, grants: [], recalled: [], slots: [], slots_recalled: [] }
          await inherit(transaction, call, response.month)
          if (held.latest) await endEarlier(transaction, call)
          // A gateway that continues an earlier boot's lease learns its size from the grant.
          const leaseReports = call.stopping
            ? []
            : call.reports.filter(({ ask: requested, inherited }) => requested > 0 || inherited !== undefined)
          // The budgets are locked before the counts are recorded, so that released requests are not granted twice.
          const budgets = await lockBudgets(transaction, leaseReports, start)
          await recordReports(transaction, call, response.month)
          const grants = await grant(
            transaction,
            call,
            leaseReports.filter(({ tenant_id: id }) => budgets.has(id)),
            start,
            at,
          )
          const unlimited = leaseReports
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
                seenSince: lastSeen(at),
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
 * Locks the boot's row until the end of the transaction. The first call of a boot makes it the latest of its source,
 * after any call of an earlier boot that is in progress.
 * @returns undefined when the call is late or the boot has ended
 */
async function lockHolder(
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
 * Transfers the rest of an earlier boot's lease to this one, which continues it while the control plane is unreachable.
 * What was taken over before is not transferred again. If a boot in between took it over and ended before it knew, it
 * is transferred from that boot.
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
 * Ends earlier boots. All requests that they admitted are counted by now, and the rest of their leases is free again.
 * Requests since the hour of the last report are also in the usage counters.
 */
async function endEarlier(transaction: Transaction, { source, boot, unfinished }: LeaseCall): Promise<void> {
  const gone = await transaction.$queryRaw<{ boot: string }[]>`
    update lease_holders set ended = true
    where source = ${source} and boot <> all(${[boot, ...unfinished]}::uuid[]) and not ended returning boot::text`
  if (gone.length === 0) return
  const boots = gone.map(({ boot: ended }) => ended)
  await transaction.$executeRaw`
    with counted as (
      select l.tenant_id, l.month, l.boot, least(l.granted, greatest(l.used, l.used_before + coalesce(sum(c.value), 0)))::bigint as used
      from request_leases l
      left join usage_counters c on c.tenant_id = l.tenant_id and c.source = l.source and c.boot = l.boot and c.meter = 'requests'
        and c.hour >= greatest(l.hour, l.month::timestamp at time zone 'UTC')
        and c.hour < (l.month + interval '1 month') at time zone 'UTC'
      where l.source = ${source} and l.boot = any(${boots}::uuid[])
      group by l.tenant_id, l.month, l.source, l.boot)
    update request_leases l set used = counted.used, granted = counted.used
    from counted where l.tenant_id = counted.tenant_id and l.month = counted.month and l.source = ${source} and l.boot = counted.boot`
  // Each boot is granted something of every tenant, and most of it is never used.
  await transaction.$executeRaw`
    delete from request_leases l using lease_holders h
    where l.source = ${source} and h.source = l.source and h.boot = l.boot and h.ended and l.granted = 0 and l.used = 0`
}

/**
 * Locks the budgets.
 * @returns the tenants whose requests are leased, without unlimited, deleted and unknown ones
 */
async function lockBudgets(
  transaction: Transaction,
  leaseReports: readonly LeaseReport[],
  start: Date,
): Promise<Set<string>> {
  if (leaseReports.length === 0) return new Set()
  // In order, so that two calls never wait for each other.
  const rows = await transaction.$queryRaw<{ tenant_id: string }[]>`
    insert into request_budgets (tenant_id, month)
    select t.id, (${monthText(start)} || '-01')::date from tenants t join plans p on p.id = t.plan_id
    where t.id = any(${leaseReports.map(({ tenant_id: id }) => id)}) and p.requests_per_month is not null
    order by t.id
    on conflict (tenant_id, month) do update set month = excluded.month
    returning tenant_id`
  return new Set(rows.map(({ tenant_id: id }) => id))
}

/**
 * Records what a gateway has used. A report without a month knows of no grant, so grants that were lost on the way are
 * free again.
 */
async function recordReports(
  transaction: Transaction,
  { source, boot, reports }: LeaseCall,
  quota: string,
): Promise<void> {
  const known = reports.map((report) => ({ ...report, month: report.month ?? quota }))
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
  leaseReports: readonly LeaseReport[],
  start: Date,
  at: Date,
): Promise<LeaseGrant[]> {
  if (leaseReports.length === 0) return []
  const month = monthText(start)
  const quotas = await transaction.$queryRaw<QuotaState[]>`
    select t.id as tenant_id, p.requests_per_month as limit, held.*
    from unnest(${leaseReports.map(({ tenant_id: id }) => id)}::text[]) as wanted(id)
    join tenants t on t.id = wanted.id join plans p on p.id = t.plan_id
    cross join lateral (
      select coalesce(sum(l.granted) filter (where is_own), 0)::bigint as own,
        coalesce(sum(l.granted) filter (where not is_own), 0)::bigint as others,
        coalesce(sum(l.used), 0)::bigint as used,
        coalesce(sum(l.granted - l.used) filter (where not is_own and not h.ended and h.seen_at > ${lastSeen(at)}), 0)::bigint
          as reclaimable
      from request_leases l left join lease_holders h on h.source = l.source and h.boot = l.boot
      cross join lateral (select l.source = ${source} and l.boot = ${boot}::uuid as is_own) o
      where l.tenant_id = t.id and l.month = (${month} || '-01')::date) as held
    where p.requests_per_month is not null`
  const byId = new Map(quotas.map((quota) => [quota.tenant_id, quota]))
  const decided = leaseReports.flatMap(({ tenant_id: id, ask: requested, waiting }) => {
    const quota = byId.get(id)
    if (quota === undefined) return []
    const { limit, own, others, reclaimable } = quota
    const decision = decideLease({
      limit: Number(limit),
      own: Number(own),
      others: Number(others),
      reclaimable: Number(reclaimable),
      requested,
      waiting,
    })
    return [{ id, quota, decision }]
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
  return decided.map(({ id, quota, decision }) => ({
    tenant_id: id,
    granted: Number(quota.own) + decision.amount,
    limit: Number(quota.limit),
    used: Number(quota.used),
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
