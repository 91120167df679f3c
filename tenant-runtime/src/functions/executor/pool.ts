// The pool of executors. Each belongs to one tenant from its first run to its end. Tenants share a limited number in turns, a
// spare executor is ready for the next tenant, and idle ones are ended.
import { RuntimeError } from '../../errors.ts'
import { Executor, type Failure, type Module, type Run, type RunResult } from './executor.ts'
import { FairQueue } from './fair-queue.ts'

export interface PoolLimits {
  /** Maximum number of executors of all tenants. */
  total: number
  /** Maximum number of executors of one tenant. */
  perTenant: number
  /** Invocations that may wait for one function. */
  waitingPerFunction: number
  waitMilliseconds: number
  idleMilliseconds: number
}

export const defaultPoolLimits: PoolLimits = {
  total: 16,
  perTenant: 4,
  waitingPerFunction: 64,
  waitMilliseconds: 30_000,
  idleMilliseconds: 60_000,
}

interface OwnedExecutor {
  tenant: string
  executor: Executor
  idleTimer: NodeJS.Timeout | undefined
}

interface Waiting {
  go: () => void
  isOver: boolean
}

export class ExecutorPool {
  readonly #limits: PoolLimits
  readonly #onError: (error: Error) => void
  readonly #queue = new FairQueue<Waiting>()
  /** Idle executors, the longest idle first. */
  readonly #idle: OwnedExecutor[] = []
  /** Slots in use by running invocations, by tenant. */
  readonly #running = new Map<string, number>()
  #runningTotal = 0
  #live = 0
  #spare: Promise<Executor> | undefined
  #spareTimer: NodeJS.Timeout | undefined
  #closed = false
  /** All executors with their tenants; undefined for the spare one. */
  readonly #executors = new Map<Executor, string | undefined>()

  constructor(limits: PoolLimits, onError: (error: Error) => void) {
    this.#limits = limits
    this.#onError = onError
  }

  /**
   * Enters the queue. The caller must call `leave` at the end, whether or not its turn has come.
   * @throws RuntimeError FUNCTIONS_BUSY if too many invocations of the function wait
   */
  turn(tenant: string, fn: string): Turn {
    const { ready, giveUp } = this.#enqueue(tenant, fn)
    let hasTurn = false
    let isReleased = false
    const turn = ready.then(() => {
      hasTurn = true
      if (isReleased) this.#release(tenant)
    })
    // A caller that leaves before its turn does not await it.
    turn.catch(() => undefined)
    return {
      ready: turn,
      slot: {
        run: (run) => this.#with(tenant, (executor) => executor.run(run)),
        compile: (module, milliseconds) => this.#with(tenant, (executor) => executor.compile(module, milliseconds)),
      },
      leave: () => {
        if (isReleased) return
        isReleased = true
        if (hasTurn) this.#release(tenant)
        else giveUp()
      },
    }
  }

  /**
   * Waits for a turn and runs `work` with a slot of the tenant.
   * @throws RuntimeError FUNCTIONS_BUSY if too many invocations of the function wait, or the wait is too long
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
    for (const owned of [...this.#idle]) clearTimeout(owned.idleTimer)
    for (const executor of this.#executors.keys()) executor.kill()
    await Promise.all([...this.#executors.keys()].map((executor) => executor.exited))
  }

  #mayRun(tenant: string): boolean {
    return this.#runningTotal < this.#limits.total && (this.#running.get(tenant) ?? 0) < this.#limits.perTenant
  }

  #enqueue(tenant: string, fn: string): { ready: Promise<void>; giveUp: () => void } {
    if (this.#closed) throw new RuntimeError('FUNCTIONS_BUSY', 'The functions of this runtime are stopping.')
    if (this.#mayRun(tenant)) {
      this.#claim(tenant)
      return { ready: Promise.resolve(), giveUp: () => undefined }
    }
    if (this.#queue.length(tenant, fn) >= this.#limits.waitingPerFunction) {
      throw new RuntimeError(
        'FUNCTIONS_BUSY',
        `Too many invocations of this function are waiting: ${this.#limits.waitingPerFunction}.`,
      )
    }
    const { promise: ready, resolve, reject } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => {
      waiting.isOver = true
      reject(new RuntimeError('FUNCTIONS_BUSY', 'The invocation waited too long for its turn.'))
    }, this.#limits.waitMilliseconds)
    const waiting: Waiting = {
      isOver: false,
      go: () => {
        clearTimeout(timer)
        resolve(undefined)
      },
    }
    this.#queue.add(tenant, fn, waiting)
    return {
      ready,
      giveUp: () => {
        clearTimeout(timer)
        waiting.isOver = true
      },
    }
  }

  #release(tenant: string): void {
    const remaining = (this.#running.get(tenant) ?? 1) - 1
    if (remaining === 0) this.#running.delete(tenant)
    else this.#running.set(tenant, remaining)
    this.#runningTotal--
    this.#next()
  }

  #claim(tenant: string): void {
    this.#running.set(tenant, (this.#running.get(tenant) ?? 0) + 1)
    this.#runningTotal++
  }

  #next(): void {
    for (;;) {
      const taken = this.#queue.take((tenant) => this.#mayRun(tenant))
      if (taken === undefined) return
      if (taken.item.isOver) continue
      this.#claim(taken.tenant)
      taken.item.go()
    }
  }

  async #with<T>(tenant: string, work: (executor: Executor) => Promise<T>): Promise<T> {
    const executor = await this.#take(tenant)
    try {
      return await work(executor)
    } finally {
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
    const [oldest] = this.#idle
    if (this.#live >= this.#limits.total && oldest !== undefined) this.#end(oldest)
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
    if (executor.isAlive && !this.#closed) {
      const owned: OwnedExecutor = { tenant, executor, idleTimer: undefined }
      owned.idleTimer = setTimeout(() => this.#end(owned), this.#limits.idleMilliseconds).unref()
      this.#idle.push(owned)
    }
    this.#prepareSpare()
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

export interface Turn {
  /** Resolves when the turn has come; rejects with FUNCTIONS_BUSY if the wait is too long. */
  ready: Promise<void>
  /** The slot to use after `ready`. */
  slot: Slot
  leave(): void
}

/** The operations of an invocation during its turn. */
interface Slot {
  run(run: Run): Promise<RunResult>
  compile(module: Module, milliseconds: number): Promise<Failure | undefined>
}
