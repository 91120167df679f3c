// Bounds each function's log. The oldest runs are deleted, not with every run but after some more were written.
import type { Tenant } from '../../tenancy/tenant.ts'

/** Number of the newest runs of a function whose logs are retained. */
export const maxRuns = 1_000
/** Bytes of the newest logs of a function that are retained. */
export const maxBytes = 8 * 1024 * 1024
/** Runs and bytes that are written between two checks. */
const checkAfter = { runs: 100, bytes: 1024 * 1024 }
const maxFunctions = 10_000

interface Since {
  runs: number
  bytes: number
}

const context = { role: 'service', reason: 'old logs of a function' } as const

export class LogRetention {
  /** Runs and bytes since the last check, by function. A function without an entry is checked at its next run. */
  readonly #since = new Map<string, Since>()
  readonly #onWrite: (tenantId: string) => void
  readonly #onError: (error: Error) => void
  readonly #trimming = new Set<Promise<void>>()

  /** @param onWrite called after every run that wrote to its log */
  constructor(onWrite: (tenantId: string) => void, onError: (error: Error) => void) {
    this.#onWrite = onWrite
    this.#onError = onError
  }

  /** Records that a run wrote `bytes` to its function's log, and deletes old logs if it is time. */
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
    const trimming = trim(tenant, functionId)
      .catch((cause: unknown) =>
        this.#onError(
          new Error(`${tenant.id}: The old logs of the function ${functionId} could not be deleted.`, { cause }),
        ),
      )
      .finally(() => this.#trimming.delete(trimming))
    this.#trimming.add(trimming)
  }

  /** Resolves when no deletion is running. */
  async idle(): Promise<void> {
    await Promise.all(this.#trimming)
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
