// Decides which invocation gets an executor next (docs/functions.md, "Sharing executors"). Pure: callers pass the time.
import { FairQueue } from './fair-queue.ts'

export interface TurnLimits {
  /** Maximum number of executors of all tenants. */
  total: number
  /** Maximum number of executors of one tenant. It is never more than half of `total`, and at least one. */
  perTenant: number
  /** Invocations that may wait for one function. */
  waitingPerFunction: number
  /** Invocations of one tenant that may wait. */
  waitingPerTenant: number
}

/** An executor in use by an invocation of a tenant. */
export interface Held {
  readonly tenant: string
  /** Monotonic milliseconds at which it was taken. */
  readonly since: number
  /** Whether it was named by `excess`. */
  isStopped: boolean
}

/** The recent use of executors by a tenant. */
interface Account {
  running: number
  /** Milliseconds of executors that the tenant used and that have not been forgiven, as of `at`. */
  used: number
  at: number
}

/** Share of an executor that a tenant can use permanently and stay light. */
const forgivenShare = 0.25
/** Milliseconds of unforgiven use above which a tenant is heavy. */
const heavyMilliseconds = 1_000
/** Largest unforgiven use in milliseconds, so that any tenant is light again 16 s after its last run. */
const maxUsedMilliseconds = 5_000
/** Milliseconds for which a run is never stopped for others. */
const guaranteedMilliseconds = 10_000
/** Milliseconds for which a call of a light tenant waits before a run is stopped for it. */
const maxLightWaitMilliseconds = 1_000
/** Number of accounts at which those without use are deleted for the first time. */
const minSweptAccounts = 1_000

export class TurnScheduler<T> {
  readonly #limits: TurnLimits
  readonly #perTenant: number
  /** Executors that only tenants without a running invocation may take. */
  readonly #forFirst: number
  /** Executors that only light tenants without a running invocation may take. */
  readonly #forLight: number
  readonly #queue = new FairQueue<T>()
  readonly #accounts = new Map<string, Account>()
  #sweepAt = minSweptAccounts
  /** Executors in use, in the order in which they were taken. */
  readonly #held = new Set<Held>()

  constructor(limits: TurnLimits) {
    const { total, perTenant } = limits
    this.#limits = limits
    this.#perTenant = Math.min(perTenant, Math.max(1, total >> 1))
    this.#forFirst = total >> 1
    this.#forLight = total < 2 ? 0 : Math.max(1, total >> 2)
  }

  get isIdle(): boolean {
    return this.#held.size === 0 && this.#queue.isEmpty
  }

  /** The executors in use, in the order in which they were taken. */
  get held(): Iterable<Held> {
    return this.#held
  }

  /** Takes an executor for an invocation that has not waited. @returns undefined if it must wait */
  start(tenant: string, now: number): Held | undefined {
    return this.#mayStart(tenant, now) ? this.#start(tenant, now) : undefined
  }

  /** Adds an invocation that waits. @returns the limit that prevents it, if any */
  wait(tenant: string, fn: string, item: T, now: number): 'waitingPerFunction' | 'waitingPerTenant' | undefined {
    if (this.#queue.length(tenant, fn) >= this.#limits.waitingPerFunction) return 'waitingPerFunction'
    if (this.#queue.length(tenant) >= this.#limits.waitingPerTenant) return 'waitingPerTenant'
    this.#queue.add(tenant, fn, item, now)
    return undefined
  }

  /** Removes an invocation that no longer waits. */
  leave(tenant: string, fn: string, item: T): void {
    this.#queue.remove(tenant, fn, item)
  }

  /** Takes an executor for the next waiting invocation. @returns undefined if none may run now */
  next(now: number): { item: T; held: Held } | undefined {
    const taken = this.#queue.take((tenant) => this.#mayStart(tenant, now))
    return taken && { item: taken.item, held: this.#start(taken.tenant, now) }
  }

  /** Returns an executor. */
  end(held: Held, now: number): void {
    if (!this.#held.delete(held)) return
    this.#account(held.tenant, now).running--
  }

  /**
   * Returns an invocation to stop, because all executors are in use and a call of a light tenant without a running
   * invocation waits. It is the latest one of the tenant that runs most.
   */
  excess(now: number): Held | undefined {
    if (this.#held.size < this.#limits.total || !this.#hasLightWaiting(now)) return undefined
    let found: Held | undefined
    let maxRunning = 0
    for (const held of this.#held) {
      // One that is being stopped makes room shortly.
      if (held.isStopped) return undefined
      if (now - held.since < guaranteedMilliseconds) continue
      const { running } = this.#account(held.tenant, now)
      if (running >= maxRunning) [found, maxRunning] = [held, running]
    }
    if (found !== undefined) found.isStopped = true
    return found
  }

  #hasLightWaiting(now: number): boolean {
    for (const tenant of this.#queue.waitingSince(now - maxLightWaitMilliseconds)) {
      const { running, used } = this.#account(tenant, now)
      if (running === 0 && used <= heavyMilliseconds) return true
    }
    return false
  }

  #mayStart(tenant: string, now: number): boolean {
    const free = this.#limits.total - this.#held.size
    if (free <= 0) return false
    const { running, used } = this.#account(tenant, now)
    if (running > 0) return running < this.#perTenant && free > this.#forFirst
    return used <= heavyMilliseconds || free > this.#forLight
  }

  #start(tenant: string, now: number): Held {
    const held: Held = { tenant, since: now, isStopped: false }
    this.#held.add(held)
    this.#account(tenant, now).running++
    return held
  }

  /** Returns the tenant's account as of now. */
  #account(tenant: string, now: number): Account {
    let account = this.#accounts.get(tenant)
    if (account === undefined) {
      this.#sweep(now)
      this.#accounts.set(tenant, (account = { running: 0, used: 0, at: now }))
    }
    settle(account, now)
    return account
  }

  /** Deletes the accounts without use, each time that the number of accounts has doubled. */
  #sweep(now: number): void {
    if (this.#accounts.size < this.#sweepAt) return
    for (const [tenant, account] of this.#accounts) {
      settle(account, now)
      if (account.running === 0 && account.used === 0) this.#accounts.delete(tenant)
    }
    this.#sweepAt = Math.max(minSweptAccounts, 2 * this.#accounts.size)
  }
}

function settle(account: Account, now: number): void {
  const used = account.used + (account.running - forgivenShare) * (now - account.at)
  account.used = Math.min(maxUsedMilliseconds, Math.max(0, used))
  account.at = now
}
