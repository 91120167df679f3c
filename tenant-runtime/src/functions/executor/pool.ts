// The pool of executors. Each belongs to one tenant from its first run to its end. Tenants share a limited number in turns, a
// spare executor is ready for the next tenant, and idle ones are ended.
import { RuntimeError } from '../../errors.ts'
import { Executor } from './executor.ts'
import { PoolTurn, type Slot, type Turn } from './turn.ts'
import { TurnScheduler, type Held, type TurnLimits } from './turn-scheduler.ts'

export interface PoolLimits extends TurnLimits {
  waitMilliseconds: number
  idleMilliseconds: number
}

export const defaultPoolLimits: PoolLimits = {
  total: 16,
  perTenant: 4,
  waitingPerFunction: 64,
  waitingPerTenant: 128,
  waitMilliseconds: 30_000,
  idleMilliseconds: 60_000,
}

/** Minimum number of executors of a runtime, of which one tenant may have half. */
const minExecutors = 8

/** Returns the number of executors of each of the runtimes that share the tenants. */
export function executorsFor(runtimes: number): number {
  return Math.max(minExecutors, Math.floor(defaultPoolLimits.total / runtimes))
}

/** Interval at which the runs in progress are checked. */
const checkMilliseconds = 250
/** Milliseconds after which a run that has used much CPU time continues at the lowest priority. */
const longMilliseconds = 1_000

interface OwnedExecutor {
  tenant: string
  executor: Executor
  idleTimer: NodeJS.Timeout | undefined
}

export class ExecutorPool {
  readonly #limits: PoolLimits
  readonly #elapsed: () => number
  readonly #onError: (error: Error) => void
  readonly #scheduler: TurnScheduler<PoolTurn>
  /** The turns that hold executors. */
  readonly #turns = new Map<Held, PoolTurn>()
  #checkTimer: NodeJS.Timeout | undefined
  /** Idle executors, the longest idle first. */
  readonly #idle: OwnedExecutor[] = []
  #live = 0
  #spare: Promise<Executor> | undefined
  #spareTimer: NodeJS.Timeout | undefined
  #closed = false
  /** All executors with their tenants; undefined for the spare one. */
  readonly #executors = new Map<Executor, string | undefined>()

  /** @param elapsed returns monotonic milliseconds */
  constructor(limits: PoolLimits, elapsed: () => number, onError: (error: Error) => void) {
    this.#limits = limits
    this.#elapsed = elapsed
    this.#onError = onError
    this.#scheduler = new TurnScheduler(limits)
  }

