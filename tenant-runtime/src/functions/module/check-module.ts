// Reads a module's sections at deploy: refuses by name what a host of strangers' code can't give, and finds the memory.
// The rest of the format's rules are V8's to check, in a process that may die of it.
import { RuntimeError } from '../../errors.ts'
import { hostFunctions, hostModule, wasiFunctions, wasiModule, type HostFunction, type WasiName } from './abi.ts'
import { Reader } from './reader.ts'

/** 10 MB (specification, section 8); functions' sizes are powers of two, as their defaults are. */
export const maxModuleBytes = 10 * 1024 * 1024
/** Of what a section holds. The largest programs stay far below; each costs a compiler, and this reader, memory. */
const maxOf = {
  type: 10_000,
  import: 1_000,
  function: 100_000,
  global: 10_000,
  export: 10_000,
  'element segment': 10_000,
  'data segment': 100_000,
  tag: 100,
} as const
const maxParameters = 1_000
const maxSections = 1_000
const maxTableElements = 100_000
const maxTables = 16
const maxLocals = 4_096
/** Compilers hold a record per local and open block: this bounds the product by the bytes that can open blocks. */
const maxLocalsTimesBytes = 2 ** 28

export interface Section {
  id: number
  /** Where the section begins, with its id, and where it ends. */
  begin: number
  end: number
  /** Where its content begins. */
  content: number
}

export interface ModuleShape {
  sections: Section[]
  /** Of the memory that the module defines, in pages; undefined when it has none. */
  memory: { initial: number; maximum: number | undefined } | undefined
  /** Whether it can ask the host for anything that others could see. */
  reachesOut: boolean
}

const sectionNames: Record<number, string> = {
  1: 'type',
  2: 'import',
  3: 'function',
  4: 'table',
  5: 'memory',
  6: 'global',
  7: 'export',
  8: 'start',
  9: 'element',
  10: 'code',
  11: 'data',
  12: 'data count',
  13: 'tag',
}
/** The order in which sections stand in a file. */
const sectionOrder = [1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11]
const functionForm = 0x60
const i32 = 0x7f
const valueTypes = new Set([0x7f, 0x7e, 0x7d, 0x7c, 0x7b, 0x70, 0x6f, 0x69])
const referenceTypes = new Set([0x70, 0x6f])

/** @throws RuntimeError INVALID_WASM that names what is refused, WASM_TOO_LARGE */
export function checkModule(bytes: Uint8Array): ModuleShape {
  if (bytes.length > maxModuleBytes) {
    throw new RuntimeError(
      'WASM_TOO_LARGE',
      `part "wasm" has ${bytes.length} bytes; at most ${maxModuleBytes} are taken`,
    )
  }
  const reader = new Reader(bytes)
  if (bytes.length < 8 || Buffer.from(bytes.subarray(0, 4)).toString('latin1') !== '\0asm')
    throw reader.malformed('is no WebAssembly: its first four bytes are not "\\0asm"')
  if (bytes[4] !== 1 || bytes[5] !== 0 || bytes[6] !== 0 || bytes[7] !== 0) {
    throw rejected(
      bytes[4] === 0x0d
        ? 'is a component; a WASI preview 1 command (a core module) is wanted'
        : 'has a version other than 1',
    )
  }
  reader.at = 8
  const shape: ModuleShape = { sections: [], memory: undefined, reachesOut: false }
  let types: FunctionType[] = []
  let runs = false
  let last = -1
  while (!reader.isAtEnd) {
    // Custom ones may come as often as they like otherwise, in three bytes each.
    if (shape.sections.length >= maxSections) throw rejected(`has more than ${maxSections} sections`)
    const begin = reader.at
    const id = reader.byte()
    const length = reader.u32()
    const content = reader.at
    const section = reader.sub(length)
    shape.sections.push({ id, begin, end: reader.at, content })
    if (id === 0) continue
    const location = sectionOrder.indexOf(id)
    if (location < 0) throw rejected(`has a section of unknown kind ${id}`)
    if (location <= last) throw rejected(`has its ${sectionNames[id] ?? ''} section twice or out of order`)
    last = location
    if (id === 1) types = readTypes(section)
    else if (id === 2) shape.reachesOut = checkImports(section, types)
    else if (id === 3) countOf(section, 'function')
    else if (id === 4) checkTables(section)
    else if (id === 5) shape.memory = readMemory(section)
    else if (id === 6) countOf(section, 'global')
    else if (id === 7) runs = exportsStart(section)
    else if (id === 9) countOf(section, 'element segment')
    else if (id === 10) checkCode(section)
    else if (id === 11) countOf(section, 'data segment')
    else if (id === 13) countOf(section, 'tag')
  }
  if (!runs) throw rejected('exports no function "_start": build it as a WASI command')
  return shape
}

function rejected(what: string): RuntimeError {
  return new RuntimeError('INVALID_WASM', `part "wasm": the module ${what}`)
}

/** How many entries follow. */
function countOf(section: Reader, what: keyof typeof maxOf): number {
  const count = section.u32()
  if (count > maxOf[what]) throw rejected(`has ${count} ${what}s; at most ${maxOf[what]} are taken`)
  return count
}

/** Types of the parameters and of the results, as the file's bytes. */
interface FunctionType {
  parameters: number[]
  results: number[]
}

function readTypes(section: Reader): FunctionType[] {
  const types: FunctionType[] = []
  for (let left = countOf(section, 'type'); left > 0; left--) {
    if (section.byte() !== functionForm)
      throw rejected('uses types of the garbage collection proposal; only function types are taken')
    types.push({ parameters: readValueTypes(section), results: readValueTypes(section) })
  }
  return types
}

