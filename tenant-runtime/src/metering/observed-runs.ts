// The usage of functions' runs as the runtime itself observed it. A tenant's SQL can change the stored runs, but not this.
// No I/O:
// changes are returned as lines, from which a later start restores them.
import { hourOf } from '@tenantry/contract'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { minusRuns, noRuns, plusRuns, type RunAmounts } from './book-hours.ts'

/** A run that has ended. */
export interface EndedRun {
  /** `at` in milliseconds since 1970. */
  begun: { at: number }
  durationMilliseconds: number
  cpuMicroseconds: number
  /** The maximum memory in bytes. */
  memoryPeak: number
  /** Bytes sent with `http_fetch`. */
  egressBytes: number
}

/** Amounts by the hours' starts in milliseconds since 1970. */
type Hours = ReadonlyMap<number, RunAmounts>

interface ObservedTenant {
  hours: Map<number, RunAmounts>
  /** The amounts that were reported under the ID of the home's counters; undefined before the first report. */
  reported: { countersId: string; hours: Hours } | undefined
}

const hoursRetained = 48

const Digits = Type.String({ pattern: '^[0-9]{1,40}$' })
const HourLine = Type.Object({
  tenant_id: Type.String(),
  hour: Type.Integer({ minimum: 0 }),
  runs: Type.Object({
    functionInvocations: Digits,
    functionMilliseconds: Digits,
    functionCpuMicroseconds: Digits,
    functionMemoryKibMilliseconds: Digits,
    // Lines of earlier versions do not have it.
    functionEgressBytes: Type.Optional(Digits),
  }),
})
const ReportedLine = Type.Object({ tenant_id: Type.String(), told: Type.String() })
const GoneLine = Type.Object({ tenant_id: Type.String(), gone: Type.Literal(true) })
/**
 * A line of the file: an hour's sum; or the report of all lines before it under a counters ID; or the deletion of the
 * tenant.
 */
const Line = Type.Union([HourLine, ReportedLine, GoneLine])
type Line = Static<typeof Line>

export class ObservedRuns {
  readonly #tenants = new Map<string, ObservedTenant>()
  /** The changes to store: lines, followed by the changed hours of tenants. */
  #lines: Line[] = []
  readonly #changed = new Map<string, Set<number>>()

  note(tenantId: string, { begun, durationMilliseconds, cpuMicroseconds, memoryPeak, egressBytes }: EndedRun): void {
    const { hours } = this.#seen(tenantId)
    const hour = hourOf(begun.at)
    const whole = BigInt(Math.round(durationMilliseconds))
    const run = {
      functionInvocations: 1n,
      functionMilliseconds: whole,
      functionCpuMicroseconds: BigInt(Math.round(cpuMicroseconds)),
      functionMemoryKibMilliseconds: BigInt(Math.ceil(memoryPeak / 1024)) * whole,
      functionEgressBytes: BigInt(egressBytes),
    }
    hours.set(hour, plusRuns(hours.get(hour) ?? noRuns, run))
    if (hours.size > hoursRetained) hours.delete(Math.min(...hours.keys()))
    const changed = this.#changed.get(tenantId) ?? new Set()
    this.#changed.set(tenantId, changed.add(hour))
  }

  /**
   * Returns the hours to report to the control plane under the ID of a home's counters. When the ID differs from the last
   * one, as after a restore, the control plane has already counted the amounts reported under the old ID, so they are
   * subtracted.
   */
  report(tenantId: string, countersId: string): Hours {
    const seen = this.#tenants.get(tenantId)
    if (seen === undefined) return new Map()
    this.#write(tenantId, { tenant_id: tenantId, told: countersId })
    reportTo(seen, countersId)
    return new Map(seen.hours)
  }

  /** Evicts a deleted tenant. */
  evict(tenantId: string): void {
    if (!this.#tenants.delete(tenantId)) return
    this.#changed.delete(tenantId)
    this.#lines.push({ tenant_id: tenantId, gone: true })
  }

  /** Returns the lines of all changes since the last call, in order. */
  changes(): string[] {
    for (const tenantId of [...this.#changed.keys()]) this.#write(tenantId)
    const lines = this.#lines
    this.#lines = []
    return lines.map((line) => JSON.stringify(line))
  }

  /** Returns the lines of the whole content. */
  lines(): string[] {
    return [...this.#tenants]
      .flatMap(([tenantId, { hours, reported }]) => [
        ...(reported === undefined
          ? []
          : [...linesOf(tenantId, reported.hours), { tenant_id: tenantId, told: reported.countersId }]),
        ...linesOf(tenantId, hours),
      ])
      .map((line) => JSON.stringify(line))
  }

  /**
   * Restores the lines of an earlier start.
   * @returns the number of unreadable lines
   */
  load(lines: readonly string[]): number {
    let unreadable = 0
    for (const text of lines) {
      const line = parseLine(text)
      if (line === undefined) unreadable++
      else if ('gone' in line) this.#tenants.delete(line.tenant_id)
      else if ('told' in line) reportTo(this.#seen(line.tenant_id), line.told)
      else this.#seen(line.tenant_id).hours.set(line.hour, mapped({ functionEgressBytes: '0', ...line.runs }, BigInt))
    }
    for (const { hours } of this.#tenants.values())
      while (hours.size > hoursRetained) hours.delete(Math.min(...hours.keys()))
    return unreadable
  }

  #seen(tenantId: string): ObservedTenant {
    let seen = this.#tenants.get(tenantId)
    if (seen === undefined) this.#tenants.set(tenantId, (seen = { hours: new Map(), reported: undefined }))
    return seen
  }

  /** Adds lines of the tenant's changed hours, and further lines after them. */
  #write(tenantId: string, ...more: Line[]): void {
    const { hours } = this.#seen(tenantId)
    const changed = [...(this.#changed.get(tenantId) ?? [])].flatMap((hour): [number, RunAmounts][] => [
      [hour, hours.get(hour) ?? noRuns],
    ])
    this.#changed.delete(tenantId)
    this.#lines.push(...linesOf(tenantId, changed), ...more)
  }
}

function reportTo(seen: ObservedTenant, countersId: string): void {
  if (seen.reported !== undefined && seen.reported.countersId !== countersId) {
    for (const [hour, amounts] of seen.reported.hours)
      seen.hours.set(hour, minusRuns(seen.hours.get(hour) ?? noRuns, amounts))
  }
  seen.reported = { countersId, hours: new Map(seen.hours) }
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
    functionEgressBytes: of(amounts.functionEgressBytes),
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
