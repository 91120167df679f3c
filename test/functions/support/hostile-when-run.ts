// Modules that attack the runtime when it runs them: some never end, others end with an error.
import { u32Bytes } from '#tenant-runtime/functions/module/reader.ts'
import {
  again,
  body,
  call,
  end,
  flood,
  hostLog,
  joined,
  loop,
  oneVector,
  program,
  times,
  wide,
  type Hostile,
} from './hostile-module-parts.ts'
import { command, constant, drop, forever, grow, name, unreachable, vector } from './wasm.ts'

export const hostileWhenRun: readonly Hostile[] = [
  // Modules that never end.
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
    what: 'empty lines of log, for ever',
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
    what: 'writes from a million vectors at once, for ever',
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
  // Modules that end by themselves.
  {
    what: 'output without end',
    wasm: () =>
      flood('fd_write', [...oneVector(60_000), ...constant(1), ...constant(0), ...constant(1), ...constant(16)]),
    ends: 'failed',
    message: /wrote more than 6291456 bytes/,
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
    message: /trapped: Maximum call stack/,
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
    message: /trapped: Maximum call stack/,
  },
  {
    what: 'an uncaught exception',
    wasm: () => program({ sections: { 13: vector([[0, 0]]) }, bodies: [body([], [0x08, 0])] }),
    ends: 'failed',
    message: /trapped/,
  },
  {
    what: 'data beyond its memory',
    wasm: () => program({ sections: { 11: vector([[0, ...constant(65_535), end, 2, 1, 1]]) } }),
    ends: 'failed',
    message: /trapped.*data segment/,
  },
  {
    what: 'an element beyond its table',
    wasm: () => program({ sections: { 4: vector([[0x70, 0, 1]]), 9: vector([[0, ...constant(5), end, 1, 0]]) } }),
    ends: 'failed',
    message: /trapped.*table/,
  },
  { what: 'a trap', wasm: () => command({ code: [unreachable] }), ends: 'failed', message: /trapped: unreachable/ },
  {
    what: 'an exit with the largest code',
    wasm: () => command({ imports: ['proc_exit'], code: [...constant(-1), ...call(0)] }),
    ends: 'failed',
    message: /exited with code/,
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
