// What runtime and executor say to each other: frames on pipes. A frame is its length (4 bytes, little endian), the
// length of its JSON part (the same), the JSON, and raw bytes.

export type Request =
  /** Raw bytes: the module. Answered by `compiled` or `refused`. */
  | { kind: 'compile'; key: string }
  /** Drops a compiled module. Not answered. */
  | { kind: 'forget'; key: string }
  /** Raw bytes: standard input. Answered by `ran`. */
  | {
      kind: 'run'
      key: string
      memory: { initial: number; maximum: number } | undefined
      arguments: string[]
      environment: string[]
      outputLimit: number
      logLimit: number
    }
  /** To a `call`. Raw bytes: the answer, or with `ok: false` an error as JSON. Not answered. */
  | { kind: 'answer'; ok: boolean }

/** What a guest can ask of the runtime; the rest of the host's functions are the executor's own. */
export const hostCallNames = ['db_query', 'storage_get', 'storage_put', 'storage_delete', 'http_fetch'] as const
export type HostCallName = (typeof hostCallNames)[number]

/** Bytes that a call may carry, and its answer. */
export const callLimit = 6 * 1024 * 1024

export type Outcome =
  | { kind: 'exited'; code: number }
  | { kind: 'trapped'; message: string }
  /** Standard output beyond the limit. */
  | { kind: 'flooded' }

/** What a line of a run's log was said as; standard error is `error`'s. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

/** `cpu`: microseconds of the processor that the process has taken since it began. */
export type Reply =
  | { kind: 'ready'; cpu: number }
  | { kind: 'compiled'; cpu: number }
  | { kind: 'refused'; message: string; cpu: number }
  /** Sent while it runs, so that a run that is killed leaves its log. Raw bytes: text. Not answered. */
  | { kind: 'log'; level: LogLevel }
  /** Sent while it runs, which waits for the `answer`. Raw bytes: what the guest gave, in parts of these lengths. */
  | { kind: 'call'; name: HostCallName; parts: number[] }
  /** Raw bytes: standard output. `memoryPeak` and `logCut` (what the log had no room for) in bytes. */
  | { kind: 'ran'; outcome: Outcome; memoryPeak: number; logCut: number; cpu: number }

export interface Frame<T> {
  head: T
  bytes: Buffer
}

export const prefixBytes = 8

export function encodeFrame(head: Request | Reply, bytes?: Uint8Array): Buffer {
  const json = JSON.stringify(head)
  const jsonBytes = Buffer.byteLength(json)
  const length = jsonBytes + (bytes?.length ?? 0)
  const frame = Buffer.allocUnsafe(prefixBytes + length)
  frame.writeUInt32LE(length, 0)
  frame.writeUInt32LE(jsonBytes, 4)
  frame.write(json, prefixBytes)
  if (bytes !== undefined) frame.set(bytes, prefixBytes + jsonBytes)
  return frame
}

/** @throws SyntaxError when the JSON part is none */
export function decodeFrame<T extends Request | Reply>(jsonLength: number, payload: Buffer): Frame<T> {
  return { head: JSON.parse(payload.toString('utf8', 0, jsonLength)) as T, bytes: payload.subarray(jsonLength) }
}

/** Frames out of the pieces that a pipe delivers. */
export class FrameReader<T extends Request | Reply> {
  readonly #max: number
  /** Of a frame that is not whole yet. */
  #received: Buffer[] = []
  #bytes = 0
  /** How long it is, once that is known. */
  #wanted = prefixBytes

  /** @param max bytes of a frame that an honest sender may send */
  constructor(max: number) {
    this.#max = max
  }

  /** @throws Error for a frame that is too long, SyntaxError for one that is unreadable */
  *push(chunk: Buffer): Generator<Frame<T>> {
    this.#received.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes < this.#wanted) return
    let rest = this.#received.length === 1 ? chunk : Buffer.concat(this.#received)
    for (;;) {
      this.#wanted = rest.length < prefixBytes ? prefixBytes : this.#endOf(rest)
      if (rest.length < this.#wanted) break
      const frame = decodeFrame<T>(rest.readUInt32LE(4), rest.subarray(prefixBytes, this.#wanted))
      rest = rest.subarray(this.#wanted)
      yield frame
    }
    this.#received = [rest]
    this.#bytes = rest.length
  }

  #endOf(bytes: Buffer): number {
    const length = bytes.readUInt32LE(0)
    if (length > this.#max) throw new Error(`a frame of ${length} bytes`)
    return prefixBytes + length
  }
}
