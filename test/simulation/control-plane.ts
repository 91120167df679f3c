// One process of a control plane: its clock and its calls to everything outside. Each call takes time. It may be lost, or its
// response may be late or lost. When the process dies, only requests that it has sent may still arrive.
import type { Clock } from '#control-plane/platform/clock.ts'
import type { Chance } from './chance.ts'
import type { Scheduler } from './scheduler.ts'

/** Probabilities of the faults of one call. */
export interface CallFaults {
  /** The request is lost, and the caller gets an error. */
  lost: number
  /** The request is carried out, its response is lost, and the caller gets an error. */
  responseLost: number
  /** The call is lost as with `lost` or `responseLost`, but the caller only notices at its timeout. */
  hang: number
  /** The request arrives after the caller's timeout. */
  late: number
  /** The request takes seconds. */
  slow: number
  /** The control plane dies during the call. */
  crash: number
}

export const noCallFaults: CallFaults = { lost: 0, responseLost: 0, hang: 0, late: 0, slow: 0, crash: 0 }

/** The caller that requested a change. `isLate`: it no longer waits for the response, or no longer leads. */
export interface Actor {
  name: string
  isLate(): boolean
}

export interface CallOptions {
  signal?: AbortSignal | undefined
  /** The caller's timeout in milliseconds. */
  timeout: number
  /** Maximum duration in milliseconds of a call without faults. */
  takes: number
  /** False when a request cannot arrive after the caller's timeout, because the connection ends with it. */
  arrivesLate?: boolean
  /** Returns the error of a caller that gets no response. */
  failure: () => Error
}

export interface ControlPlane extends Actor {
  readonly epoch: bigint
  readonly clock: Clock
  isAlive(): boolean
  /** Ends the process. */
  die(): void
  call<T>(what: string, effect: (actor: Actor) => T, options: CallOptions): Promise<T>
}

export interface ControlPlaneOptions {
  name: string
  epoch: bigint
  scheduler: Scheduler
  chance: Chance
  /** Returns the current probabilities of faults. */
  faults: () => CallFaults
  leads: (epoch: bigint) => boolean
  died: () => void
}

/** Start time of every run, in milliseconds since the epoch. */
export const beginning = Date.UTC(2026, 0, 1)

/** Work at the abort of each signal. A signal has one listener for all of it, because Node adds one to a composed signal slowly. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>()

/** Calls `work` when a signal aborts. @returns a function that cancels it */
function whenAborted(signal: AbortSignal | undefined, work: () => void): () => void {
  if (signal === undefined) return () => undefined
  const known = waiting.get(signal)
  const works = known ?? new Set()
  if (known === undefined) {
    waiting.set(signal, works)
    signal.addEventListener('abort', () => {
      for (const each of works) each()
    })
  }
  works.add(work)
  return () => void works.delete(work)
}

type Fate = 'fine' | keyof CallFaults

const fates = ['lost', 'responseLost', 'hang', 'late', 'slow', 'crash'] as const

export function createControlPlane({
  name,
  epoch,
  scheduler,
  chance,
  faults,
  leads,
  died,
}: ControlPlaneOptions): ControlPlane {
  let alive = true
  const die = () => {
    if (!alive) return
    alive = false
    scheduler.trace(`${name} dies`)
    died()
  }
  const after = (milliseconds: number, work: () => void) =>
    scheduler.after(milliseconds, () => {
      if (alive) work()
    })

  const fateOf = (): Fate => {
    const probabilities = faults()
    let drawn = chance.next()
    for (const fate of fates) {
      if (drawn < probabilities[fate]) return fate
      drawn -= probabilities[fate]
    }
    return 'fine'
  }

  const call = <T>(
    what: string,
    effect: (actor: Actor) => T,
    { signal, timeout, takes, arrivesLate = true, failure }: CallOptions,
  ): Promise<T> => {
    if (!alive) return new Promise(() => undefined)
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error)
    const fate = fateOf()
    const sent = !(
      fate === 'lost' ||
      (fate === 'late' && !arrivesLate) ||
      (fate === 'hang' && chance.happens(0.5)) ||
      (fate === 'crash' && chance.happens(0.5))
    )
    const arrives =
      fate === 'slow'
        ? chance.between(500, 5_000)
        : fate === 'late'
          ? timeout + chance.between(0, 3_000)
          : chance.between(0.1, takes)
    const responseDelay = chance.happens(0.5) ? 0 : chance.between(0.1, takes)
    // A request that was sent may arrive after its caller has died or given up.
    const arrivesAlone = chance.happens(0.5)
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    let isWaiting = true
    const actor: Actor = { name, isLate: () => !isWaiting || !alive || !leads(epoch) }

    const end = (deliver: () => void) => {
      if (!isWaiting || !alive) return
      isWaiting = false
      ignoreAbort()
      deliver()
    }
    const ignoreAbort = whenAborted(signal, () => end(() => reject(signal?.reason as Error)))
    const fail = (milliseconds: number) => after(milliseconds, () => end(() => reject(failure())))
    const respond = (deliver: () => void) =>
      responseDelay === 0 ? end(deliver) : void after(responseDelay, () => end(deliver))

    if (sent) {
      scheduler.after(arrives, () => {
        if (!(isWaiting && alive) && !arrivesAlone) return
        scheduler.trace(`${name} ${what}${fate === 'fine' ? '' : ` (${fate})`}`)
        try {
          const result = effect(actor)
          if (fate === 'fine' || fate === 'slow') respond(() => resolve(result))
        } catch (error) {
          scheduler.trace(`${name} ${what}: ${error instanceof Error ? error.message : ''}`)
          if (fate === 'fine' || fate === 'slow')
            respond(() => reject(error instanceof Error ? error : new Error('unknown', { cause: error })))
        }
      })
    } else {
      scheduler.trace(`${name} ${what} (${fate}, not sent)`)
    }
    if (fate === 'lost') fail(arrives)
    if (fate === 'responseLost') fail(arrives + responseDelay)
    if (fate === 'hang' || fate === 'late') fail(timeout)
    if (fate === 'crash') die()
    return promise
  }

  return {
    name,
    epoch,
    isLate: () => !alive || !leads(epoch),
    isAlive: () => alive,
    die,
    call,
    clock: clockOf(scheduler, after),
  }
}

function clockOf(scheduler: Scheduler, after: Scheduler['after']): Clock {
  return {
    now: () => new Date(beginning + scheduler.now()),
    async sleep(milliseconds, signal) {
      signal?.throwIfAborted()
      const { promise, resolve, reject } = Promise.withResolvers<undefined>()
      const ignoreAbort = whenAborted(signal, () => {
        ignoreAbort()
        cancel()
        reject(signal?.reason as Error)
      })
      const cancel = after(milliseconds, () => {
        ignoreAbort()
        resolve(undefined)
      })
      await promise
    },
    timeout(milliseconds) {
      const over = new AbortController()
      after(milliseconds, () => over.abort(new Error('the time is over')))
      return over.signal
    },
    later: after,
    every(milliseconds, work) {
      let cancel: () => void = () => undefined
      const again = () => {
        cancel = after(milliseconds, () => {
          again()
          work()
        })
      }
      again()
      return () => cancel()
    },
  }
}
