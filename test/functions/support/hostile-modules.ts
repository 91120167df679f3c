// Modules that are made to harm whoever takes, compiles or runs them, with what must come of each.
import { u32Bytes } from '#tenant-runtime/functions/module/reader.ts'
import { command, constant, drop, forever, grow, i32, i64, magic, name, section, unreachable, vector } from './wasm.ts'

export type Ending = 'refused' | 'stopped' | 'failed' | 'harmless'

export interface Hostile {
  what: string
  wasm: () => Uint8Array<ArrayBuffer>
  /**
   * `refused`: at the deployment, with a 4xx; `stopped`: by the deadline; `failed`: a failure of the function alone;
   * `harmless`: it ends as it would anywhere.
   */
  ends: Ending | readonly Ending[]
  /** Of the refusal or failure. */
  says?: RegExp
  input?: Buffer
}

type Bytes = readonly number[] | Uint8Array

const function0: readonly number[] = [0x60, 0, 0]
const v128 = 0x7b
const loop = [0x03, 0x40]
const block = [0x02, 0x40]
const end = 0x0b
const again = [0x0c, 0, end]
const call = (index: number) => [0x10, ...u32Bytes(index)]

function joined(...parts: Bytes[]): Uint8Array<ArrayBuffer> {
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

function times(count: number, piece: Bytes | ((index: number) => Bytes)): Uint8Array {
  return together(Array.from({ length: count }, (_, index) => (typeof piece === 'function' ? piece(index) : piece)))
}

function long(id: number, ...parts: Bytes[]): Uint8Array {
  const content = joined(...parts)
  return joined([id, ...u32Bytes(content.length)], content)
}

/** `count` entries that are the same, or each its own. */
function list(count: number, piece: Bytes | ((index: number) => Bytes)): Uint8Array {
  return joined(u32Bytes(count), times(count, piece))
}

function body(locals: readonly (readonly [count: number, type: number])[], ...code: Bytes[]): Uint8Array {
  const content = joined(vector(locals.map(([count, type]) => [...u32Bytes(count), type])), ...code, [end])
  return joined(u32Bytes(content.length), content)
}

interface Parts {
  /** Beside the first, which takes and gives nothing. */
  types?: readonly (readonly number[])[]
  /** Content of each section that is there. */
  sections?: Partial<Record<number, Bytes>>
  /** The first is `_start`. */
  bodies?: readonly Uint8Array[]
  exports?: Bytes
  tail?: Bytes
}

function program({
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

/** Calls a function of WASI again and again. */
function flood(imported: string, code: readonly number[]): Uint8Array<ArrayBuffer> {
  return command({ memory: [0, 16], imports: [imported], code: [...loop, ...code, ...call(0), drop, ...again] })
}

const wide = [
  0x60,
  ...vector(Array.from({ length: 1_000 }, () => [i32])),
  ...vector(Array.from({ length: 1_000 }, () => [i32])),
]
const store = (at: number, value: number) => [...constant(at), ...constant(value), 0x36, 2, 0]
/** One vector of `length` bytes at 1,000 lies at 0. */
const oneVector = (length: number) => [...store(0, 1_000), ...store(4, length)]
const wasiImport = (imported: string, kind: readonly number[]) =>
  program({ sections: { 2: vector([[...name('wasi_snapshot_preview1'), ...name(imported), ...kind]]) } })
const hostLog = [0x60, 3, i32, i32, i32, 0]

export const hostile: readonly Hostile[] = [
  // What a deployment refuses by its sections.
  {
    what: 'a table of ten million',
    wasm: () => command({ tables: [[0, ...u32Bytes(10_000_000)]] }),
    ends: 'refused',
    says: /tables of 10000000 elements/,
  },
  {
    what: 'a hundred tables',
    wasm: () => command({ tables: Array.from({ length: 100 }, () => [0, 1]) }),
    ends: 'refused',
    says: /100 tables/,
  },
  {
    what: 'two memories',
    wasm: () =>
      program({
        sections: {
          5: vector([
            [0, 1],
            [0, 1],
          ]),
        },
      }),
    ends: 'refused',
    says: /more than one memory/,
  },
  {
    what: 'a memory of 4 GB',
    wasm: () => command({ memory: [0, ...u32Bytes(65_536)] }),
    ends: 'refused',
    says: /4294967296 bytes/,
  },
  {
    what: 'a memory beyond 4 GB',
    wasm: () => command({ memory: [0, ...u32Bytes(65_537)] }),
    ends: 'refused',
    says: /4295032832 bytes/,
  },
  { what: 'a shared memory', wasm: () => command({ memory: [3, 1, 2] }), ends: 'refused', says: /shared memory/ },
  { what: 'a memory of 64 bits', wasm: () => command({ memory: [4, 1] }), ends: 'refused', says: /64-bit/ },
  {
    what: '40,000 local variables in 20,000 loops',
    wasm: () => program({ bodies: [body([[40_000, i32]], times(20_000, loop), times(20_000, [end]))] }),
    ends: 'refused',
    says: /local variables/,
  },
  {
    what: '800 local variables in 160,000 loops',
    wasm: () => program({ bodies: [body([[800, i32]], times(160_000, loop), times(160_000, [end]))] }),
    ends: 'refused',
    says: /too large to compile safely/,
  },
  {
    what: 'arrays of the garbage collector',
    wasm: () => program({ sections: { 1: vector([[0x5e, i32, 1]]) } }),
    ends: 'refused',
    says: /garbage collection/,
  },
  {
    what: 'a group of recursive types',
    wasm: () => program({ sections: { 1: vector([[0x4e, 1, 0x60, 0, 0]]) } }),
    ends: 'refused',
    says: /garbage collection/,
  },
  {
    what: 'three million types',
    wasm: () => program({ sections: { 1: list(3_000_000, function0) } }),
    ends: 'refused',
    says: /3000000 types/,
  },
  {
    what: 'a type of nine million parameters',
    wasm: () => program({ sections: { 1: joined([1, 0x60], list(9_000_000, [i32]), [0]) } }),
    ends: 'refused',
    says: /9000000 parameters/,
  },
  {
    what: 'types that are said to be four billion',
    wasm: () => program({ sections: { 1: [0xff, 0xff, 0xff, 0xff, 0x0f] } }),
    ends: 'refused',
    says: /4294967295 types/,
  },
  {
    what: 'nine million functions',
    wasm: () => program({ sections: { 3: list(9_000_000, [0]) } }),
    ends: 'refused',
    says: /9000000 functions/,
  },
  {
    what: '100,000 imports',
    wasm: () =>
      program({ sections: { 2: list(100_000, [...name('wasi_snapshot_preview1'), ...name('sched_yield'), 0, 0]) } }),
    ends: 'refused',
    says: /100000 imports/,
  },
  {
    what: '500,000 exports',
    wasm: () => program({ exports: list(500_000, (index) => [...name(String(index)), 0, 0]) }),
    ends: 'refused',
    says: /500000 exports/,
  },
  {
    what: 'a million globals',
    wasm: () => program({ sections: { 6: list(1_000_000, [i64, 1, 0x42, 0, end]) } }),
    ends: 'refused',
    says: /1000000 globals/,
  },
  {
    what: '200,000 element segments',
    wasm: () => program({ sections: { 4: vector([[0x70, 0, 1]]), 9: list(200_000, [0, 0x41, 0, end, 1, 0]) } }),
    ends: 'refused',
    says: /200000 element segments/,
  },
  {
    what: 'a million data segments',
    wasm: () => program({ sections: { 11: list(1_000_000, [0, 0x41, 0, end, 1, 0]) } }),
    ends: 'refused',
    says: /1000000 data segments/,
  },
  {
    what: 'a branch table of three million',
    wasm: () =>
      program({
        bodies: [body([], block, constant(0), [0x0e, ...u32Bytes(3_000_000)], new Uint8Array(3_000_001), [end])],
      }),
    ends: 'refused',
    says: /not valid.*table/,
  },
  {
    what: 'one export twice',
    wasm: () =>
      program({
        exports: vector([
          [...name('_start'), 0, 0],
          [...name('_start'), 0, 0],
        ]),
      }),
    ends: 'refused',
    says: /not valid.*[Dd]uplicate/,
  },
  {
    what: 'a start function that is not there',
    wasm: () => program({ sections: { 8: [7] } }),
    ends: 'refused',
    says: /not valid/,
  },
  {
    what: 'a function without an end',
    wasm: () => program({ bodies: [joined([3, 0, 0x02, 0x40])] }),
    ends: 'refused',
    says: /not valid/,
  },
  {
    what: 'a memory of WASI',
    wasm: () => wasiImport('memory', [2, 0, 1]),
    ends: 'refused',
    says: /imports the memory "wasi_snapshot_preview1\.memory"/,
  },
  {
    what: 'a table of WASI',
    wasm: () => wasiImport('fd_write', [1, 0x70, 0, 1]),
    ends: 'refused',
    says: /imports the table/,
  },
  {
    what: 'a global of WASI',
    wasm: () => wasiImport('fd_write', [3, i32, 0]),
    ends: 'refused',
    says: /imports the global/,
  },
  { what: 'a tag of WASI', wasm: () => wasiImport('fd_write', [4, 0, 0]), ends: 'refused', says: /imports the tag/ },
  {
    what: 'a function of WASI that there is none of',
    wasm: () => wasiImport('path_become_root', [0, 0]),
    ends: 'refused',
    says: /path_become_root/,
  },
  {
    what: 'a function by a name that objects have',
    wasm: () => wasiImport('constructor', [0, 0]),
    ends: 'refused',
    says: /constructor/,
  },
  {
    what: 'a function of WASI with another signature',
    wasm: () => wasiImport('fd_write', [0, 0]),
    ends: 'refused',
    says: /fd_write" with another signature: it takes \(i32, i32, i32, i32\) and gives \(i32\)/,
  },
  {
    what: 'one with a vector in its signature',
    wasm: () => command({ imports: ['proc_exit'], importType: [0x60, 1, v128, 0] }),
    ends: 'refused',
    says: /proc_exit" with another signature/,
  },
  {
    what: 'one with a type that is not there',
    wasm: () => wasiImport('fd_write', [0, 99]),
    ends: 'refused',
    says: /another signature/,
  },
  {
    what: 'a function of another module',
    wasm: () => program({ sections: { 2: vector([[...name('node:fs'), ...name('readFileSync'), 0, 0]]) } }),
    ends: 'refused',
    says: /"node:fs\.readFileSync"/,
  },
  {
    what: 'an import with a name of nine million bytes',
    wasm: () =>
      program({
        sections: { 2: joined([1], name('x'), u32Bytes(9_000_000), new Uint8Array(9_000_000).fill(97), [0, 0]) },
      }),
    ends: 'refused',
    says: /imports the function "x\.a+", which/,
  },
  // What a compiler would take all memory or time for.
  {
    what: '2,400,000 nested loops',
    wasm: () => program({ bodies: [body([], times(2_400_000, loop), times(2_400_000, [end]))] }),
    ends: 'refused',
    says: /to compile/,
  },
  {
    what: '200,000 nested blocks that pass a thousand values',
    wasm: () =>
      program({
        types: [wide],
        bodies: [
          body([], times(1_000, constant(0)), times(200_000, [0x02, 1]), times(200_000, [end]), times(1_000, [drop])),
        ],
      }),
    ends: 'refused',
    says: /to compile/,
  },
  {
    what: 'a million nested blocks',
    wasm: () => program({ bodies: [body([], times(1_000_000, block), times(1_000_000, [end]))] }),
    ends: ['failed', 'stopped', 'refused'],
    says: /took more than it may have|within its|to compile/,
  },
  {
    what: '4,000 local variables in 20,000 loops',
    wasm: () => program({ bodies: [body([[4_000, i32]], times(20_000, loop), times(20_000, [end]))] }),
    ends: ['failed', 'stopped'],
    says: /took more than it may have|within its/,
  },
  {
    what: 'a function of seven megabytes',
    wasm: () => program({ bodies: [body([[1, i32]], times(1_000_000, [0x20, 0, 0x41, 1, 0x6a, 0x21, 0]))] }),
    ends: 'harmless',
  },
  {
    what: 'two million values on the stack',
    wasm: () => program({ bodies: [body([], times(2_000_000, constant(0)), times(2_000_000, [drop]))] }),
    ends: 'harmless',
  },
  {
    what: '35 branch tables of 65,520',
    wasm: () =>
      program({
        bodies: [
          body([], times(35, joined(block, constant(0), [0x0e, ...u32Bytes(65_520)], new Uint8Array(65_521), [end]))),
        ],
      }),
    ends: 'harmless',
  },
  {
    what: 'vectors in a function of three megabytes',
    wasm: () => program({ bodies: [body([[1, v128]], times(300_000, [0x20, 0, 0x20, 0, 0xfd, 0xce, 1, 0x21, 0]))] }),
    ends: 'harmless',
  },
  {
    what: '30,000 functions, each called again and again',
    wasm: () =>
      program({
        bodies: [
          body(
            [],
            loop,
            times(30_000, (index) => call(index + 1)),
            again,
          ),
          ...Array.from({ length: 30_000 }, () => body([[20, i32]], times(30, [0x20, 0, 0x20, 1, 0x6a, 0x21, 2]))),
        ],
      }),
    ends: 'stopped',
  },
  {
    what: '30,000 nested loops, compiled again for speed',
    wasm: () =>
      program({
        bodies: [
          body([], loop, call(1), again),
          body([[10, i32]], times(30_000, [...loop, 0x20, 0, 0x0d, 0]), times(30_000, [end])),
        ],
      }),
    ends: 'stopped',
  },
  {
    what: 'names of nine megabytes',
    wasm: () =>
      program({
        tail: long(
          0,
          name('name'),
          [1],
          u32Bytes(9_000_007),
          [1, 0],
          u32Bytes(9_000_000),
          new Uint8Array(9_000_000).fill(97),
        ),
      }),
    ends: 'harmless',
  },
  {
    what: 'three million sections of nothing',
    wasm: () => program({ tail: times(3_000_000, [0, 1, 0]) }),
    ends: 'refused',
    says: /more than 1000 sections/,
  },
  {
    what: '900 sections of a name alone',
    wasm: () => program({ tail: times(900, section(0, name('name'))) }),
    ends: 'harmless',
  },
  // What never ends.
  { what: 'an endless loop', wasm: () => command({ code: forever }), ends: 'stopped' },
  {
    what: 'an endless start',
    wasm: () => program({ bodies: [body([], forever)], sections: { 8: [0] } }),
    ends: 'stopped',
  },
  {
    what: 'filling all memory for ever',
    wasm: () =>
      command({
        memory: [0, 1],
        code: [
          ...constant(255),
          ...grow,
          drop,
          ...loop,
          ...constant(0),
          ...constant(1),
          ...constant(256 * 65_536),
          0xfc,
          11,
          0,
          ...again,
        ],
      }),
    ends: 'stopped',
  },
  {
    what: 'copying all memory for ever',
    wasm: () =>
      command({
        memory: [0, ...u32Bytes(256)],
        code: [...loop, ...constant(0), ...constant(1), ...constant(255 * 65_536), 0xfc, 10, 0, 0, ...again],
      }),
    ends: 'stopped',
  },
  {
    what: 'growing for ever',
    wasm: () => command({ memory: [0, 1], code: [...loop, ...constant(1), ...grow, drop, ...again] }),
    ends: 'stopped',
  },
  {
    what: 'tables that grow for ever',
    wasm: () =>
      command({
        tables: Array.from({ length: 16 }, () => [0, 0]),
        code: [
          ...loop,
          ...Array.from({ length: 16 }, (_, index) => [0xd0, 0x70, ...constant(9_000), 0xfc, 0x0f, index, drop]).flat(),
          ...again,
        ],
      }),
    ends: 'stopped',
  },
  { what: 'tail calls for ever', wasm: () => program({ bodies: [body([], [0x12, 0])] }), ends: 'stopped' },
  {
    what: 'exceptions thrown and caught for ever',
    wasm: () =>
      program({
        sections: { 13: vector([[0, 0]]) },
        bodies: [body([], loop, [0x02, 0x40, 0x1f, 0x40, 1, 0, 0, 0, 0x08, 0, end, end], again)],
      }),
    ends: 'stopped',
  },
  {
    what: 'a sleep of a year',
    wasm: () =>
      flood('poll_oneoff', [
        ...constant(24),
        0x42,
        ...[0x80, 0x80, 0x90, 0xfe, 0xd6, 0xf4, 0x07],
        0x37,
        3,
        0,
        ...constant(0),
        ...constant(2_000),
        ...constant(1),
        ...constant(3_000),
      ]),
    ends: 'stopped',
  },
  {
    what: 'sleeps of nothing for ever',
    wasm: () => flood('poll_oneoff', [...constant(0), ...constant(2_000), ...constant(1), ...constant(3_000)]),
    ends: 'stopped',
  },
  {
    what: 'waiting for four billion things, for ever',
    wasm: () => flood('poll_oneoff', [...constant(0), ...constant(0), ...constant(-1), ...constant(0)]),
    ends: 'stopped',
  },
  {
    what: 'random numbers all over the memory, for ever',
    wasm: () => flood('random_get', [...constant(0), ...constant(16 * 65_536)]),
    ends: 'stopped',
  },
  {
    what: 'random numbers beyond the memory, for ever',
    wasm: () => flood('random_get', [...constant(0), ...constant(-1)]),
    ends: 'stopped',
  },
  {
    what: 'arguments over and over its memory',
    wasm: () => flood('args_get', [...constant(1_048_570), ...constant(0)]),
    ends: 'stopped',
  },
  {
    what: 'its environment over itself',
    wasm: () => flood('environ_get', [...constant(0), ...constant(0)]),
    ends: 'stopped',
  },
  {
    what: 'single bytes of log for ever',
    wasm: () => flood('fd_write', [...oneVector(1), ...constant(2), ...constant(0), ...constant(1), ...constant(16)]),
    ends: 'stopped',
  },
  {
    what: 'a megabyte of log at a time, for ever',
    wasm: () =>
      flood('fd_write', [...oneVector(1_000_000), ...constant(2), ...constant(0), ...constant(1), ...constant(16)]),
    ends: 'stopped',
  },
  {
    what: 'lines of log that are empty, for ever',
    wasm: () =>
      flood('fd_write', [
        ...oneVector(1),
        ...constant(1_000),
        ...constant(10),
        0x3a,
        0,
        0,
        ...constant(2),
        ...constant(0),
        ...constant(1),
        ...constant(16),
      ]),
    ends: 'stopped',
  },
  {
    what: 'writes out of a million places at once, for ever',
    wasm: () => flood('fd_write', [...constant(2), ...constant(0), ...constant(1_000_000), ...constant(16)]),
    ends: 'stopped',
  },
  {
    what: 'calls of the host for ever',
    wasm: () =>
      program({
        types: [hostLog],
        sections: { 2: vector([[...name('tenantry'), ...name('log'), 0, 1]]) },
        exports: vector([[...name('_start'), 0, 1]]),
        bodies: [body([], loop, constant(1), constant(0), constant(1_000), call(0), again)],
      }),
    ends: 'stopped',
  },
  // What ends by itself, and badly.
  {
    what: 'output without end',
    wasm: () =>
      flood('fd_write', [...oneVector(60_000), ...constant(1), ...constant(0), ...constant(1), ...constant(16)]),
    ends: 'failed',
    says: /wrote more than 6291456 bytes/,
  },
  {
    what: 'output of single bytes without end',
    wasm: () => flood('fd_write', [...oneVector(1), ...constant(1), ...constant(0), ...constant(1), ...constant(16)]),
    ends: ['stopped', 'failed'],
  },
  {
    what: 'recursion without end',
    wasm: () => command({ code: call(0) }),
    ends: 'failed',
    says: /trapped: Maximum call stack/,
  },
  {
    what: 'recursion with a thousand parameters',
    wasm: () =>
      program({
        types: [wide],
        sections: { 3: vector([[0], [1]]) },
        bodies: [
          body([], times(1_000, constant(0)), call(1), times(1_000, [drop])),
          body(
            [],
            times(1_000, (index) => [0x20, ...u32Bytes(index)]),
            call(1),
          ),
        ],
      }),
    ends: 'failed',
    says: /trapped: Maximum call stack/,
  },
  {
    what: 'an exception that nobody catches',
    wasm: () => program({ sections: { 13: vector([[0, 0]]) }, bodies: [body([], [0x08, 0])] }),
    ends: 'failed',
    says: /trapped/,
  },
  {
    what: 'data beyond its memory',
    wasm: () => program({ sections: { 11: vector([[0, ...constant(65_535), end, 2, 1, 1]]) } }),
    ends: 'failed',
    says: /trapped.*data segment/,
  },
  {
    what: 'an element beyond its table',
    wasm: () => program({ sections: { 4: vector([[0x70, 0, 1]]), 9: vector([[0, ...constant(5), end, 1, 0]]) } }),
    ends: 'failed',
    says: /trapped.*table/,
  },
  { what: 'a trap', wasm: () => command({ code: [unreachable] }), ends: 'failed', says: /trapped: unreachable/ },
  {
    what: 'an exit with the largest code',
    wasm: () => command({ imports: ['proc_exit'], code: [...constant(-1), ...call(0)] }),
    ends: 'failed',
    says: /exited with code/,
  },
  {
    what: 'a signal to itself',
    wasm: () => command({ imports: ['proc_raise'], code: [...constant(9), ...call(0), drop] }),
    ends: 'harmless',
  },
  {
    what: 'nine megabytes of data',
    wasm: () =>
      program({
        sections: {
          5: vector([[0, ...u32Bytes(200)]]),
          11: joined([1, 0, ...constant(0), end], u32Bytes(9_000_000), new Uint8Array(9_000_000)),
        },
      }),
    ends: 'harmless',
  },
  {
    what: 'a large input that it does not read',
    wasm: () => command(),
    input: Buffer.alloc(6_000_000, 'x'),
    ends: 'harmless',
  },
]
