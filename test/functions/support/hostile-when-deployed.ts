// Modules that attack the runtime when it deploys or compiles them.
import { u32Bytes } from '#tenant-runtime/functions/module/reader.ts'
import {
  again,
  block,
  body,
  call,
  end,
  function0,
  joined,
  list,
  long,
  loop,
  program,
  times,
  v128,
  wasiImport,
  wide,
  type Hostile,
} from './hostile-module-parts.ts'
import { command, constant, drop, i32, i64, name, section, vector } from './wasm.ts'

export const hostileWhenDeployed: readonly Hostile[] = [
  // Modules that a deployment rejects by their sections.
  {
    what: 'a table of ten million',
    wasm: () => command({ tables: [[0, ...u32Bytes(10_000_000)]] }),
    ends: 'rejected',
    message: /tables of 10000000 elements/,
  },
  {
    what: 'a hundred tables',
    wasm: () => command({ tables: Array.from({ length: 100 }, () => [0, 1]) }),
    ends: 'rejected',
    message: /100 tables/,
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
    ends: 'rejected',
    message: /more than one memory/,
  },
  {
    what: 'a memory of 4 GB',
    wasm: () => command({ memory: [0, ...u32Bytes(65_536)] }),
    ends: 'rejected',
    message: /4294967296 bytes/,
  },
  {
    what: 'a memory beyond 4 GB',
    wasm: () => command({ memory: [0, ...u32Bytes(65_537)] }),
    ends: 'rejected',
    message: /4295032832 bytes/,
  },
  { what: 'a shared memory', wasm: () => command({ memory: [3, 1, 2] }), ends: 'rejected', message: /shared memory/ },
  { what: 'a memory of 64 bits', wasm: () => command({ memory: [4, 1] }), ends: 'rejected', message: /64-bit/ },
  {
    what: '40,000 local variables in 20,000 loops',
    wasm: () => program({ bodies: [body([[40_000, i32]], times(20_000, loop), times(20_000, [end]))] }),
    ends: 'rejected',
    message: /local variables/,
  },
  {
    what: '800 local variables in 160,000 loops',
    wasm: () => program({ bodies: [body([[800, i32]], times(160_000, loop), times(160_000, [end]))] }),
    ends: 'rejected',
    message: /too large to compile safely/,
  },
  {
    what: 'arrays of the garbage collector',
    wasm: () => program({ sections: { 1: vector([[0x5e, i32, 1]]) } }),
    ends: 'rejected',
    message: /garbage collection/,
  },
  {
    what: 'a group of recursive types',
    wasm: () => program({ sections: { 1: vector([[0x4e, 1, 0x60, 0, 0]]) } }),
    ends: 'rejected',
    message: /garbage collection/,
  },
  {
    what: 'three million types',
    wasm: () => program({ sections: { 1: list(3_000_000, function0) } }),
    ends: 'rejected',
    message: /3000000 types/,
  },
  {
    what: 'a type of nine million parameters',
    wasm: () => program({ sections: { 1: joined([1, 0x60], list(9_000_000, [i32]), [0]) } }),
    ends: 'rejected',
    message: /9000000 parameters/,
  },
  {
    what: 'a count of four billion types',
    wasm: () => program({ sections: { 1: [0xff, 0xff, 0xff, 0xff, 0x0f] } }),
    ends: 'rejected',
    message: /4294967295 types/,
  },
  {
    what: 'nine million functions',
    wasm: () => program({ sections: { 3: list(9_000_000, [0]) } }),
    ends: 'rejected',
    message: /9000000 functions/,
  },
  {
    what: '100,000 imports',
    wasm: () =>
      program({ sections: { 2: list(100_000, [...name('wasi_snapshot_preview1'), ...name('sched_yield'), 0, 0]) } }),
    ends: 'rejected',
    message: /100000 imports/,
  },
  {
    what: '500,000 exports',
    wasm: () => program({ exports: list(500_000, (index) => [...name(String(index)), 0, 0]) }),
    ends: 'rejected',
    message: /500000 exports/,
  },
  {
    what: 'a million globals',
    wasm: () => program({ sections: { 6: list(1_000_000, [i64, 1, 0x42, 0, end]) } }),
    ends: 'rejected',
    message: /1000000 globals/,
  },
  {
    what: '200,000 element segments',
    wasm: () => program({ sections: { 4: vector([[0x70, 0, 1]]), 9: list(200_000, [0, 0x41, 0, end, 1, 0]) } }),
    ends: 'rejected',
    message: /200000 element segments/,
  },
  {
    what: 'a million data segments',
    wasm: () => program({ sections: { 11: list(1_000_000, [0, 0x41, 0, end, 1, 0]) } }),
    ends: 'rejected',
    message: /1000000 data segments/,
  },
  {
    what: 'a branch table of three million',
    wasm: () =>
      program({
        bodies: [body([], block, constant(0), [0x0e, ...u32Bytes(3_000_000)], new Uint8Array(3_000_001), [end])],
      }),
    ends: 'rejected',
    message: /not valid.*table/,
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
    ends: 'rejected',
    message: /not valid.*[Dd]uplicate/,
  },
  {
    what: 'a start function that does not exist',
    wasm: () => program({ sections: { 8: [7] } }),
    ends: 'rejected',
    message: /not valid/,
  },
  {
    what: 'a function without an end',
    wasm: () => program({ bodies: [joined([3, 0, 0x02, 0x40])] }),
    ends: 'rejected',
    message: /not valid/,
  },
  {
    what: 'a memory of WASI',
    wasm: () => wasiImport('memory', [2, 0, 1]),
    ends: 'rejected',
    message: /imports the memory "wasi_snapshot_preview1\.memory"/,
  },
  {
    what: 'a table of WASI',
    wasm: () => wasiImport('fd_write', [1, 0x70, 0, 1]),
    ends: 'rejected',
    message: /imports the table/,
  },
  {
    what: 'a global of WASI',
    wasm: () => wasiImport('fd_write', [3, i32, 0]),
    ends: 'rejected',
    message: /imports the global/,
  },
  {
    what: 'a tag of WASI',
    wasm: () => wasiImport('fd_write', [4, 0, 0]),
    ends: 'rejected',
    message: /imports the tag/,
  },
  {
    what: 'an unknown function of WASI',
    wasm: () => wasiImport('path_become_root', [0, 0]),
    ends: 'rejected',
    message: /path_become_root/,
  },
  {
    what: 'a function by a name that objects have',
    wasm: () => wasiImport('constructor', [0, 0]),
    ends: 'rejected',
    message: /constructor/,
  },
  {
    what: 'a function of WASI with another signature',
    wasm: () => wasiImport('fd_write', [0, 0]),
    ends: 'rejected',
    message: /fd_write" with another signature: it takes \(i32, i32, i32, i32\) and returns \(i32\)/,
  },
  {
    what: 'a function with a vector in its signature',
    wasm: () => command({ imports: ['proc_exit'], importType: [0x60, 1, v128, 0] }),
    ends: 'rejected',
    message: /proc_exit" with another signature/,
  },
  {
    what: 'a function with a type that does not exist',
    wasm: () => wasiImport('fd_write', [0, 99]),
    ends: 'rejected',
    message: /another signature/,
  },
  {
    what: 'a function of another module',
    wasm: () => program({ sections: { 2: vector([[...name('node:fs'), ...name('readFileSync'), 0, 0]]) } }),
    ends: 'rejected',
    message: /"node:fs\.readFileSync"/,
  },
  {
    what: 'an import with a name of nine million bytes',
    wasm: () =>
      program({
        sections: { 2: joined([1], name('x'), u32Bytes(9_000_000), new Uint8Array(9_000_000).fill(97), [0, 0]) },
      }),
    ends: 'rejected',
    message: /imports the function "x\.a+", which/,
  },
  // Modules for which a compiler would use all memory or time.
  {
    what: '2,400,000 nested loops',
    wasm: () => program({ bodies: [body([], times(2_400_000, loop), times(2_400_000, [end]))] }),
    ends: 'rejected',
    message: /to compile/,
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
    ends: 'rejected',
    message: /to compile/,
  },
  {
    what: 'a million nested blocks',
    wasm: () => program({ bodies: [body([], times(1_000_000, block), times(1_000_000, [end]))] }),
    ends: ['failed', 'stopped', 'rejected'],
    message: /exceeded its limits|within its|to compile/,
  },
  {
    what: '4,000 local variables in 20,000 loops',
    wasm: () => program({ bodies: [body([[4_000, i32]], times(20_000, loop), times(20_000, [end]))] }),
    ends: ['failed', 'stopped'],
    message: /exceeded its limits|within its/,
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
    ends: 'rejected',
    message: /more than 1000 sections/,
  },
  {
    what: '900 sections of a name alone',
    wasm: () => program({ tail: times(900, section(0, name('name'))) }),
    ends: 'harmless',
  },
]
