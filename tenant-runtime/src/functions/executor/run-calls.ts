// The runtime's side of the calls of one run. It handles one call at a time, rejects calls that a correct executor would not
// make, and aborts the current call when the run ends.
import { callLimit, hostCallNames, type HostCallName, type Reply } from './protocol.ts'

/** A call of a module to the runtime. */
export interface HostCall {
  name: HostCallName
  /** The parameters' bytes in their order. The views are valid during the call. */
  parts: readonly Buffer[]
}

/** The response to a call, of at most `callLimit` bytes. With `ok: false`, an error `{"code": …, "message": …}` as JSON. */
export interface HostResponse {
  ok: boolean
  bytes: Uint8Array
}

/** Handles a call and never throws. `signal` aborts at the deadline of the run or the end of the executor. */
export type CallHandler = (call: HostCall, signal: AbortSignal) => Promise<HostResponse>

const maxParts = 3

const failedCall: HostResponse = {
  ok: false,
  bytes: Buffer.from('{"code":"INTERNAL","message":"The host call failed unexpectedly."}'),
}

/** Rejects any call. */
export async function rejectCall(): Promise<HostResponse> {
  return { ok: false, bytes: Buffer.from('{"code":"NOT_OFFERED","message":"The host does not accept calls."}') }
}

export class RunCalls {
  readonly #handle: CallHandler
  readonly #send: (response: HostResponse) => void
  /** Created with the first call, because most runs have none. */
  #abort: AbortController | undefined
  #isPending = false
  #isOver = false

  constructor(handle: CallHandler, send: (response: HostResponse) => void) {
    this.#handle = handle
    this.#send = send
  }

  /** Takes a call and sends its response. @throws Error for a call that a correct executor does not make */
  take({ name, parts: lengths }: Reply & { kind: 'call' }, bytes: Buffer): void {
    this.checkIdle()
    if (!hostCallNames.includes(name) || bytes.length > callLimit || lengths.length > maxParts)
      throw new Error('The executor made an invalid call.')
    const parts: Buffer[] = []
    let at = 0
    for (const length of lengths) {
      if (!Number.isInteger(length) || length < 0) throw new Error('The parts of a call have invalid lengths.')
      parts.push(bytes.subarray(at, (at += length)))
    }
    if (at !== bytes.length) throw new Error('The parts of a call do not match its bytes.')
    this.#isPending = true
    this.#abort ??= new AbortController()
    this.#handle({ name, parts }, this.#abort.signal).then(
      (response) => this.#respond(response),
      () => this.#respond(failedCall),
    )
  }

  /** Checks that no call waits for its response. @throws Error if one does */
  checkIdle(): void {
    if (this.#isPending) throw new Error('The executor continued without the response to its call.')
  }

  end(): void {
    this.#isOver = true
    this.#abort?.abort(new Error('The run has ended.'))
  }

  #respond(response: HostResponse): void {
    this.#isPending = false
    if (!this.#isOver) this.#send(response.bytes.length > callLimit ? failedCall : response)
  }
}
