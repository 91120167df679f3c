// The calls of one run, as the runtime sees them: one at a time, each answered once, none that an honest executor would not
// make; given up when the run is over.
import { callLimit, hostCallNames, type HostCallName, type Reply } from './protocol.ts'

/** What a guest asks of the runtime while it runs. */
export interface HostCall {
  name: HostCallName
  /** Its texts and bytes, in the order of the function's parameters; views that hold no longer than the call. */
  parts: readonly Buffer[]
}

/** At most `callLimit` bytes. With `ok: false` an error: `{"code": …, "message": …}` as JSON. */
export interface HostResponse {
  ok: boolean
  bytes: Uint8Array
}

/** Never throws; `signal` aborts when nobody waits any more, because the deadline has passed or the executor has died. */
export type ResponseCall = (call: HostCall, signal: AbortSignal) => Promise<HostResponse>

const maxParts = 3

const noResponse: HostResponse = {
  ok: false,
  bytes: Buffer.from('{"code":"INTERNAL","message":"the host could not answer"}'),
}

export async function notOffered(): Promise<HostResponse> {
  return { ok: false, bytes: Buffer.from('{"code":"NOT_OFFERED","message":"the host takes no calls here"}') }
}

export class RunCalls {
  readonly #response: ResponseCall
  readonly #send: (response: HostResponse) => void
  /** Made with the first call: most runs make none. */
  #abort: AbortController | undefined
  #isPending = false
  #isOver = false

  constructor(response: ResponseCall, send: (response: HostResponse) => void) {
    this.#response = response
    this.#send = send
  }

  /** @throws Error for a call that no honest executor makes */
  take({ name, parts: lengths }: Reply & { kind: 'call' }, bytes: Buffer): void {
    this.checkIdle()
    if (!hostCallNames.includes(name) || bytes.length > callLimit || lengths.length > maxParts)
      throw new Error('it called something that is not offered')
    const parts: Buffer[] = []
    let at = 0
    for (const length of lengths) {
      if (!Number.isInteger(length) || length < 0) throw new Error('the parts of its call have no lengths')
      parts.push(bytes.subarray(at, (at += length)))
    }
    if (at !== bytes.length) throw new Error('the parts of its call are not what it sent')
    this.#isPending = true
    this.#abort ??= new AbortController()
    this.#response({ name, parts }, this.#abort.signal).then(
      (response) => this.#give(response),
      () => this.#give(noResponse),
    )
  }

  /** @throws Error when a call waits for its answer */
  checkIdle(): void {
    if (this.#isPending) throw new Error('it went on without the answer to its call')
  }

  end(): void {
    this.#isOver = true
    this.#abort?.abort(new Error('the run is over'))
  }

  #give(response: HostResponse): void {
    this.#isPending = false
    if (!this.#isOver) this.#send(response.bytes.length > callLimit ? noResponse : response)
  }
}
