// Reads a home's books for the control plane. The tables are the tenant's, who may have made anything of them: what the runtime
// has seen itself counts where it is more.
import type { HomeBooks } from '@tenantry/contract'
import { sql, type Row } from '../database/statement.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { byteSeconds, checkedRuns, heldByteSeconds, hourMilliseconds, hourOf, noRuns, plusRuns, type Point, type RunAmounts } from './book-hours.ts'
import type { RunWitness } from './run-witness.ts'

export interface BooksReaderDeps {
  runs: RunWitness
  /** Bytes that its documents take, as the quota has it. */
  documents: (tenant: Tenant) => Promise<number>
  files: {
    /** What the store was found to hold at the last sweep. */
    seen(tenantId: string): { bytes: number; since: number } | undefined
    sweep(tenant: Tenant): Promise<unknown>
  }
}

export type BooksReader = (tenant: Tenant, hours: number) => Promise<HomeBooks>

const look: RlsContext = { role: 'service', reason: 'usage' }
const microseconds = (time: string) => `(extract(epoch from ${time}) * 1000000)::bigint::text`

const state = `select books::text, file_bytes::text, trunc(file_byte_us)::text as value, ${microseconds('books_began')} as began,
  ${microseconds('counted_at')} as counted, ${microseconds('clock_timestamp()')} as at from storage_usage`

/** From the last that was not after the first hour asked for. */
const marks = `select ${microseconds('hour')} as at, trunc(value)::text as value from usage_hours, (select to_timestamp($1::bigint / 1000) as from) as asked
  where meter = 'file_byte_us' and hour >= coalesce((select max(hour) from usage_hours where meter = 'file_byte_us' and hour <= asked.from), asked.from)
  order by hour`

const runs = `select ${microseconds('hour')} as hour, sum(invocations)::text as invocations, sum(milliseconds)::text as milliseconds, sum(cpu)::text as cpu, sum(memory)::text as memory
  from (select to_timestamp($1::bigint / 1000) as from, books_began from storage_usage) as asked, lateral (
    select date_trunc('hour', i.timestamp, 'UTC') as hour, count(*)::numeric as invocations, sum(i.duration_ms)::numeric as milliseconds,
      sum(round(i.cpu_ms * 1000))::numeric as cpu, sum(ceil(i.memory_peak / 1024.0) * i.duration_ms)::numeric as memory
    from functions f join function_invocations i on i.function_id = f.id and i.timestamp >= greatest(asked.from, books_began) group by 1
    union all
    select hour, case meter when 'function_invocations' then value else 0 end, case meter when 'function_milliseconds' then value else 0 end,
      case meter when 'function_cpu_microseconds' then value else 0 end, case meter when 'function_memory_kib_milliseconds' then value else 0 end
    from usage_hours where hour >= asked.from and meter <> 'file_byte_us'
  ) as parts group by 1`

/** @throws Error when the home can't say */
export function createBooksReader({ runs: witness, documents, files }: BooksReaderDeps): BooksReader {
  /** What lies in the store and the home does not speak of. A file may come or go while it is looked for: what the home says before and after holds for it. */
  const heldUnsaid = async (tenant: Tenant, before: number): Promise<{ bytes: number; since: number } | undefined> => {
    if ((files.seen(tenant.id)?.bytes ?? 0) <= before) return undefined
    await files.sweep(tenant)
    const { rows } = await tenant.database.query(look, 'select file_bytes::text from storage_usage')
    const found = files.seen(tenant.id)
    return found !== undefined && found.bytes > Math.max(before, Number(rows[0]?.['file_bytes'] ?? 0)) ? found : undefined
  }

  return async (tenant, hours) => {
    const from = hourOf(Date.now()) - hours * hourMilliseconds
    const [stated, marked, ran] = await tenant.database.read(look, sql(state), sql(marks, from), sql(runs, from))
    const row = stated?.rows[0]
    if (row === undefined) throw new Error(`${tenant.id}: the home has no books`)
    const number = (name: string) => BigInt(String(row[name]))
    const [began, counted, at, bytes] = [number('began'), number('counted'), number('at'), number('file_bytes')]
    const points: Point[] = [
      { at: began, value: 0n },
      ...(marked?.rows ?? []).map((mark) => ({ at: BigInt(String(mark['at'])), value: BigInt(String(mark['value'])) })).filter((mark) => mark.at > began && mark.at < counted),
      { at: counted, value: number('value') },
      { at, value: number('value') + bytes * (at > counted ? at - counted : 0n) },
    ]
    const used = checkedRuns(new Map((ran?.rows ?? []).map(runsOf)), witness.of(tenant.id), from)
    const [unsaid, documentBytes] = await Promise.all([heldUnsaid(tenant, Number(bytes)), documents(tenant)])
    const now = Number(at / 1000n)
    // When the books began is the home's word, too: what was seen before that was there.
    const first = Math.min(Number(began / 1000n), unsaid?.since ?? now, ...used.keys())
    const asked = Array.from({ length: hours + 1 }, (_, n) => from + n * hourMilliseconds).filter((hour) => hour <= now && hour + hourMilliseconds > first)
    return {
      tenant_id: tenant.id, books: String(row['books']), began: iso(began), at: iso(at),
      document_bytes: documentBytes, file_bytes: Math.max(Number(bytes), unsaid?.bytes ?? 0),
      hours: asked.map((hour) => {
        const [said, held] = [byteSeconds(points, hour), unsaid === undefined ? 0n : heldByteSeconds(unsaid.bytes, unsaid.since, now, hour)]
        const amounts = used.get(hour) ?? noRuns
        return {
          hour: new Date(hour).toISOString(), file_byte_seconds: String(held > said ? held : said),
          function_invocations: String(amounts.functionInvocations), function_milliseconds: String(amounts.functionMilliseconds),
          function_cpu_microseconds: String(amounts.functionCpuMicroseconds), function_memory_kib_milliseconds: String(amounts.functionMemoryKibMilliseconds),
        }
      }),
    }
  }
}

function iso(at: bigint): string {
  return new Date(Number(at / 1000n)).toISOString()
}

function runsOf(row: Row): [number, RunAmounts] {
  const number = (name: string) => BigInt(String(row[name]))
  const amounts = { functionInvocations: number('invocations'), functionMilliseconds: number('milliseconds'), functionCpuMicroseconds: number('cpu'), functionMemoryKibMilliseconds: number('memory') }
  return [Number(number('hour') / 1000n), plusRuns(noRuns, amounts)]
}
