// Which modules a deployment rejects, with their errors, and how it changes an accepted module.
import fc from 'fast-check'
import t from 'tap'
import { RuntimeError } from '#tenant-runtime/errors.ts'
import { checkModule, maxModuleBytes } from '#tenant-runtime/functions/module/check-module.ts'
import { importMemory } from '#tenant-runtime/functions/module/cap-memory.ts'
import { u32Bytes } from '#tenant-runtime/functions/module/reader.ts'
import { effort, seed } from '#test/support/effort.ts'
import { bytes, command, constant, drop, grow, i32, magic, name, section, vector } from './support/wasm.ts'

function rejection(module: Uint8Array): RuntimeError | undefined {
  try {
    checkModule(module)
    return undefined
  } catch (error) {
    if (error instanceof RuntimeError) return error
    throw error
  }
}

const types = section(1, vector([[0x60, 0, 0]]))
const start = section(7, vector([[...name('_start'), 0, 0]]))
const gcType = section(1, vector([[0x5f, 0]]))
const tooLarge = new Uint8Array(maxModuleBytes + 1)
tooLarge.set(magic)

const hostile: [what: string, module: Uint8Array, code: string, message: RegExp][] = [
  ['nothing', bytes(), 'INVALID_WASM', /is not WebAssembly/],
  ['a text', Buffer.from('(module)'), 'INVALID_WASM', /is not WebAssembly/],
  ['another version', bytes([...magic.slice(0, 4), 2, 0, 0, 0]), 'INVALID_WASM', /version/],
  ['a component', bytes([...magic.slice(0, 4), 0x0d, 0, 1, 0]), 'INVALID_WASM', /is a component/],
  ['11 MB', tooLarge, 'WASM_TOO_LARGE', /10485760/],
  ['no _start', command({ exportName: 'main' }), 'INVALID_WASM', /"_start"/],
  ['a truncated section', command().subarray(0, -3), 'INVALID_WASM', /ends too early/],
  ['a section beyond the end', bytes(magic, [1, 0xff, 0xff, 0xff, 0xff, 0x0f]), 'INVALID_WASM', /ends too early/],
  ['a number of 40 bits', bytes(magic, [1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]), 'INVALID_WASM', /beyond 32 bits/],
  ['a section of unknown kind', bytes(magic, section(14, [])), 'INVALID_WASM', /unknown kind 14/],
  ['sections out of order', bytes(magic, start, types), 'INVALID_WASM', /out of order/],
  ['a section twice', bytes(magic, types, types), 'INVALID_WASM', /repeated/],
  ['types of the garbage collector', bytes(magic, gcType), 'INVALID_WASM', /garbage collection/],
  ['typed references', bytes(magic, section(1, vector([[0x60, 1, 0x63, 0]]))), 'INVALID_WASM', /typed references/],
  ['shared memory', command({ memory: [3, 1, 2] }), 'INVALID_WASM', /shared memory/],
  ['a memory of 64 bits', command({ memory: [4, 1] }), 'INVALID_WASM', /64-bit/],
  [
    'two memories',
    bytes(
      magic,
      types,
      section(
        5,
        vector([
          [0, 1],
          [0, 1],
        ]),
      ),
    ),
    'INVALID_WASM',
    /more than one memory/,
  ],
  ['a huge table', command({ tables: [[0, ...u32Bytes(10_000_000)]] }), 'INVALID_WASM', /tables of 10000000 elements/],
  ['many tables', command({ tables: Array.from({ length: 17 }, () => [0, 1]) }), 'INVALID_WASM', /17 tables/],
  [
    'tables that are huge together',
    command({ tables: Array.from({ length: 16 }, () => [0, ...u32Bytes(90_000)]) }),
    'INVALID_WASM',
    /tables of/,
  ],
  ['40,000 locals', command({ locals: [[40_000, i32]] }), 'INVALID_WASM', /more than 4096 local/],
  [
    'locals in many groups',
    command({ locals: Array.from({ length: 50 }, () => [100, i32] as const) }),
    'INVALID_WASM',
    /more than 4096 local/,
  ],
  [
    'many locals in a large function',
    command({ locals: [[4_000, i32]], code: Array.from({ length: 70_000 }, () => 0x01) }),
    'INVALID_WASM',
    /too large to compile/,
  ],
  [
    'an import of another module',
    bytes(magic, types, section(2, vector([[...name('env'), ...name('abort'), 0, 0]]))),
    'INVALID_WASM',
    /"env\.abort"/,
  ],
  [
    'an unknown function of WASI',
    command({ imports: ['fd_teleport'] }),
    'INVALID_WASM',
    /"wasi_snapshot_preview1\.fd_teleport"/,
  ],
  [
    'an imported memory',
    bytes(magic, types, section(2, vector([[...name('env'), ...name('memory'), 2, 0, 1]]))),
    'INVALID_WASM',
    /imports the memory "env\.memory"/,
  ],
  [
    "our own memory's name",
    bytes(magic, types, section(2, vector([[...name('tenantry'), ...name('memory'), 2, 0, 1]]))),
    'INVALID_WASM',
    /imports the memory/,
  ],
  [
    'an imported table',
    bytes(magic, types, section(2, vector([[...name('env'), ...name('t'), 1, 0x70, 0, 1]]))),
    'INVALID_WASM',
    /imports the table/,
  ],
  [
    'an imported global',
    bytes(magic, types, section(2, vector([[...name('env'), ...name('g'), 3, i32, 0]]))),
    'INVALID_WASM',
    /imports the global/,
  ],
  [
    'a name that is not UTF-8',
    bytes(magic, types, section(2, vector([[2, 0xff, 0xff, ...name('x'), 0, 0]]))),
    'INVALID_WASM',
    /not UTF-8/,
  ],
]

