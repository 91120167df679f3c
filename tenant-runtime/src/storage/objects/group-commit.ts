// One transaction for all of a tenant's writers who wait for one: what comes while a transaction runs goes into the next.
import { TripError } from '../../database/one-trip.ts'
import { RuntimeError } from '../../errors.ts'
import type { Tenant } from '../../tenancy/tenant.ts'

/** In one transaction. */
const mostTogether = 64
/** Of one tenant; more are refused at once. */
const mostWaiting = 1_024

interface Waiting<Job, Outcome> {
  tenant: Tenant
  job: Job
  resolve: (outcome: Outcome) => void
  reject: (error: unknown) => void
}

export class GroupCommit<Job, Outcome> {
  readonly #commit: (tenant: Tenant, jobs: Job[]) => Promise<Outcome[]>
  /** Of tenants with a transaction under way. */
  readonly #queues = new Map<string, Waiting<Job, Outcome>[]>()

  /** `commit` is one transaction; its outcomes stand in the jobs' order. */
  constructor(commit: (tenant: Tenant, jobs: Job[]) => Promise<Outcome[]>) {
    this.#commit = commit
  }

  /** @throws what `commit` throws for this job; of others in the same transaction nothing is seen */
  run(tenant: Tenant, job: Job): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const waiting = { tenant, job, resolve, reject }
      const queue = this.#queues.get(tenant.id)
      if (queue === undefined) {
        const begun = [waiting]
        this.#queues.set(tenant.id, begun)
        void this.#drain(tenant.id, begun)
      } else if (queue.length < mostWaiting) queue.push(waiting)
      else reject(new RuntimeError('DATABASE_BUSY', 'too many uploads wait for the database'))
    })
  }

  async #drain(tenantId: string, queue: Waiting<Job, Outcome>[]): Promise<void> {
    while (queue.length > 0) {
      // Whoever's request has arrived by now comes along.
      await new Promise(setImmediate)
      await this.#together(queue.splice(0, mostTogether))
    }
    this.#queues.delete(tenantId)
  }

  /** When Postgres refuses one, nothing of the transaction has happened: the halves are tried by themselves. */
  async #together(group: Waiting<Job, Outcome>[]): Promise<void> {
    const [first] = group
    if (first === undefined) return
    try {
      const outcomes = await this.#commit(first.tenant, group.map(({ job }) => job))
      for (const [n, { resolve, reject }] of group.entries()) {
        const outcome = outcomes[n]
        if (outcome === undefined) reject(new Error('a job of the group has no outcome'))
        else resolve(outcome)
      }
    } catch (error) {
      if (group.length === 1 || !isRefused(error)) {
        for (const { reject } of group) reject(error)
        return
      }
      const half = group.length >> 1
      await this.#together(group.slice(0, half))
      await this.#together(group.slice(half))
    }
  }
}

/** True when nothing of the transaction has happened, and nothing will: it was refused, or never begun. */
export function isDecided(error: unknown): boolean {
  return isRefused(error) || (error instanceof RuntimeError && error.code === 'DATABASE_BUSY')
}

/** By Postgres itself. */
function isRefused(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof TripError && cause.reusable
}
