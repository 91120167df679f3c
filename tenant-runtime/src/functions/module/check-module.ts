// Reads a module's sections at deployment: rejects what a host of untrusted code can't offer, and finds the memory. V8 checks
// the other rules of the format in an executor's process, which may be killed.
import { RuntimeError } from '../../errors.ts'
import { hostFunctions, hostModule, wasiFunctions, wasiModule, type HostFunction, type WasiName } from './abi.ts'
import { Reader } from './reader.ts'

/** 10 MB (specification, section 8), where 1 MB is 2^20 bytes as for functions' memory. */
export const maxModuleBytes = 10 * 1024 * 1024
/** Maximum numbers of entries, which bound the memory of the compiler and of this reader. Real programs have far fewer. */
const maxEntries = {
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
/** Bounds the compiler's records for each pair of a local and an open block, whose number the function's bytes bound. */
const maxLocalsTimesBytes = 2 ** 28

export interface Section {
  id: number
  /** Offset of the section's id. */
  begin: number
  end: number
  /** Offset of the section's content. */
  content: number
}

export interface ModuleShape {
  sections: Section[]
  /** Size in pages of the memory that the module defines; undefined if it has none. */
  memory: { initial: number; maximum: number | undefined } | undefined
  /** Whether the module can have effects outside of the executor. */
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
/** The ids of sections in the order that the format requires. */
const sectionOrder = [1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11]
const functionForm = 0x60
const i32 = 0x7f
const valueTypes = new Set([0x7f, 0x7e, 0x7d, 0x7c, 0x7b, 0x70, 0x6f, 0x69])
const referenceTypes = new Set([0x70, 0x6f])

/** Checks a module and returns its structure. @throws RuntimeError INVALID_WASM with the reason, WASM_TOO_LARGE */
export function checkModule(bytes: Uint8Array): ModuleShape {
  if (bytes.length > maxModuleBytes) {
    throw new RuntimeError(
      'WASM_TOO_LARGE',
      `Part "wasm" has ${bytes.length} bytes. At most ${maxModuleBytes} are allowed.`,
    )
  }
  const reader = new Reader(bytes)
  if (bytes.length < 8 || Buffer.from(bytes.subarray(0, 4)).toString('latin1') !== '\0asm')
    throw reader.malformed('is not WebAssembly: its first four bytes are not "\\0asm"')
  if (bytes[4] !== 1 || bytes[5] !== 0 || bytes[6] !== 0 || bytes[7] !== 0) {
    throw rejected(
      bytes[4] === 0x0d
        ? 'is a component. Build it as a WASI preview 1 command (a core module)'
        : 'has a version other than 1',
    )
  }
  reader.at = 8
  const shape: ModuleShape = { sections: [], memory: undefined, reachesOut: false }
  let types: FunctionType[] = []
  let runs = false
  let last = -1
  while (!reader.isAtEnd) {
    // The format allows any number of custom sections, in three bytes each.
    if (shape.sections.length >= maxSections) throw rejected(`has more than ${maxSections} sections`)
    const begin = reader.at
    const id = reader.byte()
    const length = reader.u32()
    const content = reader.at
    const section = reader.sub(length)
    shape.sections.push({ id, begin, end: reader.at, content })
    if (id === 0) continue
    const position = sectionOrder.indexOf(id)
    if (position < 0) throw rejected(`has a section of unknown kind ${id}`)
    if (position <= last) throw rejected(`has a ${sectionNames[id] ?? ''} section that is repeated or out of order`)
    last = position
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
  if (!runs) throw rejected('exports no function "_start". Build it as a WASI command')
  return shape
}

function rejected(error: string): RuntimeError {
  return new RuntimeError('INVALID_WASM', `Part "wasm": The module ${error}.`)
}

/** Reads the number of entries that follow. */
function countOf(section: Reader, what: keyof typeof maxEntries): number {
  const count = section.u32()
  const max = maxEntries[what]
  if (count > max) throw rejected(`has ${count} ${what}s. At most ${max} are allowed`)
  return count
}

/** Types of the parameters and of the results, by their bytes in the format. */
interface FunctionType {
  parameters: number[]
  results: number[]
}

function readTypes(section: Reader): FunctionType[] {
  const types: FunctionType[] = []
  for (let remaining = countOf(section, 'type'); remaining > 0; remaining--) {
    if (section.byte() !== functionForm)
      throw rejected('uses types of the garbage collection proposal. Only function types are allowed')
    types.push({ parameters: readValueTypes(section), results: readValueTypes(section) })
  }
  return types
}

/** Reads the types of parameters or results. */
function readValueTypes(section: Reader): number[] {
  const types: number[] = []
  const count = section.u32()
  if (count > maxParameters)
    throw rejected(`has a function type of ${count} parameters or results. At most ${maxParameters} are allowed`)
  for (let remaining = count; remaining > 0; remaining--) {
    const type = section.byte()
    if (!valueTypes.has(type))
      throw rejected('uses typed references. Only numbers, vectors, funcref and externref are allowed')
    types.push(type)
  }
  return types
}

const importKinds = ['function', 'table', 'memory', 'global', 'tag']

/** Checks the imports. @returns whether one of them can have effects outside of the executor */
function checkImports(section: Reader, types: readonly FunctionType[]): boolean {
  let reachesOut = false
  for (let remaining = countOf(section, 'import'); remaining > 0; remaining--) {
    const from = section.name()
    const name = section.name()
    const kind = section.byte()
    const shown = JSON.stringify(`${from}.${name}`.slice(0, 200))
    if (kind !== 0)
      throw rejected(
        `imports the ${importKinds[kind] ?? 'unknown kind'} ${shown}. Only functions of ${wasiModule} and ${hostModule} can be imported`,
      )
    const type = types[section.u32()]
    if (from === hostModule) reachesOut = checkHostImport(name, type).reachesOut || reachesOut
    else if (from === wasiModule && isWasiName(name)) checkWasiImport(name, type)
    else {
      throw rejected(
        `imports the function ${shown}, which is not offered. Only functions of ${wasiModule} and ${hostModule} are`,
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
    `imports the function "${wasiModule}.${name}" with another signature: it takes (${parameters}) and returns (${results})`,
  )
}

function checkHostImport(name: string, type: FunctionType | undefined): HostFunction {
  const shown = JSON.stringify(`${hostModule}.${name}`.slice(0, 200))
  const offered = Object.hasOwn(hostFunctions, name) ? hostFunctions[name] : undefined
  if (offered === undefined)
    throw rejected(
      `imports the function ${shown}, which is not offered. ${hostModule} has ${Object.keys(hostFunctions).join(', ')}`,
    )
  const fits = (given: readonly number[] | undefined, count: number) =>
    given?.length === count && given.every((one) => one === i32)
  if (!fits(type?.parameters, offered.parameters) || !fits(type?.results, offered.results)) {
    const results = offered.results === 0 ? 'nothing' : 'one'
    throw rejected(
      `imports the function ${shown} with another signature: ` +
        `it takes ${offered.parameters} i32 and returns ${results}`,
    )
  }
  return offered
}

interface Bounds {
  initial: number
  maximum: number | undefined
}

/** Reads the size of a table or memory. @param what its name in messages */
function readBounds(section: Reader, what: string): Bounds {
  const flags = section.byte()
  if (flags > 7) throw section.malformed('has limits of an unknown kind')
  if ((flags & 2) !== 0) throw rejected(`has a shared ${what}. Threads are not supported`)
  if ((flags & 4) !== 0) throw rejected(`has a ${what} with 64-bit addresses. Only 32-bit addresses are allowed`)
  const initial = section.u32()
  return { initial, maximum: (flags & 1) === 0 ? undefined : section.u32() }
}

function checkTables(section: Reader): void {
  const count = section.u32()
  if (count > maxTables) throw rejected(`has ${count} tables. At most ${maxTables} are allowed`)
  let elements = 0
  for (let remaining = count; remaining > 0; remaining--) {
    if (!referenceTypes.has(section.byte()))
      throw rejected('has a table of typed references, or one with an initial value')
    elements += readBounds(section, 'table').initial
  }
  if (elements > maxTableElements)
    throw rejected(`has tables of ${elements} elements. At most ${maxTableElements} are allowed`)
}

function readMemory(section: Reader): Bounds | undefined {
  const count = section.u32()
  if (count > 1) throw rejected('has more than one memory')
  return count === 0 ? undefined : readBounds(section, 'memory')
}

function exportsStart(section: Reader): boolean {
  let found = false
  for (let remaining = countOf(section, 'export'); remaining > 0; remaining--) {
    const name = section.name()
    const kind = section.byte()
    section.u32()
    if (name === '_start' && kind === 0) found = true
  }
  return found
}

function checkCode(section: Reader): void {
  for (let remaining = section.u32(); remaining > 0; remaining--) {
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
        `has a function of ${size} bytes with ${locals} local variables, which is too large to compile safely`,
      )
  }
}
