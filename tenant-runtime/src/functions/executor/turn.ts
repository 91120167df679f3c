// The turn of one invocation: it waits for an executor, uses it, and may be stopped at any moment.
import { RuntimeError } from '../../errors.ts'
import type { Executor, Failure, Module, Run, RunResult, StopReason } from './executor.ts'
import type { Held } from './turn-scheduler.ts'

export interface Turn {
  /** Resolves when the turn has come; rejects with FUNCTIONS_BUSY if the wait is too long, or with the reason of `stop`. */
  ready: Promise<void>
  /** The slot to use after `ready`. */
  slot: Slot
  /** Stops the wait or the run. Its executor ends. */
  stop(reason: StopReason): void
  leave(): void
}

/** The operations of an invocation during its turn. */
export interface Slot {
  run(run: Run): Promise<RunResult>
  compile(module: Module, milliseconds: number): Promise<Failure | undefined>
}

interface PoolOperations {
  run(turn: PoolTurn, run: Run): Promise<RunResult>
  compile(turn: PoolTurn, module: Module, milliseconds: number): Promise<Failure | undefined>
  leave(turn: PoolTurn): void
}

const stopErrors = {
  'caller-left': () =>
    new RuntimeError('HOST_FUNCTION_ERROR', 'The invocation was stopped because its caller disconnected.'),
  'made-room': () =>
    new RuntimeError(
      'FUNCTIONS_BUSY',
      'The invocation was stopped because all executors were in use and other tenants waited.',
    ),
}

/** Returns the error of an invocation that was stopped. */
export function stopError(reason: StopReason): RuntimeError {
  return stopErrors[reason]()
}

export class PoolTurn implements Turn {
  readonly #pool: PoolOperations
  readonly slot: Slot
  ready: Promise<void> = Promise.resolve()
  /** The executor that the scheduler counts for this turn; undefined while it waits. */
  held: Held | undefined
  #executor: Executor | undefined
  #waiting: { timer: NodeJS.Timeout; resolve: () => void; reject: (error: Error) => void } | undefined
  #stopped: StopReason | undefined
  #isOver = false

  constructor(pool: PoolOperations) {
    this.#pool = pool
    this.slot = {
      run: (run) => pool.run(this, run),
      compile: (module, milliseconds) => pool.compile(this, module, milliseconds),
    }
  }

  /** Starts the wait for an executor. */
  startWaiting(maxMilliseconds: number): void {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    const timer = setTimeout(
      () => this.#giveUp(new RuntimeError('FUNCTIONS_BUSY', 'The invocation waited too long for its turn.')),
      maxMilliseconds,
    )
    this.#waiting = { timer, resolve: () => resolve(undefined), reject }
    this.ready = promise
    // A caller that leaves before its turn does not await it.
    promise.catch(() => undefined)
  }

  /** Begins the turn. */
  begin(held: Held): void {
    this.held = held
    clearTimeout(this.#waiting?.timer)
    this.#waiting?.resolve()
    this.#waiting = undefined
  }

  /** Notes the executor that the invocation uses. @throws RuntimeError if the invocation was stopped */
  use(executor: Executor | undefined): void {
    this.#executor = executor
    if (executor !== undefined && this.#stopped !== undefined) throw stopError(this.#stopped)
  }

  stop(reason: StopReason): void {
    if (this.#stopped !== undefined || this.#isOver) return
    this.#stopped = reason
    this.#giveUp(stopError(reason))
    this.#executor?.stop({ kind: 'stopped', reason })
  }

  /** Lets the run continue at the lowest priority if it has used much CPU time. */
  lowerPriority(): void {
    void this.#executor?.lowerPriority()
  }

  leave(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#waiting?.timer)
    this.#pool.leave(this)
  }

  /** Ends the wait. */
  #giveUp(error: RuntimeError): void {
    if (this.#waiting === undefined) return
    this.#waiting.reject(error)
    this.leave()
  }
}
