// Keeps each function's log within its bounds: the oldest runs go, now and then rather than with every run.
import type { Tenant } from '../../tenancy/tenant.ts'

/** The newest of each function that are kept: so many runs, in so many bytes. */
export const maxRuns = 1_000
export const maxBytes = 8 * 1024 * 1024
/** Beyond that as much may be there until the next look. */
const checkAfter = { runs: 100, bytes: 1024 * 1024 }
const maxFunctions = 10_000

interface Since {
  runs: number
  bytes: number
}

const context = { role: 'service', reason: 'old logs of a function' } as const

export class LogRetention {
  /** What was written since the last look, by function; one that was not looked at in this process is looked at first. */
  readonly #since = new Map<string, Since>()
  readonly #onWrite: (tenantId: string) => void
  readonly #onError: (error: Error) => void
  readonly #polling = new Set<Promise<void>>()

  /** `onWrite` is told of every run that left something. */
  constructor(onWrite: (tenantId: string) => void, onError: (error: Error) => void) {
    this.#onWrite = onWrite
    this.#onError = onError
  }

  /** A run of the function has left so many bytes. */
  wrote(tenant: Tenant, functionId: string, bytes: number): void {
    this.#onWrite(tenant.id)
    const since = this.#since.get(functionId)
    if (since !== undefined) {
      since.runs++
      since.bytes += bytes
      if (since.runs < checkAfter.runs && since.bytes < checkAfter.bytes) return
    }
    if (this.#since.size >= maxFunctions) this.#since.clear()
    this.#since.set(functionId, { runs: 0, bytes: 0 })
    const polling = trim(tenant, functionId)
      .catch((cause: unknown) =>
        this.#onError(new Error(`${tenant.id}: the old logs of the function ${functionId} are still there`, { cause })),
      )
      .finally(() => this.#polling.delete(polling))
    this.#polling.add(polling)
  }

  /** Until every look is over that has begun. */
  async idle(): Promise<void> {
    await Promise.all(this.#polling)
  }
}

async function trim(tenant: Tenant, functionId: string): Promise<void> {
  await tenant.database.query(
    context,
    `delete from function_logs where function_id = $1 and seq <= (
       select max(seq) from (select seq, row_number() over newest as runs, sum(bytes) over newest as bytes from function_logs
         where function_id = $1 window newest as (order by seq desc)) l
       where runs > ${maxRuns} or bytes > ${maxBytes})`,
    functionId,
  )
}
