// The states of one forwarded request, from its arrival to the end of its response, and the transitions between them. Pure:
// `forwarded-response.ts` acts on them. An event after the end is ignored; in any other state, an unexpected event is a
// defect and throws.
import type { ResponseHead } from './response-head.ts'

/** Something in progress that the gateway can abort: a wait, a connection, a call to a runtime. */
export interface Abortable {
  abort(reason: Error): void
}

/** A runtime's response whose body is read at the client's pace, such as undici's controller. */
export interface ResponseSource extends Abortable {
  pause(): void
  resume(): void
}

/** The request is read and routed. Its tenant's quota has not decided on it. */
interface Received {
  readonly phase: 'received'
}

/** The request waits for its turn or for its tenant's quota. A client that leaves now was never admitted. */
interface Queued {
  readonly phase: 'queued'
  readonly waitsFor: Abortable
}

/** The quota has admitted the request. It waits for its tenant to wake, for a later try or for a connection. */
interface Admitted {
  readonly phase: 'admitted'
  readonly waitsFor: Abortable | undefined
}

/**
 * Some of the request may have reached a runtime, so the tenant pays for it. It stays forwarded while it waits for the next
 * try.
 */
interface Forwarded {
  readonly phase: 'forwarded'
  readonly waitsFor: Abortable | undefined
}

/** The head of an event stream has arrived, and waits for one of the tenant's connection slots. */
interface AwaitingSlot {
  readonly phase: 'awaiting-slot'
  readonly source: ResponseSource
  readonly status: number
  readonly head: ResponseHead
  /** Leaves the queue for a slot. */
  readonly leave: () => void
  /** The chunks of the body that have arrived in the meantime. */
  readonly chunks: Buffer[]
}

/** The head went to the client. The body follows. */
interface Sending {
  readonly phase: 'sending'
  readonly source: ResponseSource
  /** The number of bytes of the body that are still to come, when the runtime stated the length. */
  remaining: number | undefined
  /** Releases an event stream's slot, and removes it from the live connections. */
  readonly closeStream: (() => void) | undefined
}

/** Nothing more happens on either side. */
interface Over {
  readonly phase: 'over'
}

export type ResponseState = Received | Queued | Admitted | Forwarded | AwaitingSlot | Sending | Over

/** The error of a defect of the gateway: an event arrived in a state that does not expect it. */
export class IllegalTransitionError extends Error {
  constructor(event: string, { phase }: ResponseState) {
    super(`A forwarded request cannot ${event} in the state "${phase}".`)
  }
}

// Most requests wait for nothing, so these states are created once.
export const received: Received = { phase: 'received' }
export const over: Over = { phase: 'over' }
const admitted: Admitted = { phase: 'admitted', waitsFor: undefined }
const forwarded: Forwarded = { phase: 'forwarded', waitsFor: undefined }

/** Queues the request until it is its turn, and until the tenant's quota decides. */
export function queue(state: ResponseState, waitsFor: Abortable): ResponseState {
  if (state.phase === 'received' || state.phase === 'queued') return { phase: 'queued', waitsFor }
  return ignoredWhenOver(state, 'be queued')
}

/** Admits the request. */
export function admit(state: ResponseState): ResponseState {
  if (state.phase === 'received' || state.phase === 'queued') return admitted
  return ignoredWhenOver(state, 'be admitted')
}

/** Lets the request wait for its tenant, for a later try, for a connection, or for a runtime it was sent to before. */
export function waitFor(state: ResponseState, waitsFor: Abortable): ResponseState {
  if (state.phase === 'admitted' || state.phase === 'forwarded') return { phase: state.phase, waitsFor }
  return ignoredWhenOver(state, 'wait')
}

/** Ends the request's wait. */
export function proceed(state: ResponseState): ResponseState {
  if (state.phase === 'admitted') return admitted
  if (state.phase === 'forwarded') return forwarded
  return ignoredWhenOver(state, 'proceed')
}

/** Notes that from now on a runtime may have some of the request. */
export function forward(state: ResponseState, call: Abortable): ResponseState {
  if (state.phase === 'admitted' || state.phase === 'forwarded') return { phase: 'forwarded', waitsFor: call }
  return ignoredWhenOver(state, 'be forwarded')
}

/**
 * Checks the state.
 * @throws IllegalTransitionError unless the request is admitted and its response has not begun, or it is over
 */
export function requireAdmitted(state: ResponseState, event: string): void {
  if (state.phase !== 'admitted' && state.phase !== 'forwarded') ignoredWhenOver(state, event)
}

/**
 * Checks the state.
 * @throws IllegalTransitionError unless the request was forwarded, and its response has not begun
 */
export function requireForwarded(state: ResponseState, event: string): void {
  if (state.phase !== 'forwarded') throw new IllegalTransitionError(event, state)
}

/** Lets an event stream wait for a slot after its head has arrived. */
export function awaitSlot(state: ResponseState, wait: Omit<AwaitingSlot, 'phase' | 'chunks'>): AwaitingSlot {
  requireForwarded(state, 'await a slot')
  return { phase: 'awaiting-slot', ...wait, chunks: [] }
}

/** Ends the wait for a slot. The head or a rejection follows. */
export function slotDecided({ source }: AwaitingSlot): Forwarded {
  return { phase: 'forwarded', waitsFor: source }
}

/** Notes that the head went to the client. */
export function send(
  state: ResponseState,
  source: ResponseSource,
  remaining: number | undefined,
  closeStream: (() => void) | undefined,
): Sending {
  requireForwarded(state, 'send its head')
  return { phase: 'sending', source, remaining, closeStream }
}

/**
 * Notes bytes of the body that go to the client.
 * @returns whether they are the last ones
 */
export function passBytes(state: Sending, bytes: number): boolean {
  if (state.remaining === undefined) return false
  state.remaining -= bytes
  return state.remaining === 0
}

/** Whether no head of a runtime has arrived, so that the request may be sent again and its body may be requested. */
export function awaitsHead({ phase }: ResponseState): boolean {
  return phase === 'received' || phase === 'queued' || phase === 'admitted' || phase === 'forwarded'
}

/** Whether any of the request may have reached a runtime. */
export function wasForwarded({ phase }: ResponseState): boolean {
  return phase === 'forwarded' || phase === 'awaiting-slot' || phase === 'sending'
}

/** Returns what is aborted when the request ends now. */
export function abortableOf(state: ResponseState): Abortable | undefined {
  switch (state.phase) {
    case 'queued':
    case 'admitted':
    case 'forwarded':
      return state.waitsFor
    case 'awaiting-slot':
    case 'sending':
      return state.source
    case 'received':
    case 'over':
      return undefined
  }
}

function ignoredWhenOver(state: ResponseState, event: string): ResponseState {
  if (state.phase === 'over') return state
  throw new IllegalTransitionError(event, state)
}
