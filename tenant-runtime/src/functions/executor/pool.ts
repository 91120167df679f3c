// The executors of a runtime: each belongs to one tenant from its first run to its end, tenants share what the machine
// can bear, a spare is ready for the next, idle ones are ended.
import { RuntimeError } from '../../errors.ts'
import { Executor, type Failure, type Module, type Run, type RunResult } from './executor.ts'
import { FairQueue } from './fair-queue.ts'

export interface PoolLimits {
  /** Executors at once: of all tenants, and of one. */
  total: number
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

interface Held {
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
  readonly #idle: Held[] = []
  /** Slots in use by running invocations, by tenant. */
  readonly #running = new Map<string, number>()
  #runningTotal = 0
  #live = 0
  #spare: Promise<Executor> | undefined
  #spareTimer: NodeJS.Timeout | undefined
  #closed = false
  /** All of them, with the tenant that each belongs to. */
  readonly #executors = new Map<Executor, string | undefined>()

  constructor(limits: PoolLimits, onError: (error: Error) => void) {
    this.#limits = limits
    this.#onError = onError
  }

  /**
   * A place in the line; the turn comes by itself. Whoever has one must leave it, at any time.
   * @throws RuntimeError FUNCTIONS_BUSY when too many wait for the function already
   */
  turn(tenant: string, fn: string): Turn {
    const { ready, giveUp } = this.#turn(tenant, fn)
    let isMine = false
    let isLeft = false
    const came = ready.then(() => {
      isMine = true
      if (isLeft) this.#release(tenant)
    })
    // Whoever leaves before it comes does not look.
    came.catch(() => undefined)
    return {
      ready: came,
      slot: {
        run: (run) => this.#with(tenant, (executor) => executor.run(run)),
        compile: (module, milliseconds) => this.#with(tenant, (executor) => executor.compile(module, milliseconds)),
      },
      leave: () => {
        if (isLeft) return
        isLeft = true
        if (isMine) this.#release(tenant)
        else giveUp()
      },
    }
  }

  /**
   * Runs `work` with a slot of the tenant, once it is its turn.
   * @throws RuntimeError FUNCTIONS_BUSY when too many wait for the function already, or it takes too long
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

  /** Ends the idle executors of a tenant that has changed. */
  evict(tenant: string): void {
    for (const held of this.#idle.filter((held) => held.tenant === tenant)) this.#end(held)
  }

  /** Ends all executors of a tenant that is gone, whatever they are doing. */
  end(tenant: string): void {
    this.evict(tenant)
    for (const [executor, owner] of this.#executors) if (owner === tenant) executor.kill()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#spareTimer)
    for (const held of [...this.#idle]) clearTimeout(held.idleTimer)
    for (const executor of this.#executors.keys()) executor.kill()
    await Promise.all([...this.#executors.keys()].map((executor) => executor.exited))
  }

  #mayRun(tenant: string): boolean {
    return this.#runningTotal < this.#limits.total && (this.#running.get(tenant) ?? 0) < this.#limits.perTenant
  }

  #turn(tenant: string, fn: string): { ready: Promise<void>; giveUp: () => void } {
    if (this.#closed) throw new RuntimeError('FUNCTIONS_BUSY', 'the functions of this runtime are stopping')
    if (this.#mayRun(tenant)) {
      this.#claim(tenant)
      return { ready: Promise.resolve(), giveUp: () => undefined }
    }
    if (this.#queue.length(tenant, fn) >= this.#limits.waitingPerFunction) {
      throw new RuntimeError(
        'FUNCTIONS_BUSY',
        `${this.#limits.waitingPerFunction} invocations of this function wait already`,
      )
    }
    const { promise: ready, resolve, reject } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => {
      waiting.isOver = true
      reject(new RuntimeError('FUNCTIONS_BUSY', 'the invocation waited too long for its turn'))
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
    const left = (this.#running.get(tenant) ?? 1) - 1
    if (left === 0) this.#running.delete(tenant)
    else this.#running.set(tenant, left)
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

  /** @throws RuntimeError FUNCTIONS_BUSY when no executor can be started */
  async #take(tenant: string): Promise<Executor> {
    const index = this.#idle.findLastIndex((held) => held.tenant === tenant && held.executor.isAlive)
    const [held] = index < 0 ? [] : this.#idle.splice(index, 1)
    if (held !== undefined) {
      clearTimeout(held.idleTimer)
      return held.executor
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
        const dead = this.#idle.find((held) => held.executor === executor)
        if (dead !== undefined) this.#end(dead)
      })
      return executor
    } catch (cause) {
      this.#live--
      const error = new Error('no executor could be started', { cause })
      this.#onError(error)
      throw new RuntimeError('FUNCTIONS_BUSY', 'the functions of this runtime are not available now', {
        cause: error,
      })
    }
  }

  #returnExecutor(tenant: string, executor: Executor): void {
    if (executor.isAlive && !this.#closed) {
      const held: Held = { tenant, executor, idleTimer: undefined }
      held.idleTimer = setTimeout(() => this.#end(held), this.#limits.idleMilliseconds).unref()
      this.#idle.push(held)
    }
    this.#keepSpare()
  }

  #end(held: Held): void {
    clearTimeout(held.idleTimer)
    const index = this.#idle.indexOf(held)
    if (index >= 0) this.#idle.splice(index, 1)
    held.executor.kill()
  }

  /** While functions run, one executor that is nobody's yet stands ready. */
  #keepSpare(): void {
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
  /** Rejects with FUNCTIONS_BUSY when it takes too long. */
  ready: Promise<void>
  /** For when it is ready. */
  slot: Slot
  leave(): void
}

/** What an invocation may do while it is its turn. */
interface Slot {
  run(run: Run): Promise<RunResult>
  compile(module: Module, milliseconds: number): Promise<Failure | undefined>
}
