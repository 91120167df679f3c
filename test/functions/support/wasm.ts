// Encodes WebAssembly modules by hand, including ones that no compiler would write.
import { wasiFunctions, type WasiName } from '#tenant-runtime/functions/module/abi.ts'
import { u32Bytes } from '#tenant-runtime/functions/module/reader.ts'

export const magic = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]
export const i32 = 0x7f
export const i64 = 0x7e

export function name(text: string): number[] {
  const bytes = [...Buffer.from(text)]
  return [...u32Bytes(bytes.length), ...bytes]
}

export function vector(items: readonly (readonly number[])[]): number[] {
  return [...u32Bytes(items.length), ...items.flat()]
}

export function section(id: number, content: readonly number[]): number[] {
  return [id, ...u32Bytes(content.length), ...content]
}

export function bytes(...parts: readonly (readonly number[])[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(parts.flat())
}

export interface CommandOptions {
  /** The code of `_start`, without its end. */
  code?: readonly number[]
  /** The groups of locals: their number and their type. */
  locals?: readonly (readonly [count: number, type: number])[]
  /** The names of imported functions, of WASI or of `importModule`. */
  imports?: readonly string[]
  importModule?: string
  /** Parameters and results of the imports, as a function type. */
  importType?: readonly number[]
  /** The limits of the memory, as the file encodes them. */
  memory?: readonly number[]
  /** The limits of each table. */
  tables?: readonly (readonly number[])[]
  /** The sections before the types. */
  before?: readonly number[]
  exportName?: string
}

/** Returns a command with one function of its own, `_start`. */
export function command({
  code = [],
  locals = [],
  imports = [],
  importModule = 'wasi_snapshot_preview1',
  importType,
  memory,
  tables = [],
  before = [],
  exportName = '_start',
}: CommandOptions = {}): Uint8Array<ArrayBuffer> {
  const body = [...vector(locals.map(([count, type]) => [...u32Bytes(count), type])), ...code, 0x0b]
  return bytes(
    magic,
    before,
    section(1, vector([[0x60, 0, 0], ...imports.map((imported) => importType ?? wasiType(imported))])),
    imports.length === 0
      ? []
      : section(
          2,
          vector(
            imports.map((imported, index) => [...name(importModule), ...name(imported), 0, ...u32Bytes(index + 1)]),
          ),
        ),
    section(3, vector([[0]])),
    tables.length === 0 ? [] : section(4, vector(tables.map((limits) => [0x70, ...limits]))),
    memory === undefined ? [] : section(5, vector([memory])),
    section(7, vector([[...name(exportName), 0, ...u32Bytes(imports.length)]])),
    section(10, vector([[...u32Bytes(body.length), ...body]])),
  )
}

/** Returns the type of a function of WASI, or an empty type for another name. */
export function wasiType(imported: string): number[] {
  const [parameters = '', results = ''] = (
    Object.hasOwn(wasiFunctions, imported) ? wasiFunctions[imported as WasiName] : ':'
  ).split(':')
  const types = (list: string) => vector(Array.from(list, (letter) => [letter === 'i' ? i32 : i64]))
  return [0x60, ...types(parameters), ...types(results)]
}

/** Returns the code of `i32.const`. */
export function constant(value: number): number[] {
  const out: number[] = [0x41]
  for (let rest = value | 0; ;) {
    const byte = rest & 0x7f
    rest >>= 7
    const isLast = (rest === 0 && (byte & 0x40) === 0) || (rest === -1 && (byte & 0x40) !== 0)
    out.push(isLast ? byte : byte | 0x80)
    if (isLast) return out
  }
}

export const drop = 0x1a
export const forever = [0x03, 0x40, 0x0c, 0x00, 0x0b]
/** The code of `memory.grow`. */
export const grow = [0x40, 0x00]
export const unreachable = 0x00
