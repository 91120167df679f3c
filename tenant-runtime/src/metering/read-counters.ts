// Reads a home's counters for the control plane. The tenant can change the tables, so the greater of the stored usage and
// the usage that the runtime observed counts.
import { hourMilliseconds, hourOf, type HomeCounters } from '@tenantry/contract'
import { sql, type Row } from '../database/statement.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { byteSeconds, checkedRuns, noRuns, plusRuns, type Point, type RunAmounts } from './book-hours.ts'
import type { MessageMeter } from './message-meter.ts'
import type { StoredRuns } from './stored-runs.ts'

export interface CountersReaderDeps {
  now: () => Date
  runs: Pick<StoredRuns, 'report'>
  messages: Pick<MessageMeter, 'store'>
  /** Returns the bytes of the tenant's documents, as the quota counts them. */
  documents: (tenant: Tenant) => Promise<number>
  files: {
    /**
     * The bytes that the last sweep found in the store, and the bytes that the home did not report, times milliseconds, by
     * hours.
     */
    observedFiles(tenantId: string): { bytes: number; unreported: ReadonlyMap<number, bigint> } | undefined
    sweep(tenant: Tenant): Promise<unknown>
  }
}

/**
 * A home's counters of files: their ID, the bytes, and the integral of their time up to `at`. Times are in
 * microseconds since the epoch.
 */
interface FileCounters {
  books: string
  began: bigint
  bytes: bigint
  at: bigint
  /** Points in the order of time, the last one at `at`. */
  points: readonly Point[]
}

interface StoredUsage {
  files: FileCounters
  runs: ReadonlyMap<number, RunAmounts>
  messages: ReadonlyMap<number, string>
}

/** The values that were last read from a home. */
interface LastUsage {
  files: FileCounters
  documentBytes: number
}

const nothing: Pick<StoredUsage, 'runs' | 'messages'> = { runs: new Map(), messages: new Map() }

const context: RlsContext = { role: 'service', reason: 'usage' }
const microseconds = (time: string) => `(extract(epoch from ${time}) * 1000000)::bigint::text`

const state = `select books::text, file_bytes::text, trunc(file_byte_us)::text as value, ${microseconds('books_began')} as began,
  ${microseconds('counted_at')} as counted_at, ${microseconds('clock_timestamp()')} as at from storage_usage`

/** Selects points from the last one that is not after the first requested hour. */
const watermarks = `select ${microseconds('hour')} as at, trunc(value)::text as value
  from usage_hours, (select to_timestamp($1::bigint / 1000) as from) as requested
  where meter = 'file_byte_us' and hour >= coalesce(
    (select max(hour) from usage_hours where meter = 'file_byte_us' and hour <= requested.from), requested.from)
  order by hour`

/**
 * Selects the sums of runs. Until a run ends, its record has the bytes that it may have sent at most. Its bytes therefore count
 * when it has ended, or cannot be in progress any more.
 */
const runs = `select ${microseconds('hour')} as hour, sum(invocations)::text as invocations,
    sum(milliseconds)::text as milliseconds, sum(cpu)::text as cpu, sum(memory)::text as memory, sum(egress)::text as egress
  from (select to_timestamp($1::bigint / 1000) as from, books_began from storage_usage) as requested, lateral (
    select date_trunc('hour', i.timestamp, 'UTC') as hour, count(*)::numeric as invocations, sum(i.duration_ms)::numeric as milliseconds,
      sum(round(i.cpu_ms * 1000))::numeric as cpu, sum(ceil(i.memory_peak / 1024.0) * i.duration_ms)::numeric as memory,
      coalesce(sum(i.egress_bytes) filter (where i.state = 'ended' or i.timestamp < now() - interval '9 minutes'), 0) as egress
    from functions f join function_invocations i on i.function_id = f.id and i.timestamp >= greatest(requested.from, books_began) group by 1
    union all
    select hour, case meter when 'function_invocations' then value else 0 end,
      case meter when 'function_milliseconds' then value else 0 end,
      case meter when 'function_cpu_microseconds' then value else 0 end,
      case meter when 'function_memory_kib_milliseconds' then value else 0 end,
      case meter when 'function_egress_bytes' then value else 0 end
    from usage_hours where hour >= requested.from and meter like 'function%'
  ) as parts group by 1`

const messages = `select ${microseconds('hour')} as hour, sum(value)::text as messages
  from usage_hours where meter like 'realtime_messages:%' and hour >= to_timestamp($1::bigint / 1000) group by hour`