t.test('Each hostile module is rejected with its error', async (t) => {
  for (const [what, module, code, message] of hostile) {
    const error = rejection(module)
    t.equal(error?.code, code, what)
    t.match(error?.message, message, what)
  }
  t.ok(hostile.length >= 30)
})

t.test('Arbitrary bytes are accepted, or rejected with an error of the runtime', async (t) => {
  const good = command({ code: [...constant(1), ...grow, drop], memory: [0, 1], imports: ['fd_write'] })
  let accepted = 0
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: good.length - 1 }),
      fc.integer({ min: 0, max: 255 }),
      fc.integer({ min: 0, max: good.length }),
      (at, value, cut) => {
        const changed = good.slice(0, cut === 0 ? good.length : cut)
        if (at < changed.length) changed[at] = value
        if (rejection(changed) !== undefined) return
        accepted++
        importMemory(changed, checkModule(changed))
      },
    ),
    { seed, numRuns: effort({ small: 2_000, full: 100_000 }) },
  )
  t.ok(accepted > 0, `${accepted} changed modules were accepted`)
})

t.test('The memory of a module becomes an import, and nothing else changes', async (t) => {
  for (const [what, module] of [
    ['without imports', command({ memory: [0, 3], code: [...constant(0), ...grow, drop] })],
    ['with imports', command({ memory: [1, 3, 9], imports: ['fd_write', 'proc_exit'] })],
    ['with custom sections all over', command({ memory: [0, 3], before: section(0, [...name('note'), 1, 2, 3]) })],
  ] as const) {
    const shape = checkModule(module)
    t.equal(shape.memory?.initial, 3, what)
    const changed = importMemory(module, shape)
    t.equal(checkedAs(changed).memories, 0, `${what}: none of its own`)
    t.match(checkedAs(changed).text, /tenantry.*memory/s, `${what}: one imported`)
  }
  const none = command()
  t.equal(importMemory(none, checkModule(none)), none, 'a module without memory stays unchanged')
})

/** Reads the module without `checkModule`, which rejects the import. */
function checkedAs(module: Uint8Array): { memories: number; text: string } {
  let memories = 0
  for (let at = 8; at < module.length;) {
    const id = module[at++]
    let length = 0
    for (let shift = 0; ; shift += 7) {
      const byte = module[at++] ?? 0
      length += (byte & 0x7f) * 2 ** shift
      if ((byte & 0x80) === 0) break
    }
    if (id === 5) memories++
    at += length
  }
  return { memories, text: Buffer.from(module).toString('latin1') }
}
