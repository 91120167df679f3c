// What runtime and executor say to each other: frames on pipes. A frame is its length (4 bytes, little endian), the
// length of its JSON part (the same), the JSON, and raw bytes.

export type Request =
  /** Raw bytes: the module. Answered by `compiled` or `refused`. */
  | { kind: 'compile'; key: string }
  /** Drops a compiled module. Not answered. */
  | { kind: 'forget'; key: string }
  /** Raw bytes: standard input. Answered by `ran`. */
  | { kind: 'run'; key: string; memory: { initial: number; maximum: number } | undefined; arguments: string[]; environment: string[]; outputLimit: number; logLimit: number }

export type Outcome =
  | { kind: 'exited'; code: number }
  | { kind: 'trapped'; message: string }
  /** Standard output beyond the limit. */
  | { kind: 'flooded' }

export type Reply =
  | { kind: 'ready' }
  | { kind: 'compiled' }
  | { kind: 'refused'; message: string }
  /** Raw bytes: standard output. `memoryPeak` in bytes; `log` is the beginning of standard error. */
  | { kind: 'ran'; outcome: Outcome; memoryPeak: number; log: string }

export interface Frame<T> {
  head: T
  bytes: Buffer
}

export const prefixBytes = 8

export function encodeFrame(head: Request | Reply, bytes: Uint8Array = Buffer.alloc(0)): Buffer {
  const json = Buffer.from(JSON.stringify(head))
  const prefix = Buffer.alloc(prefixBytes)
  prefix.writeUInt32LE(json.length + bytes.length, 0)
  prefix.writeUInt32LE(json.length, 4)
  return Buffer.concat([prefix, json, bytes])
}

/** @throws SyntaxError when the JSON part is none */
export function decodeFrame<T extends Request | Reply>(jsonLength: number, payload: Buffer): Frame<T> {
  return { head: JSON.parse(payload.toString('utf8', 0, jsonLength)) as T, bytes: payload.subarray(jsonLength) }
}