  /**
   * Enters the queue. The caller must call `leave` at the end, whether or not its turn has come.
   * @throws RuntimeError FUNCTIONS_BUSY if too many invocations of the function or the tenant wait
   */
  turn(tenant: string, fn: string): Turn {
    if (this.#closed) throw new RuntimeError('FUNCTIONS_BUSY', 'The functions of this runtime are stopping.')
    const held = this.#scheduler.start(tenant, this.#elapsed())
    const turn = new PoolTurn({
      run: (turn, run) => this.#with(tenant, turn, (executor) => executor.run(run)),
      compile: (turn, module, milliseconds) =>
        this.#with(tenant, turn, (executor) => executor.compile(module, milliseconds)),
      leave: (turn) => this.#leave(tenant, fn, turn),
    })
    if (held === undefined) this.#wait(tenant, fn, turn)
    else this.#begin(turn, held)
    this.#checkTimer ??= setInterval(() => this.#check(), checkMilliseconds).unref()
    return turn
  }

  /**
   * Waits for a turn and runs `work` with a slot of the tenant.
   * @throws RuntimeError FUNCTIONS_BUSY if too many invocations of the function or the tenant wait, or the wait is too long
   */
  async enter<T>(tenant: string, fn: string, work: (slot: Slot) => Promise<T>): Promise<T> {
    const turn = this.turn(tenant, fn)
    try {
      await turn.ready
      return await work(turn.slot)
    } finally {
      turn.leave()
    }
  }

  /** Ends the idle executors of a tenant that was changed. */
  evict(tenant: string): void {
    for (const owned of this.#idle.filter((owned) => owned.tenant === tenant)) this.#end(owned)
  }

  /** Ends all executors of a deleted tenant, also those that run. */
  end(tenant: string): void {
    this.evict(tenant)
    for (const [executor, owner] of this.#executors) if (owner === tenant) executor.kill()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#spareTimer)
    clearInterval(this.#checkTimer)
    for (const owned of [...this.#idle]) clearTimeout(owned.idleTimer)
    for (const executor of this.#executors.keys()) executor.kill()
    await Promise.all([...this.#executors.keys()].map((executor) => executor.exited))
  }

  #wait(tenant: string, fn: string, turn: PoolTurn): void {
    const limit = this.#scheduler.wait(tenant, fn, turn, this.#elapsed())
    if (limit !== undefined) {
      const whose = limit === 'waitingPerFunction' ? 'this function' : 'this tenant'
      throw new RuntimeError(
        'FUNCTIONS_BUSY',
        `Too many invocations of ${whose} are waiting. At most ${this.#limits[limit]} are allowed.`,
      )
    }
    turn.startWaiting(this.#limits.waitMilliseconds)
  }

  #begin(turn: PoolTurn, held: Held): void {
    this.#turns.set(held, turn)
    turn.begin(held)
  }

  #leave(tenant: string, fn: string, turn: PoolTurn): void {
    if (turn.held === undefined) {
      this.#scheduler.leave(tenant, fn, turn)
      return
    }
    this.#turns.delete(turn.held)
    this.#scheduler.end(turn.held, this.#elapsed())
    this.#next()
  }

  #next(): void {
    for (;;) {
      const next = this.#scheduler.next(this.#elapsed())
      if (next === undefined) return
      this.#begin(next.item, next.held)
    }
  }

  /** Checks the runs in progress: lowers the priority of long ones, and makes room for waiting invocations. */
  #check(): void {
    if (this.#scheduler.isIdle) {
      clearInterval(this.#checkTimer)
      this.#checkTimer = undefined
      return
    }
    const now = this.#elapsed()
    for (const held of this.#scheduler.held) {
      if (now - held.since < longMilliseconds) break
      this.#turns.get(held)?.lowerPriority()
    }
    // A tenant may have become light since.
    this.#next()
    const excess = this.#scheduler.excess(now)
    if (excess !== undefined) this.#turns.get(excess)?.stop('made-room')
  }

  async #with<T>(tenant: string, turn: PoolTurn, work: (executor: Executor) => Promise<T>): Promise<T> {
    const executor = await this.#take(tenant)
    try {
      turn.use(executor)
      return await work(executor)
    } finally {
      turn.use(undefined)
      this.#returnExecutor(tenant, executor)
    }
  }

  /** Takes an idle executor of the tenant, or starts one. @throws RuntimeError FUNCTIONS_BUSY if none can be started */
  async #take(tenant: string): Promise<Executor> {
    const index = this.#idle.findLastIndex((owned) => owned.tenant === tenant && owned.executor.isAlive)
    const [owned] = index < 0 ? [] : this.#idle.splice(index, 1)
    if (owned !== undefined) {
      clearTimeout(owned.idleTimer)
      return owned.executor
    }
    const dispensable = this.#live >= this.#limits.total ? this.#dispensable() : undefined
    if (dispensable !== undefined) this.#end(dispensable)
    const spare = this.#spare
    this.#spare = undefined
    clearTimeout(this.#spareTimer)
    this.#live++
    try {
      const ready = await spare?.catch(() => undefined)
      const executor = ready?.isAlive === true ? ready : await this.#start()
      this.#executors.set(executor, tenant)
      void executor.exited.then(() => {
        this.#live--
        const dead = this.#idle.find((owned) => owned.executor === executor)
        if (dead !== undefined) this.#end(dead)
      })
      return executor
    } catch (cause) {
      this.#live--
      const error = new Error('No executor could be started.', { cause })
      this.#onError(error)
      throw new RuntimeError('FUNCTIONS_BUSY', 'The functions of this runtime are not available now.', {
        cause: error,
      })
    }
  }

  #returnExecutor(tenant: string, executor: Executor): void {
    if (!executor.restorePriority()) executor.kill()
    if (executor.isAlive && !this.#closed) {
      const owned: OwnedExecutor = { tenant, executor, idleTimer: undefined }
      owned.idleTimer = setTimeout(() => this.#end(owned), this.#limits.idleMilliseconds).unref()
      this.#idle.push(owned)
    }
    this.#prepareSpare()
  }

  /** Returns the longest idle executor of the tenant that has the most executors. */
  #dispensable(): OwnedExecutor | undefined {
    const counts = new Map<string | undefined, number>()
    for (const tenant of this.#executors.values()) counts.set(tenant, (counts.get(tenant) ?? 0) + 1)
    const countOf = ({ tenant }: OwnedExecutor) => counts.get(tenant) ?? 0
    return this.#idle.reduce<OwnedExecutor | undefined>(
      (found, owned) => (found === undefined || countOf(owned) > countOf(found) ? owned : found),
      undefined,
    )
  }

  #end(owned: OwnedExecutor): void {
    clearTimeout(owned.idleTimer)
    const index = this.#idle.indexOf(owned)
    if (index >= 0) this.#idle.splice(index, 1)
    owned.executor.kill()
  }

  /** Starts a spare executor without a tenant, and ends it if no function runs for some time. */
  #prepareSpare(): void {
    if (this.#closed) return
    if (this.#spare === undefined) {
      this.#spare = this.#start()
      this.#spare.catch(this.#onError)
    }
    clearTimeout(this.#spareTimer)
    this.#spareTimer = setTimeout(() => {
      const spare = this.#spare
      this.#spare = undefined
      spare?.then(
        (executor) => executor.kill(),
        () => undefined,
      )
    }, this.#limits.idleMilliseconds).unref()
  }

  async #start(): Promise<Executor> {
    const executor = await Executor.start()
    this.#executors.set(executor, undefined)
    void executor.exited.then(() => this.#executors.delete(executor))
    if (this.#closed) executor.kill()
    return executor
  }
}
