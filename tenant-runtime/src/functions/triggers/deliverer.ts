// Tells functions of changes: each function's deliveries one after the other, in their order, while this runtime holds the
// tenant's lease.
import { anonymous } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { ClaimTaken } from '../invocations/invocation-store.ts'
import {
  claimDelivery,
  deliveryDone,
  deliveryFailed,
  leaveLease,
  nextDeliveries,
  takeLease,
  waitingFunctions,
  type Delivery,
} from './delivery-store.ts'
import { isFailedRun, isGone, type DispatchDeps } from './dispatch.ts'
import type { Jobs } from './jobs.ts'
import { waitAfter } from './retry.ts'
import type { TriggeredFunction } from './triggered-function.ts'

export class Deliverer {
  readonly #deps: DispatchDeps
  readonly #jobs: Jobs
  readonly #onStale: () => void
  #reported: readonly TriggeredFunction[] = []
  /** On the clock of `elapsed`. */
  #leaseEnds = 0
  #leaseNext = 0

  constructor(deps: DispatchDeps, jobs: Jobs, onStale: () => void) {
    this.#deps = deps
    this.#jobs = jobs
    this.#onStale = onStale
  }

  watch(functions: readonly TriggeredFunction[]): void {
    this.#reported = functions
  }

  /** @returns milliseconds until the next look; undefined when there is nobody to tell anything */
  async poll(tenant: Tenant): Promise<number | undefined> {
    const { pace, now } = this.#deps
    if (this.#reported.length === 0) return undefined
    if (!(await this.#keepLease(tenant))) return Math.max(1, this.#leaseNext - this.#deps.elapsed())
    const idle = this.#reported.filter(({ id }) => !this.#jobs.has(id))
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
      const left = nextAttempt - now().getTime()
      if (left > 0) pause = Math.min(pause, left)
      else if (fn !== undefined) this.#jobs.begin(fn.id, () => this.#deliver(tenant, fn))
    }
    return pause
  }

  /** Another runtime need not wait for the lease to end. */
  async leave(tenant: Tenant): Promise<void> {
    if (this.#leaseEnds > this.#deps.elapsed()) await leaveLease(tenant, this.#deps.holder)
  }

  /** @returns true while it is this runtime that delivers */
  async #keepLease(tenant: Tenant): Promise<boolean> {
    const { holder, pace } = this.#deps
    const begun = this.#deps.elapsed()
    if (begun < this.#leaseNext) return this.#leaseEnds > begun
    const { isOurs, left } = await takeLease(tenant, holder, pace.lease)
    this.#leaseEnds = isOurs ? begun + left : 0
    // Early enough for another try; who has none comes when the other's may have ended.
    this.#leaseNext = begun + Math.min(isOurs ? left / 3 : left + 10, pace.lease)
    return isOurs
  }

  /** Until none is left that is due. */
  async #deliver(tenant: Tenant, fn: TriggeredFunction): Promise<void> {
    for (;;) {
      const deliveries = await nextDeliveries(tenant, fn.id)
      if (deliveries.length === 0) return
      for (const delivery of deliveries) {
        // While the first waits for its next attempt, so do those behind it.
        if (this.#jobs.isStopped || (delivery.nextAttempt ?? 0) > this.#deps.now().getTime()) return
        if (!(await this.#deliverOne(tenant, fn, delivery))) return
      }
    }
  }

  /** @returns true when the next one may follow */
  async #deliverOne(tenant: Tenant, fn: TriggeredFunction, { seq, payload, attempts }: Delivery): Promise<boolean> {
    const { invoke, holder } = this.#deps
    if (payload === undefined)
      return this.#failed(tenant, seq, {
        attempts,
        message: 'the change is larger than what a function takes',
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
      })
      if (status >= 400)
        return await this.#failed(tenant, seq, {
          attempts,
          message: `the function answered with the status ${status}`,
          isLast: false,
        })
    } catch (error) {
      if (error instanceof ClaimTaken) {
        // It was deleted, or another runtime delivers now.
        this.#leaseNext = 0
        return false
      }
      if (isGone(error)) {
        this.#onStale()
        return false
      }
      // A stop cuts runs off, which is not the function's doing.
      if (!isFailedRun(error) || this.#jobs.isStopped) throw error
      return this.#failed(tenant, seq, { attempts, message: error.message, isLast: false })
    }
    await deliveryDone(tenant, seq)
    return true
  }

  /** @returns true when it is not tried again */
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