/** Of parameters, or of results. */
function readValueTypes(section: Reader): number[] {
  const types: number[] = []
  const count = section.u32()
  if (count > maxParameters)
    throw rejected(`has a function type of ${count} parameters or results; at most ${maxParameters} are taken`)
  for (let left = count; left > 0; left--) {
    const type = section.byte()
    if (!valueTypes.has(type))
      throw rejected('uses typed references; only numbers, vectors, funcref and externref are taken')
    types.push(type)
  }
  return types
}

const importKinds = ['function', 'table', 'memory', 'global', 'tag']

/** @returns whether one of them reaches out */
function checkImports(section: Reader, types: readonly FunctionType[]): boolean {
  let reachesOut = false
  for (let left = countOf(section, 'import'); left > 0; left--) {
    const from = section.name()
    const name = section.name()
    const kind = section.byte()
    const shown = JSON.stringify(`${from}.${name}`.slice(0, 200))
    if (kind !== 0)
      throw rejected(
        `imports the ${importKinds[kind] ?? 'unknown thing'} ${shown}; only functions of ${wasiModule} and ${hostModule} can be imported`,
      )
    const type = types[section.u32()]
    if (from === hostModule) reachesOut = checkHostImport(name, type).reachesOut || reachesOut
    else if (from === wasiModule && isWasiName(name)) checkWasiImport(name, type)
    else {
      throw rejected(
        `imports the function ${shown}, which is not offered; only functions of ${wasiModule} and ${hostModule} are`,
      )
    }
  }
  return reachesOut
}

function isWasiName(name: string): name is WasiName {
  return Object.hasOwn(wasiFunctions, name)
}

const letters = new Map([
  [0x7f, 'i'],
  [0x7e, 'I'],
  [0x7d, 'f'],
  [0x7c, 'F'],
])

function checkWasiImport(name: WasiName, type: FunctionType | undefined): void {
  const lettersOf = (types: readonly number[] = []) => types.map((one) => letters.get(one) ?? '?').join('')
  const given = `${lettersOf(type?.parameters)}:${lettersOf(type?.results)}`
  if (type !== undefined && given === wasiFunctions[name]) return
  const [parameters = '', results = ''] = wasiFunctions[name]
    .split(':')
    .map((list) => Array.from(list, (letter) => (letter === 'i' ? 'i32' : 'i64')).join(', '))
  throw rejected(
    `imports the function "${wasiModule}.${name}" with another signature: it takes (${parameters}) and gives (${results})`,
  )
}

function checkHostImport(name: string, type: FunctionType | undefined): HostFunction {
  const shown = JSON.stringify(`${hostModule}.${name}`.slice(0, 200))
  const offered = Object.hasOwn(hostFunctions, name) ? hostFunctions[name] : undefined
  if (offered === undefined)
    throw rejected(
      `imports the function ${shown}, which is not offered; ${hostModule} has ${Object.keys(hostFunctions).join(', ')}`,
    )
  const fits = (given: readonly number[] | undefined, count: number) =>
    given?.length === count && given.every((one) => one === i32)
  if (!fits(type?.parameters, offered.parameters) || !fits(type?.results, offered.results)) {
    const results = offered.results === 0 ? 'nothing' : 'one'
    throw rejected(
      `imports the function ${shown} with another signature: ` +
        `it takes ${offered.parameters} i32 and gives ${results}`,
    )
  }
  return offered
}

interface Bounds {
  initial: number
  maximum: number | undefined
}

/** `what` names the thing for messages. */
function readBounds(section: Reader, what: string): Bounds {
  const flags = section.byte()
  if (flags > 7) throw section.malformed('has limits of an unknown kind')
  if ((flags & 2) !== 0) throw rejected(`has a shared ${what}; threads are not offered`)
  if ((flags & 4) !== 0) throw rejected(`has a ${what} with 64-bit addresses; only 32-bit ones are taken`)
  const initial = section.u32()
  return { initial, maximum: (flags & 1) === 0 ? undefined : section.u32() }
}

function checkTables(section: Reader): void {
  const count = section.u32()
  if (count > maxTables) throw rejected(`has ${count} tables; at most ${maxTables} are taken`)
  let elements = 0
  for (let left = count; left > 0; left--) {
    if (!referenceTypes.has(section.byte()))
      throw rejected('has a table of typed references, or one with an initial value')
    elements += readBounds(section, 'table').initial
  }
  if (elements > maxTableElements)
    throw rejected(`has tables of ${elements} elements; at most ${maxTableElements} are taken`)
}

function readMemory(section: Reader): Bounds | undefined {
  const count = section.u32()
  if (count > 1) throw rejected('has more than one memory')
  return count === 0 ? undefined : readBounds(section, 'memory')
}

function exportsStart(section: Reader): boolean {
  let found = false
  for (let left = countOf(section, 'export'); left > 0; left--) {
    const name = section.name()
    const kind = section.byte()
    section.u32()
    if (name === '_start' && kind === 0) found = true
  }
  return found
}

function checkCode(section: Reader): void {
  for (let left = section.u32(); left > 0; left--) {
    const size = section.u32()
    const body = section.sub(size)
    let locals = 0
    for (let groups = body.u32(); groups > 0; groups--) {
      locals += body.u32()
      if (locals > maxLocals) throw rejected(`has a function of more than ${maxLocals} local variables`)
      body.byte()
    }
    if (locals * size > maxLocalsTimesBytes)
      throw rejected(
        `has a function of ${size} bytes with ${locals} local variables; that is too large to compile safely`,
      )
  }
}