export function createCountersReader({ now, runs: observed, messages: meter, documents, files }: CountersReaderDeps) {
  const lastUsage = new Map<string, LastUsage>()

  /**
   * Returns the result of `request`. When `request` fails twice although Postgres responds, returns `otherwise`: a tenant
   * must not prevent metering by changing its tables.
   */
  const requestOr = async <T>(tenant: Tenant, request: () => Promise<T>, otherwise: T | undefined): Promise<T> => {
    try {
      return await request()
    } catch (cause) {
      if (otherwise === undefined) throw cause
      await tenant.database.query(context, 'select 1')
      return request().catch(() => otherwise)
    }
  }

  const readUsage = async (tenant: Tenant, from: number): Promise<StoredUsage> => {
    const [stated, marked, ran, sent] = await tenant.database.read(
      context,
      sql(state),
      sql(watermarks, from),
      sql(runs, from),
      sql(messages, from),
    )
    return {
      files: fileCountersOf(tenant, stated?.rows[0], marked?.rows ?? []),
      runs: new Map((ran?.rows ?? []).map(runsOf)),
      messages: new Map((sent?.rows ?? []).map(messagesOf)),
    }
  }

  return {
    /**
     * Reads the counters.
     * @throws Error when the home cannot be read, and was not read since the runtime's start
     */
    async read(tenant: Tenant, hours: number): Promise<HomeCounters> {
      const from = hourOf(now().getTime()) - hours * hourMilliseconds
      const before = lastUsage.get(tenant.id)
      const unchanged = before && { files: extrapolated(before.files, now()), ...nothing }
      await requestOr(tenant, () => meter.store(tenant), null)
      const usage = await requestOr(tenant, () => readUsage(tenant, from), unchanged)
      // Sweeps the store again when it has more bytes than the home reports.
      const checkAgain = async () => {
        if ((files.observedFiles(tenant.id)?.bytes ?? 0) > Number(usage.files.bytes)) await files.sweep(tenant)
      }
      const [documentBytes] = await Promise.all([
        requestOr(tenant, () => documents(tenant), before?.documentBytes),
        requestOr(tenant, checkAgain, null),
      ])
      lastUsage.set(tenant.id, {
        files: before !== undefined && usage === unchanged ? before.files : usage.files,
        documentBytes,
      })
      const { books: countersId, began, bytes, at, points } = usage.files
      const used = checkedRuns(usage.runs, observed.report(tenant.id, countersId), from)
      const seen = files.observedFiles(tenant.id)
      const unreported = seen?.unreported ?? new Map<number, bigint>()
      const until = Number(at / 1000n)
      // The tenant can change the beginning of the counters too, so usage observed before it counts as well.
      const first = Math.min(
        Number(began / 1000n),
        until,
        ...unreported.keys(),
        ...used.keys(),
        ...usage.messages.keys(),
      )
      const requestedHours = Array.from({ length: hours + 1 }, (_, n) => from + n * hourMilliseconds).filter(
        (hour) => hour <= until && hour + hourMilliseconds > first,
      )
      return {
        tenant_id: tenant.id,
        books: countersId,
        began: iso(began),
        at: iso(at),
        document_bytes: documentBytes,
        file_bytes: Math.max(Number(bytes), unreported.size === 0 ? 0 : (seen?.bytes ?? 0)),
        hours: requestedHours.map((hour) => {
          const [stated, held] = [byteSeconds(points, hour), (unreported.get(hour) ?? 0n) / 1000n]
          const amounts = used.get(hour) ?? noRuns
          return {
            hour: new Date(hour).toISOString(),
            file_byte_seconds: String(held > stated ? held : stated),
            function_invocations: String(amounts.functionInvocations),
            function_milliseconds: String(amounts.functionMilliseconds),
            function_cpu_microseconds: String(amounts.functionCpuMicroseconds),
            function_memory_kib_milliseconds: String(amounts.functionMemoryKibMilliseconds),
            function_egress_bytes: String(amounts.functionEgressBytes),
            realtime_messages: usage.messages.get(hour) ?? '0',
          }
        }),
      }
    },
    evict: (tenantId: string): void => void lastUsage.delete(tenantId),
  }
}

function fileCountersOf(tenant: Tenant, row: Row | undefined, marked: readonly Row[]): FileCounters {
  if (row === undefined) throw new Error(`The home of the tenant ${tenant.id} has no counters.`)
  const number = (name: string) => BigInt(String(row[name]))
  const [began, countedAt, at, bytes, value] = [
    number('began'),
    number('counted_at'),
    number('at'),
    number('file_bytes'),
    number('value'),
  ]
  const watermarks = marked.map((mark) => ({ at: BigInt(String(mark['at'])), value: BigInt(String(mark['value'])) }))
  return {
    books: String(row['books']),
    began,
    bytes,
    at,
    points: [
      { at: began, value: 0n },
      ...watermarks.filter((mark) => mark.at > began && mark.at < countedAt),
      { at: countedAt, value },
      { at, value: value + bytes * (at > countedAt ? at - countedAt : 0n) },
    ],
  }
}

/** Extrapolates the counters to now, as if nothing had changed. */
function extrapolated(files: FileCounters, now: Date): FileCounters {
  const at = BigInt(now.getTime()) * 1000n
  const last = files.points.at(-1)
  if (last === undefined || at <= last.at) return files
  return { ...files, at, points: [...files.points, { at, value: last.value + files.bytes * (at - last.at) }] }
}

function iso(at: bigint): string {
  return new Date(Number(at / 1000n)).toISOString()
}

function messagesOf(row: Row): [number, string] {
  return [Number(BigInt(String(row['hour'])) / 1000n), String(row['messages'])]
}

function runsOf(row: Row): [number, RunAmounts] {
  const number = (name: string) => BigInt(String(row[name]))
  const amounts = {
    functionInvocations: number('invocations'),
    functionMilliseconds: number('milliseconds'),
    functionCpuMicroseconds: number('cpu'),
    functionMemoryKibMilliseconds: number('memory'),
    functionEgressBytes: number('egress'),
  }
  return [Number(number('hour') / 1000n), plusRuns(noRuns, amounts)]
}
