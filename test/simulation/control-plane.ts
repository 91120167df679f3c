// One life of a control plane: its clock, and its calls to everything outside of it. Each call takes time and may be lost,
// answered too late or not at all; when the life ends, nothing of it happens any more but what is on its way already.
import type { Clock } from '#control-plane/platform/clock.ts'
import type { Chance } from './chance.ts'
import type { Scheduler } from './scheduler.ts'

/** Probabilities of what happens to one call. */
export interface CallFaults {
  /** Never arrives, which is noticed. */
  lost: number
  /** Done, but the answer never arrives, which is noticed. */
  responseLost: number
  /** As `lost` or `responseLost`, and nobody notices until the caller's patience ends. */
  hang: number
  /** Arrives after the caller's patience has ended. */
  late: number
  /** Takes seconds. */
  slow: number
  /** The control plane dies with it. */
  crash: number
}

export const noCallFaults: CallFaults = { lost: 0, responseLost: 0, hang: 0, late: 0, slow: 0, crash: 0 }

/** Whoever asked for a change of the world. `isLate`: it no longer waits for the answer, or no longer leads. */
export interface Actor {
  name: string
  isLate(): boolean
}

export interface CallOptions {
  signal?: AbortSignal | undefined
  /** Milliseconds until the caller gives up by itself. */
  timeout: number
  /** Milliseconds that it takes at most when all is well. */
  takes: number
  /** False where nothing arrives once the caller has given up, because the connection ends with it. */
  arrivesLate?: boolean
  /** What a caller is told that gets no answer. */
  failure: () => Error
}

export interface ControlPlane extends Actor {
  readonly epoch: bigint
  readonly clock: Clock
  isAlive(): boolean
  /** Nothing of it is there from now on. */
  die(): void
  call<T>(what: string, effect: (actor: Actor) => T, options: CallOptions): Promise<T>
}

export interface ControlPlaneOptions {
  name: string
  epoch: bigint
  scheduler: Scheduler
  chance: Chance
  /** What calls suffer now. */
  faults: () => CallFaults
  leads: (epoch: bigint) => boolean
  died: () => void
}

/** When every run begins. */
export const beginning = Date.UTC(2026, 0, 1)

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
    const responses = chance.happens(0.5) ? 0 : chance.between(0.1, takes)
    // A request on its way when its caller goes away may arrive all the same.
    const arrivesAlone = chance.happens(0.5)
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    let isWaiting = true
    const actor: Actor = { name, isLate: () => !isWaiting || !alive || !leads(epoch) }

    const end = (deliver: () => void) => {
      if (!isWaiting || !alive) return
      isWaiting = false
      signal?.removeEventListener('abort', onAbort)
      deliver()
    }
    const onAbort = () => end(() => reject(signal?.reason as Error))
    signal?.addEventListener('abort', onAbort)
    const fail = (milliseconds: number) => after(milliseconds, () => end(() => reject(failure())))
    const response = (deliver: () => void) =>
      responses === 0 ? end(deliver) : void after(responses, () => end(deliver))

    if (sent) {
      scheduler.after(arrives, () => {
        if (!(isWaiting && alive) && !arrivesAlone) return
        scheduler.trace(`${name} ${what}${fate === 'fine' ? '' : ` (${fate})`}`)
        try {
          const result = effect(actor)
          if (fate === 'fine' || fate === 'slow') response(() => resolve(result))
        } catch (error) {
          scheduler.trace(`${name} ${what}: ${error instanceof Error ? error.message : ''}`)
          if (fate === 'fine' || fate === 'slow')
            response(() => reject(error instanceof Error ? error : new Error('unknown', { cause: error })))
        }
      })
    } else {
      scheduler.trace(`${name} ${what} (${fate}, not sent)`)
    }
    if (fate === 'lost') fail(arrives)
    if (fate === 'responseLost') fail(arrives + responses)
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
      const onAbort = () => {
        cancel()
        reject(signal?.reason as Error)
      }
      const cancel = after(milliseconds, () => {
        signal?.removeEventListener('abort', onAbort)
        resolve(undefined)
      })
      signal?.addEventListener('abort', onAbort, { once: true })
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
