// Reads a home's books for the control plane. The tables are the tenant's, who may have made anything of them: what the runtime
// has seen itself counts where it is more.
import { hourMilliseconds, hourOf, type HomeCounters } from '@tenantry/contract'
import { sql, type Row } from '../database/statement.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { byteSeconds, checkedRuns, noRuns, plusRuns, type Point, type RunAmounts } from './book-hours.ts'
import type { ObservedRuns } from './observed-runs.ts'

export interface CountersReaderDeps {
  now: () => Date
  runs: ObservedRuns
  /** Bytes that its documents take, as the quota has it. */
  documents: (tenant: Tenant) => Promise<number>
  files: {
    /** What the store was found to hold at the last sweep, and for how long the home did not say so: bytes times milliseconds by hours. */
    seen(tenantId: string): { bytes: number; unsaid: ReadonlyMap<number, bigint> } | undefined
    sweep(tenant: Tenant): Promise<unknown>
  }
}

interface CountersReader {
  /** @throws when the home can't say, and has not since the runtime's start */
  read(tenant: Tenant, hours: number): Promise<HomeCounters>
  evict(tenantId: string): void
}

/** What a home says of its files: its books' id, bytes, and the integral of their time up to `at`; times in microseconds since 1970. */
interface FileCounters {
  books: string
  began: bigint
  bytes: bigint
  at: bigint
  /** In the order of time, the last at `at`. */
  points: readonly Point[]
}

interface Reported {
  files: FileCounters
  runs: ReadonlyMap<number, RunAmounts>
}

/** What a home said last. */
interface Remembered {
  files: FileCounters
  documentBytes: number
}

const context: RlsContext = { role: 'service', reason: 'usage' }
const microseconds = (time: string) => `(extract(epoch from ${time}) * 1000000)::bigint::text`

const state = `select books::text, file_bytes::text, trunc(file_byte_us)::text as value, ${microseconds('books_began')} as began,
  ${microseconds('counted_at')} as counted, ${microseconds('clock_timestamp()')} as at from storage_usage`

/** From the last that was not after the first hour asked for. */
const watermarks = `select ${microseconds('hour')} as at, trunc(value)::text as value
  from usage_hours, (select to_timestamp($1::bigint / 1000) as from) as asked
  where meter = 'file_byte_us' and hour >= coalesce(
    (select max(hour) from usage_hours where meter = 'file_byte_us' and hour <= asked.from), asked.from)
  order by hour`

const runs = `select ${microseconds('hour')} as hour, sum(invocations)::text as invocations,
    sum(milliseconds)::text as milliseconds, sum(cpu)::text as cpu, sum(memory)::text as memory
  from (select to_timestamp($1::bigint / 1000) as from, books_began from storage_usage) as asked, lateral (
    select date_trunc('hour', i.timestamp, 'UTC') as hour, count(*)::numeric as invocations, sum(i.duration_ms)::numeric as milliseconds,
      sum(round(i.cpu_ms * 1000))::numeric as cpu, sum(ceil(i.memory_peak / 1024.0) * i.duration_ms)::numeric as memory
    from functions f join function_invocations i on i.function_id = f.id and i.timestamp >= greatest(asked.from, books_began) group by 1
    union all
    select hour, case meter when 'function_invocations' then value else 0 end,
      case meter when 'function_milliseconds' then value else 0 end,
      case meter when 'function_cpu_microseconds' then value else 0 end,
      case meter when 'function_memory_kib_milliseconds' then value else 0 end
    from usage_hours where hour >= asked.from and meter <> 'file_byte_us'
  ) as parts group by 1`

