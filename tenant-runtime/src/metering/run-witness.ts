// What functions' runs took, as the runtime itself has seen it since its start: a tenant's SQL can change records of runs, and
// not this.
import { hourOf, noRuns, plusRuns, type RunAmounts } from './book-hours.ts'

/** Of a run that has ended. */
export interface EndedRun {
  /** `at`: milliseconds since 1970. */
  begun: { at: number }
  durationMilliseconds: number
  cpuMicroseconds: number
  /** Bytes. */
  memoryPeak: number
}

const hoursKept = 48

export class RunWitness {
  readonly #tenants = new Map<string, Map<number, RunAmounts>>()

  note(tenantId: string, { begun, durationMilliseconds, cpuMicroseconds, memoryPeak }: EndedRun): void {
    let hours = this.#tenants.get(tenantId)
    if (hours === undefined) this.#tenants.set(tenantId, (hours = new Map<number, RunAmounts>()))
    const hour = hourOf(begun.at)
    const whole = BigInt(Math.round(durationMilliseconds))
    const run = {
      functionInvocations: 1n, functionMilliseconds: whole, functionCpuMicroseconds: BigInt(Math.round(cpuMicroseconds)),
      functionMemoryKibMilliseconds: BigInt(Math.ceil(memoryPeak / 1024)) * whole,
    }
    hours.set(hour, plusRuns(hours.get(hour) ?? noRuns, run))
    if (hours.size > hoursKept) hours.delete(Math.min(...hours.keys()))
  }

  /** By the hours' starts in milliseconds since 1970. */
  of(tenantId: string): ReadonlyMap<number, RunAmounts> {
    return this.#tenants.get(tenantId) ?? new Map<number, RunAmounts>()
  }

  forget(tenantId: string): void {
    this.#tenants.delete(tenantId)
  }
}
