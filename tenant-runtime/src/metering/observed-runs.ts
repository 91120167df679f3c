// What functions' runs took, as the runtime itself has seen it: a tenant's SQL can change records of runs, and not this. No I/O;
// what changes is given out as lines, of which a later start makes the same again.
import { hourOf } from '@tenantry/contract'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { minusRuns, noRuns, plusRuns, type RunAmounts } from './book-hours.ts'

/** Of a run that has ended. */
interface EndedRun {
  /** `at`: milliseconds since 1970. */
  begun: { at: number }
  durationMilliseconds: number
  cpuMicroseconds: number
  /** Bytes. */
  memoryPeak: number
}

/** By the hours' starts in milliseconds since 1970. */
type Hours = ReadonlyMap<number, RunAmounts>

interface Seen {
  hours: Map<number, RunAmounts>
  /** What the home's books of this id were told of it; undefined before they were read. */
  told: { books: string; hours: Hours } | undefined
}

const hoursRetained = 48

const Digits = Type.String({ pattern: '^[0-9]{1,40}$' })
const SeenLine = Type.Object({
  tenant_id: Type.String(),
  hour: Type.Integer({ minimum: 0 }),
  runs: Type.Object({
    functionInvocations: Digits,
    functionMilliseconds: Digits,
    functionCpuMicroseconds: Digits,
    functionMemoryKibMilliseconds: Digits,
  }),
})
const ReportedLine = Type.Object({ tenant_id: Type.String(), told: Type.String() })
const GoneLine = Type.Object({ tenant_id: Type.String(), gone: Type.Literal(true) })
/** An hour's sum; that all before it was told to these books; that the tenant is gone. */
const Line = Type.Union([SeenLine, ReportedLine, GoneLine])
type Line = Static<typeof Line>

export class ObservedRuns {
  readonly #tenants = new Map<string, Seen>()
  /** What is to be written down: lines, and then hours of tenants that have changed since. */
  #lines: Line[] = []
  readonly #changed = new Map<string, Set<number>>()

  note(tenantId: string, { begun, durationMilliseconds, cpuMicroseconds, memoryPeak }: EndedRun): void {
    const { hours } = this.#seen(tenantId)
    const hour = hourOf(begun.at)
    const whole = BigInt(Math.round(durationMilliseconds))
    const run = {
      functionInvocations: 1n,
      functionMilliseconds: whole,
      functionCpuMicroseconds: BigInt(Math.round(cpuMicroseconds)),
      functionMemoryKibMilliseconds: BigInt(Math.ceil(memoryPeak / 1024)) * whole,
    }
    hours.set(hour, plusRuns(hours.get(hour) ?? noRuns, run))
    if (hours.size > hoursRetained) hours.delete(Math.min(...hours.keys()))
    const changed = this.#changed.get(tenantId) ?? new Set()
    this.#changed.set(tenantId, changed.add(hour))
  }

  /**
   * What is told to the control plane under a home's books. Where they are other ones than the last time, as of a home from a
   * backup, what was told under those is counted already, and stays theirs.
   */
  report(tenantId: string, counters: string): Hours {
    const seen = this.#tenants.get(tenantId)
    if (seen === undefined) return new Map()
    this.#write(tenantId, { tenant_id: tenantId, told: counters })
    reportTo(seen, counters)
    return new Map(seen.hours)
  }

  /** The tenant is gone. */
  evict(tenantId: string): void {
    if (!this.#tenants.delete(tenantId)) return
    this.#changed.delete(tenantId)
    this.#lines.push({ tenant_id: tenantId, gone: true })
  }

  /** What is new since the last time, in order. */
  changes(): string[] {
    for (const tenantId of [...this.#changed.keys()]) this.#write(tenantId)
    const lines = this.#lines
    this.#lines = []
    return lines.map((line) => JSON.stringify(line))
  }

  /** All of it. */
  lines(): string[] {
    return [...this.#tenants]
      .flatMap(([tenantId, { hours, told: reported }]) => [
        ...(reported === undefined
          ? []
          : [...linesOf(tenantId, reported.hours), { tenant_id: tenantId, told: reported.books }]),
        ...linesOf(tenantId, hours),
      ])
      .map((line) => JSON.stringify(line))
  }

  /** Goes on from lines of an earlier start. @returns how many could not be read */
  load(lines: readonly string[]): number {
    let unreadable = 0
    for (const text of lines) {
      const line = parseLine(text)
      if (line === undefined) unreadable++
      else if ('gone' in line) this.#tenants.delete(line.tenant_id)
      else if ('told' in line) reportTo(this.#seen(line.tenant_id), line.told)
      else this.#seen(line.tenant_id).hours.set(line.hour, mapped(line.runs, BigInt))
    }
    for (const { hours } of this.#tenants.values())
      while (hours.size > hoursRetained) hours.delete(Math.min(...hours.keys()))
    return unreadable
  }

  #seen(tenantId: string): Seen {
    let seen = this.#tenants.get(tenantId)
    if (seen === undefined) this.#tenants.set(tenantId, (seen = { hours: new Map(), told: undefined }))
    return seen
  }

  /** The tenant's hours that have changed, and what follows from them. */
  #write(tenantId: string, ...more: Line[]): void {
    const { hours } = this.#seen(tenantId)
    const changed = [...(this.#changed.get(tenantId) ?? [])].flatMap((hour): [number, RunAmounts][] => [
      [hour, hours.get(hour) ?? noRuns],
    ])
    this.#changed.delete(tenantId)
    this.#lines.push(...linesOf(tenantId, changed), ...more)
  }
}

function reportTo(seen: Seen, counters: string): void {
  if (seen.told !== undefined && seen.told.books !== counters) {
    for (const [hour, amounts] of seen.told.hours)
      seen.hours.set(hour, minusRuns(seen.hours.get(hour) ?? noRuns, amounts))
  }
  seen.told = { books: counters, hours: new Map(seen.hours) }
}

function linesOf(tenantId: string, hours: Iterable<readonly [number, RunAmounts]>): Line[] {
  return [...hours].map(([hour, amounts]) => ({ tenant_id: tenantId, hour, runs: mapped(amounts, String) }))
}

function mapped<From, To>(
  amounts: Record<keyof RunAmounts, From>,
  of: (amount: From) => To,
): Record<keyof RunAmounts, To> {
  return {
    functionInvocations: of(amounts.functionInvocations),
    functionMilliseconds: of(amounts.functionMilliseconds),
    functionCpuMicroseconds: of(amounts.functionCpuMicroseconds),
    functionMemoryKibMilliseconds: of(amounts.functionMemoryKibMilliseconds),
  }
}

function parseLine(text: string): Line | undefined {
  try {
    const line: unknown = JSON.parse(text)
    return Value.Check(Line, line) ? line : undefined
  } catch {
    return undefined
  }
}