export function createCountersReader({ now, runs: observed, documents, files }: CountersReaderDeps): CountersReader {
  const remembered = new Map<string, Remembered>()

  /**
   * Returns what `ask` gives, or `otherwise` where Postgres answers and `ask` alone fails twice: what the tenant has made
   * of its tables must not make it unread.
   */
  const insisted = async <T>(tenant: Tenant, request: () => Promise<T>, otherwise: T | undefined): Promise<T> => {
    try {
      return await request()
    } catch (cause) {
      if (otherwise === undefined) throw cause
      await tenant.database.query(context, 'select 1')
      return request().catch(() => otherwise)
    }
  }

  const request = async (tenant: Tenant, from: number): Promise<Reported> => {
    const [stated, marked, ran] = await tenant.database.read(
      context,
      sql(state),
      sql(watermarks, from),
      sql(runs, from),
    )
    return {
      files: fileCountersOf(tenant, stated?.rows[0], marked?.rows ?? []),
      runs: new Map((ran?.rows ?? []).map(runsOf)),
    }
  }

  return {
    async read(tenant, hours) {
      const from = hourOf(now().getTime()) - hours * hourMilliseconds
      const before = remembered.get(tenant.id)
      const goingOn = before && { files: goneOn(before.files, now()), runs: new Map<number, RunAmounts>() }
      const reported = await insisted(tenant, () => request(tenant, from), goingOn)
      // What lies in the store and the home does not speak of.
      const checkAgain = async () => {
        if ((files.seen(tenant.id)?.bytes ?? 0) > Number(reported.files.bytes)) await files.sweep(tenant)
      }
      const [documentBytes] = await Promise.all([
        insisted(tenant, () => documents(tenant), before?.documentBytes),
        insisted(tenant, checkAgain, null),
      ])
      remembered.set(tenant.id, {
        files: before !== undefined && reported === goingOn ? before.files : reported.files,
        documentBytes,
      })
      const { books: counters, began, bytes, at, points } = reported.files
      const used = checkedRuns(reported.runs, observed.report(tenant.id, counters), from)
      const seen = files.seen(tenant.id)
      const unsaid = seen?.unsaid ?? new Map<number, bigint>()
      const until = Number(at / 1000n)
      // When the books began is the home's word, too: what was seen before that was there.
      const first = Math.min(Number(began / 1000n), until, ...unsaid.keys(), ...used.keys())
      const requested = Array.from({ length: hours + 1 }, (_, n) => from + n * hourMilliseconds).filter(
        (hour) => hour <= until && hour + hourMilliseconds > first,
      )
      return {
        tenant_id: tenant.id,
        books: counters,
        began: iso(began),
        at: iso(at),
        document_bytes: documentBytes,
        file_bytes: Math.max(Number(bytes), unsaid.size === 0 ? 0 : (seen?.bytes ?? 0)),
        hours: requested.map((hour) => {
          const [stated, held] = [byteSeconds(points, hour), (unsaid.get(hour) ?? 0n) / 1000n]
          const amounts = used.get(hour) ?? noRuns
          return {
            hour: new Date(hour).toISOString(),
            file_byte_seconds: String(held > stated ? held : stated),
            function_invocations: String(amounts.functionInvocations),
            function_milliseconds: String(amounts.functionMilliseconds),
            function_cpu_microseconds: String(amounts.functionCpuMicroseconds),
            function_memory_kib_milliseconds: String(amounts.functionMemoryKibMilliseconds),
          }
        }),
      }
    },
    evict: (tenantId) => remembered.delete(tenantId),
  }
}

function fileCountersOf(tenant: Tenant, row: Row | undefined, marked: readonly Row[]): FileCounters {
  if (row === undefined) throw new Error(`${tenant.id}: the home has no books`)
  const number = (name: string) => BigInt(String(row[name]))
  const [began, counted, at, bytes, value] = [
    number('began'),
    number('counted'),
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
      ...watermarks.filter((mark) => mark.at > began && mark.at < counted),
      { at: counted, value },
      { at, value: value + bytes * (at > counted ? at - counted : 0n) },
    ],
  }
}

/** As if nothing had changed since. */
function goneOn(files: FileCounters, now: Date): FileCounters {
  const at = BigInt(now.getTime()) * 1000n
  const last = files.points.at(-1)
  if (last === undefined || at <= last.at) return files
  return { ...files, at, points: [...files.points, { at, value: last.value + files.bytes * (at - last.at) }] }
}

function iso(at: bigint): string {
  return new Date(Number(at / 1000n)).toISOString()
}

function runsOf(row: Row): [number, RunAmounts] {
  const number = (name: string) => BigInt(String(row[name]))
  const amounts = {
    functionInvocations: number('invocations'),
    functionMilliseconds: number('milliseconds'),
    functionCpuMicroseconds: number('cpu'),
    functionMemoryKibMilliseconds: number('memory'),
  }
  return [Number(number('hour') / 1000n), plusRuns(noRuns, amounts)]
}
