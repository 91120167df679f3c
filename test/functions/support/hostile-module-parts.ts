// The parts of hostile modules: sections, bodies and lists of any length, which no compiler writes.
import { u32Bytes } from '#tenant-runtime/functions/module/reader.ts'
import { command, constant, drop, i32, magic, name, vector } from './wasm.ts'

export type Ending = 'rejected' | 'stopped' | 'failed' | 'harmless'

export interface Hostile {
  what: string
  wasm: () => Uint8Array<ArrayBuffer>
  /**
   * The expected end of the module. `rejected`: at the deployment, with a 4xx status; `stopped`: by the deadline; `failed`: with an
   * error of the function alone; `harmless`: as any other function.
   */
  ends: Ending | readonly Ending[]
  /** The expected message of the rejection or failure. */
  message?: RegExp
  input?: Buffer
}

type Bytes = readonly number[] | Uint8Array

export const function0: readonly number[] = [0x60, 0, 0]
export const v128 = 0x7b
export const loop = [0x03, 0x40]
export const block = [0x02, 0x40]
export const end = 0x0b
export const again = [0x0c, 0, end]
export const call = (index: number) => [0x10, ...u32Bytes(index)]

export function joined(...parts: Bytes[]): Uint8Array<ArrayBuffer> {
  return together(parts)
}

function together(parts: readonly Bytes[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

export function times(count: number, chunk: Bytes | ((index: number) => Bytes)): Uint8Array {
  return together(Array.from({ length: count }, (_, index) => (typeof chunk === 'function' ? chunk(index) : chunk)))
}

export function long(id: number, ...parts: Bytes[]): Uint8Array {
  const content = joined(...parts)
  return joined([id, ...u32Bytes(content.length)], content)
}

/** Returns a vector of `count` entries, which are equal or depend on their index. */
export function list(count: number, chunk: Bytes | ((index: number) => Bytes)): Uint8Array {
  return joined(u32Bytes(count), times(count, chunk))
}

export function body(locals: readonly (readonly [count: number, type: number])[], ...code: Bytes[]): Uint8Array {
  const content = joined(vector(locals.map(([count, type]) => [...u32Bytes(count), type])), ...code, [end])
  return joined(u32Bytes(content.length), content)
}

interface Parts {
  /** The types after the first, which has no parameters and no results. */
  types?: readonly (readonly number[])[]
  /** The content of each section that exists. */
  sections?: Partial<Record<number, Bytes>>
  /** The first body is that of `_start`. */
  bodies?: readonly Uint8Array[]
  exports?: Bytes
  tail?: Bytes
}

export function program({
  types = [],
  sections = {},
  bodies = [body([])],
  exports = vector([[...name('_start'), 0, 0]]),
  tail = [],
}: Parts): Uint8Array<ArrayBuffer> {
  const all: Partial<Record<number, Bytes>> = {
    1: vector([function0, ...types]),
    3: list(bodies.length, [0]),
    5: vector([[0, 1]]),
    7: exports,
    10: together([u32Bytes(bodies.length), ...bodies]),
    ...sections,
  }
  const order = [1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11]
  return joined(magic, ...order.map((id) => (all[id] === undefined ? [] : long(id, all[id]))), tail)
}

/** Returns a module that calls a function of WASI without end. */
export function flood(imported: string, code: readonly number[]): Uint8Array<ArrayBuffer> {
  return command({ memory: [0, 16], imports: [imported], code: [...loop, ...code, ...call(0), drop, ...again] })
}

export const wide = [
  0x60,
  ...vector(Array.from({ length: 1_000 }, () => [i32])),
  ...vector(Array.from({ length: 1_000 }, () => [i32])),
]
const store = (at: number, value: number) => [...constant(at), ...constant(value), 0x36, 2, 0]
/** Stores one vector at 0, which describes `length` bytes at 1,000. */
export const oneVector = (length: number) => [...store(0, 1_000), ...store(4, length)]
export const wasiImport = (imported: string, kind: readonly number[]) =>
  program({ sections: { 2: vector([[...name('wasi_snapshot_preview1'), ...name(imported), ...kind]]) } })
export const hostLog = [0x60, 3, i32, i32, i32, 0]
