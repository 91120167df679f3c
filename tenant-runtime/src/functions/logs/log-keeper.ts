// Keeps each function's log within its bounds: the oldest runs go, now and then rather than with every run.
import type { Tenant } from '../../tenancy/tenant.ts'

/** The newest of each function that are kept: so many runs, in so many bytes. */
export const mostRuns = 1_000
export const mostBytes = 8 * 1024 * 1024
/** Beyond that as much may be there until the next look. */
const lookAfter = { runs: 100, bytes: 1024 * 1024 }
const mostFunctions = 10_000

interface Since {
  runs: number
  bytes: number
}

const context = { role: 'service', reason: 'old logs of a function' } as const

export class LogKeeper {
  /** What was written since the last look, by function; one that was not looked at in this process is looked at first. */
  readonly #since = new Map<string, Since>()
  readonly #onWrite: (tenantId: string) => void
  readonly #onProblem: (problem: Error) => void
  readonly #looking = new Set<Promise<void>>()

  /** `onWrite` is told of every run that left something. */
  constructor(onWrite: (tenantId: string) => void, onProblem: (problem: Error) => void) {
    this.#onWrite = onWrite
    this.#onProblem = onProblem
  }

  /** A run of the function has left so many bytes. */
  wrote(tenant: Tenant, functionId: string, bytes: number): void {
    this.#onWrite(tenant.id)
    const since = this.#since.get(functionId)
    if (since !== undefined) {
      since.runs++
      since.bytes += bytes
      if (since.runs < lookAfter.runs && since.bytes < lookAfter.bytes) return
    }
    if (this.#since.size >= mostFunctions) this.#since.clear()
    this.#since.set(functionId, { runs: 0, bytes: 0 })
    const looking = trim(tenant, functionId)
      .catch((cause: unknown) =>
        this.#onProblem(
          new Error(`${tenant.id}: the old logs of the function ${functionId} are still there`, { cause }),
        ),
      )
      .finally(() => this.#looking.delete(looking))
    this.#looking.add(looking)
  }

  /** Until every look is over that has begun. */
  async idle(): Promise<void> {
    await Promise.all(this.#looking)
  }
}

async function trim(tenant: Tenant, functionId: string): Promise<void> {
  await tenant.database.query(
    context,
    `delete from function_logs where function_id = $1 and seq <= (
       select max(seq) from (select seq, row_number() over newest as runs, sum(bytes) over newest as bytes from function_logs
         where function_id = $1 window newest as (order by seq desc)) l
       where runs > ${mostRuns} or bytes > ${mostBytes})`,
    functionId,
  )
}
