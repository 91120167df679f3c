// The protocol between runtime and executor: frames on pipes. A frame has its length (4 bytes, little endian), the length of
// its JSON part (likewise), the JSON, and raw bytes.

export type Request =
  /** Compiles a module, which the raw bytes are. The reply is `compiled` or `rejected`. */
  | { kind: 'compile'; key: string }
  /** Drops a compiled module, without a reply. */
  | { kind: 'evict'; key: string }
  /** Runs a module; the raw bytes are its standard input. The reply is `ran`. */
  | {
      kind: 'run'
      key: string
      memory: { initial: number; maximum: number } | undefined
      arguments: string[]
      environment: string[]
      outputLimit: number
      logLimit: number
    }
  /** The response to a `call`, without a reply. The raw bytes are the result; with `ok: false`, an error as JSON. */
  | { kind: 'response'; ok: boolean }

/** Functions of the host that the runtime handles. The executor handles the others. */
export const hostCallNames = ['db_query', 'storage_get', 'storage_put', 'storage_delete', 'http_fetch'] as const
export type HostCallName = (typeof hostCallNames)[number]

/** Maximum of the bytes of a call's parameters, and of its result. */
export const callLimit = 6 * 1024 * 1024

export type Outcome =
  | { kind: 'exited'; code: number }
  | { kind: 'trapped'; message: string }
  /** The standard output exceeded its limit. */
  | { kind: 'flooded' }

/** Levels of a log's lines. Standard error has the level `error`. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

/** A message of the executor. `cpu` is the CPU time of the process since its start, in microseconds. */
export type Reply =
  | { kind: 'ready'; cpu: number }
  | { kind: 'compiled'; cpu: number }
  | { kind: 'rejected'; message: string; cpu: number }
  /** Text for the log, in the raw bytes. It is sent during the run, so that a killed run has a log. */
  | { kind: 'log'; level: LogLevel }
  /** A call of the module, which waits for the `response`. The raw bytes are the parameters, with these lengths. */
  | { kind: 'call'; name: HostCallName; parts: number[] }
  /** The end of a run. The raw bytes are the standard output. `memoryPeak` and `logCut` (log beyond its limit) are bytes. */
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

/** Decodes a frame without its prefix. @throws SyntaxError if the JSON part is not valid */
export function decodeFrame<T extends Request | Reply>(jsonLength: number, payload: Buffer): Frame<T> {
  return { head: JSON.parse(payload.toString('utf8', 0, jsonLength)) as T, bytes: payload.subarray(jsonLength) }
}

/** Reads frames from the chunks of a pipe. */
export class FrameReader<T extends Request | Reply> {
  readonly #max: number
  /** Chunks of a frame that is not complete yet. */
  #received: Buffer[] = []
  #bytes = 0
  /** Bytes of the frame, once its prefix is received. */
  #wanted = prefixBytes

  /** @param max maximum of a frame's bytes */
  constructor(max: number) {
    this.#max = max
  }

  /** Takes a chunk and yields the frames that are complete. @throws Error for a frame that is too long; SyntaxError */
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
    if (length > this.#max) throw new Error(`The frame has ${length} bytes. At most ${this.#max} are allowed.`)
    return prefixBytes + length
  }
}
