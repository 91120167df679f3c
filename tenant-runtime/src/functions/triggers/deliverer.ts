// Delivers changes to functions while this runtime holds the tenant's lease. Each function receives its deliveries one after
// another, in their order.
import { anonymous } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { ClaimTaken } from '../invocations/invocation-store.ts'
import {
  claimDelivery,
  deliveryDone,
  deliveryFailed,
  releaseLease,
  nextDeliveries,
  takeLease,
  waitingFunctions,
  type Delivery,
} from './delivery-store.ts'
import { maxEventBytes } from '../invocations/invoke-routes.ts'
import { isFailedRun, isGone, type DispatchDeps } from './dispatch.ts'
import type { Jobs } from './jobs.ts'
import { waitAfter } from './retry.ts'
import type { TriggeredFunction } from './triggered-function.ts'

export class Deliverer {
  readonly #deps: DispatchDeps
  readonly #jobs: Jobs
  readonly #onStale: () => void
  #functions: readonly TriggeredFunction[] = []
  /** End of the lease on the clock of `elapsed`; 0 without a lease. */
  #leaseEnds = 0
  /** Time of the next attempt to take or extend the lease. */
  #leaseNext = 0

  constructor(deps: DispatchDeps, jobs: Jobs, onStale: () => void) {
    this.#deps = deps
    this.#jobs = jobs
    this.#onStale = onStale
  }

  watch(functions: readonly TriggeredFunction[]): void {
    this.#functions = functions
    // After a move of the home, the lease is free at once.
    this.#leaseNext = 0
  }

  /** Starts the deliveries that are due. @returns milliseconds until the next poll; undefined if no function has a trigger */
  async poll(tenant: Tenant): Promise<number | undefined> {
    const { pace, now } = this.#deps
    if (this.#functions.length === 0) return undefined
    if (!(await this.#extendLease(tenant))) return Math.max(1, this.#leaseNext - this.#deps.elapsed())
    const idle = this.#functions.filter(({ id }) => !this.#jobs.has(id))
    const waiting =
      idle.length === 0
        ? []
        : await waitingFunctions(
            tenant,
            idle.map(({ id }) => id),
          )
    let pause = pace.poll
    for (const { functionId, nextAttempt = 0 } of waiting) {
      const fn = idle.find(({ id }) => id === functionId)
      const wait = nextAttempt - now().getTime()
      if (wait > 0) pause = Math.min(pause, wait)
      else if (fn !== undefined) this.#jobs.begin(fn.id, () => this.#deliver(tenant, fn))
    }
    return pause
  }

  /** Releases the lease, so that another runtime need not wait for its end. */
  async release(tenant: Tenant): Promise<void> {
    if (this.#leaseEnds > this.#deps.elapsed()) await releaseLease(tenant, this.#deps.holder)
  }

  /** Takes or extends the lease if it is time. @returns whether this runtime holds it */
  async #extendLease(tenant: Tenant): Promise<boolean> {
    const { holder, pace } = this.#deps
    const begun = this.#deps.elapsed()
    if (begun < this.#leaseNext) return this.#leaseEnds > begun
    const { isOurs, remaining } = await takeLease(tenant, holder, pace.lease)
    this.#leaseEnds = isOurs ? begun + remaining : 0
    // The holder extends it early enough for a retry. Other runtimes try again when it may have ended.
    this.#leaseNext = begun + Math.min(isOurs ? remaining / 3 : remaining + 10, pace.lease)
    return isOurs
  }

  /** Delivers all deliveries of a function that are due. */
  async #deliver(tenant: Tenant, fn: TriggeredFunction): Promise<void> {
    for (;;) {
      const deliveries = await nextDeliveries(tenant, fn.id)
      if (deliveries.length === 0) return
      for (const delivery of deliveries) {
        // While the first one waits for its next attempt, the following ones wait too.
        if (this.#jobs.isStopped || (delivery.nextAttempt ?? 0) > this.#deps.now().getTime()) return
        if (!(await this.#deliverOne(tenant, fn, delivery))) return
      }
    }
  }

  /** Delivers one delivery. @returns whether the next one may follow */
  async #deliverOne(tenant: Tenant, fn: TriggeredFunction, { seq, payload, attempts }: Delivery): Promise<boolean> {
    const { invoke, holder } = this.#deps
    if (payload === undefined)
      return this.#failed(tenant, seq, {
        attempts,
        message: `The change is larger than the ${maxEventBytes} bytes that a function accepts.`,
        isLast: true,
      })
    try {
      const status = await invoke(tenant, {
        name: fn.name,
        trigger: 'database',
        context: anonymous,
        input: Buffer.from(payload),
        variables: {
          TENANTRY_DELIVERY: String(seq),
          TENANTRY_ATTEMPT: String(attempts + 1),
          TENANTRY_CONTENT_TYPE: 'application/json',
        },
        claim: claimDelivery(seq, holder),
        completion: deliveryDone(seq),
      })
      if (status >= 400)
        return await this.#failed(tenant, seq, {
          attempts,
          message: `The function responded with status ${status}.`,
          isLast: false,
        })
    } catch (error) {
      if (error instanceof ClaimTaken) {
        // The delivery was deleted, or another runtime holds the lease now.
        this.#leaseNext = 0
        return false
      }
      if (isGone(error)) {
        this.#onStale()
        return false
      }
      // A stop of the runtime interrupts runs, which is not a failure of the function.
      if (!isFailedRun(error) || this.#jobs.isStopped) throw error
      return this.#failed(tenant, seq, { attempts, message: error.message, isLast: false })
    }
    return true
  }

  /** Records a failed attempt. @returns whether it was the last one */
  async #failed(
    tenant: Tenant,
    seq: number,
    { attempts, message, isLast }: { attempts: number; message: string; isLast: boolean },
  ): Promise<boolean> {
    const { now, random } = this.#deps
    const wait = isLast ? undefined : waitAfter(attempts + 1, random())
    await deliveryFailed(tenant, seq, {
      attempts: attempts + 1,
      nextAttempt: wait === undefined ? undefined : now().getTime() + wait,
      message,
    })
    return wait === undefined
  }
}
