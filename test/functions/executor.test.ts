// Modules in executors: what WASI offers them, what stops them, and that the executor serves the next run afterwards.
import t, { type Test } from 'tap'
import { compileSource } from '#examples/functions/compile.ts'
import { dataLimit } from '#tenant-runtime/functions/executor/confinement.ts'
import { Executor, outputLimit, type Module, type RunResult } from '#tenant-runtime/functions/executor/executor.ts'
import { prepareModule } from '#tenant-runtime/functions/module/module-cache.ts'
import { hashOf } from '#tenant-runtime/functions/function-store.ts'
import { readAll } from './support/assemblyscript.ts'
import {
  bytes,
  command,
  constant,
  drop,
  forever,
  grow,
  magic,
  name,
  section,
  unreachable,
  vector,
} from './support/wasm.ts'

const megabyte = 1024 * 1024

function prepared(wasm: Uint8Array): Module {
  return prepareModule(wasm, hashOf(wasm))
}

/** The options of one run, without its module. */
interface RunOptions {
  input?: string
  environment?: string[]
  timeout?: number
  megabytes?: number
}

async function startExecutor(t: Test) {
  const executor = await Executor.start()
  t.teardown(async () => {
    executor.kill()
    await executor.exited
  })
  const run = async (
    module: Module,
    { input = '', environment = [], timeout = 5_000, megabytes = 64 }: RunOptions = {},
  ): Promise<RunResult & { log: string }> => {
    const log: string[] = []
    const onLog = (level: string, text: Buffer) => log.push(`${level}: ${text.toString()}`)
    const result = await executor.run({
      module,
      environment,
      name: 'test',
      input: Buffer.from(input),
      timeoutMilliseconds: timeout,
      memoryPages: megabytes * 16,
      onLog,
    })
    return { ...result, log: log.join('') }
  }
  return { executor, run }
}

t.test('A command has standard streams, arguments, variables, clocks, random numbers and limited memory', async (t) => {
  const source = `${readAll}
    const wish = readAll()
    if (wish == 'arguments') process.stdout.write(process.argv.join(','))
    else if (wish == 'environment') process.stdout.write(process.env.get('COLOUR') + ' ' + process.env.has('PATH').toString())
    else if (wish == 'exit') { process.stdout.write('before'); process.exit(7) }
    else if (wish == 'log') { process.stderr.write('a line of log'); process.stdout.write('done') }
    else if (wish == 'trap') unreachable()
    else if (wish == 'clock') process.stdout.write((process.time() > 1700000000000).toString() + ' ' + (process.hrtime() > 0).toString())
    else if (wish == 'random') process.stdout.write(Math.random().toString())
    else if (wish == 'grow') {
      const keep = new Array<ArrayBuffer>()
      for (let i = 0; i < 200; i++) keep.push(new ArrayBuffer(1048576))
      process.stdout.write('had it all ' + keep.length.toString())
    } else if (wish == 'grow a little') { const keep = new ArrayBuffer(8388608); process.stdout.write(keep.byteLength.toString()) }
    else process.stdout.write(wish)
  `
  const module = prepared(await compileSource(source))
  const { run } = await startExecutor(t)
  const outputOf = async (input: string, options: RunOptions = {}) => {
    const { outcome, output } = await run(module, { input, ...options })
    t.same(outcome, { kind: 'exited', code: 0 }, input)
    return output.toString()
  }
  t.equal(await outputOf('echo: äöü €'), 'echo: äöü €', 'standard input and output')
  t.equal(await outputOf('x'.repeat(100_000)), 'x'.repeat(100_000), 'more than one read')
  t.equal(await outputOf('arguments'), 'test')
  t.equal(
    await outputOf('environment', { environment: ['COLOUR=blue'] }),
    'blue false',
    "its own variables, and none of the host's",
  )
  t.equal(await outputOf('clock'), 'true true')
  t.not(await outputOf('random'), await outputOf('random'))
  t.match(await run(module, { input: 'exit' }), { outcome: { kind: 'exited', code: 7 } })
  t.match(await run(module, { input: 'log' }), { outcome: { kind: 'exited', code: 0 }, log: 'error: a line of log' })
  t.match(await run(module, { input: 'trap' }), { outcome: { kind: 'trapped', message: /unreachable/ } })
  const little = await run(module, { input: 'grow a little' })
  t.ok(little.memoryPeak > 8 * megabyte && little.memoryPeak < 32 * megabyte, `peak ${little.memoryPeak}`)
  const much = await run(module, { input: 'grow', megabytes: 32 })
  t.equal(much.outcome.kind, 'trapped', 'the module gets no memory beyond its limit')
  t.ok(much.memoryPeak <= 32 * megabyte, `peak ${much.memoryPeak}`)
  t.equal(await outputOf('as good as new'), 'as good as new')
})

t.test('An instance begins with clean memory after any other run', async (t) => {
  // The module stores a byte, and exits with the earlier value of that byte.
  const code = [...constant(100), 0x2d, 0, 0, ...constant(100), ...constant(42), 0x3a, 0, 0, 0x10, 0x00]
  const module = prepared(command({ memory: [0, 1], imports: ['proc_exit'], importType: [0x60, 1, 0x7f, 0], code }))
  const { run } = await startExecutor(t)
  for (let round = 0; round < 20; round++) t.match((await run(module)).outcome, { kind: 'exited', code: 0 })
})

t.test('A command that fails or exceeds a limit ends, and the next run succeeds', async (t) => {
  const cases: [what: string, module: Uint8Array, expected: RegExp, options?: RunOptions][] = [
    ['a trap', command({ code: [unreachable] }), /trapped/],
    ['an endless loop', command({ code: forever }), /timeout/, { timeout: 300 }],
    [
      'an endless loop in the start section',
      bytes(
        magic,
        section(1, vector([[0x60, 0, 0]])),
        section(3, vector([[0]])),
        section(7, vector([[...name('_start'), 0, 0]])),
        section(8, [0]),
        section(10, vector([[forever.length + 2, 0, ...forever, 0x0b]])),
      ),
      /timeout/,
      { timeout: 300 },
    ],
    [
      'growing for ever',
      command({ memory: [0, 1], code: [0x03, 0x40, ...constant(100), ...grow, drop, 0x0c, 0, 0x0b] }),
      /timeout/,
      { timeout: 300 },
    ],
    [
      'filling all memory for ever',
      command({
        memory: [0, 1],
        code: [
          ...constant(500),
          ...grow,
          drop,
          0x03,
          0x40,
          ...constant(0),
          ...constant(1),
          ...constant(500 * 65_536),
          0xfc,
          11,
          0,
          0x0c,
          0,
          0x0b,
        ],
      }),
      /timeout/,
      { timeout: 300 },
    ],
    ['recursion without end', command({ code: [0x10, 0x00] }), /trapped/],
    [
      'a sleep beyond its time',
      command({
        memory: [0, 1],
        imports: ['poll_oneoff'],
        importType: [0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f],
        code: [
          // A clock subscription at 0 with 2^40 nanoseconds, relative.
          ...constant(24),
          0x42,
          ...[0x80, 0x80, 0x80, 0x80, 0x80, 0x20],
          0x37,
          3,
          0,
          ...constant(0),
          ...constant(100),
          ...constant(1),
          ...constant(200),
          0x10,
          0,
          drop,
        ],
      }),
      /timeout/,
      { timeout: 300 },
    ],
    [
      'output without end',
      command({
        memory: [0, 1],
        imports: ['fd_write'],
        importType: [0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f],
        code: [
          // One vector of 64 KB at 8, written again and again.
          ...constant(4),
          ...constant(60_000),
          0x36,
          2,
          0,
          0x03,
          0x40,
          ...constant(1),
          ...constant(0),
          ...constant(1),
          ...constant(60_004),
          0x10,
          0,
          drop,
          0x0c,
          0,
          0x0b,
        ],
      }),
      /flooded/,
    ],
    ['an invalid module', command({ code: [0x6a] }), /rejected/],
  ]
  let executor = await Executor.start()
  t.teardown(() => executor.kill())
  const good = prepared(command({ code: [] }))
  for (const [what, wasm, expected, { timeout = 3_000 } = {}] of cases) {
    const run = (module: Module) =>
      executor.run({
        module,
        environment: [],
        name: 'test',
        input: Buffer.alloc(0),
        timeoutMilliseconds: timeout,
        memoryPages: 512,
        onLog: () => undefined,
      })
    const begin = performance.now()
    const { outcome, memoryPeak } = await run(prepared(wasm))
    t.match(
      outcome.kind,
      expected,
      `${what}: ${JSON.stringify(outcome)} after ${(performance.now() - begin).toFixed(0)} ms`,
    )
    if (outcome.kind === 'timeout') {
      await executor.exited
      t.ok(memoryPeak > 0, `${what}: its peak was read before it was killed`)
      t.notOk(executor.isAlive, `${what}: the process is gone`)
      executor = await Executor.start()
    }
    t.same((await run(good)).outcome, { kind: 'exited', code: 0 }, `${what}: the next one runs`)
  }
})

t.test('A WASI call with a bad address returns errno 21, and the executor survives', async (t) => {
  const calls: [string, number][] = [
    ['fd_write', 4],
    ['fd_read', 4],
    ['args_get', 2],
    ['environ_sizes_get', 2],
    ['random_get', 2],
    ['fd_fdstat_get', 2],
  ]
  const { run } = await startExecutor(t)
  for (const [imported, count] of calls) {
    // The result becomes the exit code, through a second import.
    const far = Array.from({ length: count }, (_, index) =>
      constant(imported.startsWith('fd_') && index === 0 ? (imported === 'fd_read' ? 0 : 1) : -8),
    ).flat()
    const parameters = Array.from({ length: count }, () => 0x7f)
    const body = [0, ...far, 0x10, 0, 0x10, 1, 0x0b]
    const module = bytes(
      magic,
      section(
        1,
        vector([
          [0x60, 0, 0],
          [0x60, count, ...parameters, 1, 0x7f],
          [0x60, 1, 0x7f, 0],
        ]),
      ),
      section(
        2,
        vector([
          [...name('wasi_snapshot_preview1'), ...name(imported), 0, 1],
          [...name('wasi_snapshot_preview1'), ...name('proc_exit'), 0, 2],
        ]),
      ),
      section(3, vector([[0]])),
      section(5, vector([[0, 1]])),
      section(7, vector([[...name('_start'), 0, 2]])),
      section(10, vector([[body.length, ...body]])),
    )
    t.same((await run(prepared(module))).outcome, { kind: 'exited', code: 21 }, imported)
  }
})

t.test('An executor has no files, network, processes or environment', async (t) => {
  const { executor } = await startExecutor(t)
  const { readFile } = await import('node:fs/promises')
  const [environment, commandLine] = await Promise.all([
    readFile(`/proc/${executor.pid ?? 0}/environ`, 'utf8'),
    readFile(`/proc/${executor.pid ?? 0}/cmdline`, 'utf8'),
  ])
  t.equal(environment, 'TZ=UTC\0')
  t.match(commandLine, /--permission/)
  t.notMatch(commandLine, /--allow-(net|child-process|worker|addons|wasi|fs-write)/)
  const limits = await readFile(`/proc/${executor.pid ?? 0}/limits`, 'utf8')
  t.match(limits, new RegExp(`Max data size +${dataLimit(128 * megabyte)} `))
  t.match(limits, /Max core file size +0/)
})

t.test('An executor returns output as large as the limit', async (t) => {
  const module = prepared(await compileSource(`process.stdout.write('x'.repeat(${outputLimit}))`))
  const { run } = await startExecutor(t)
  const { outcome, output } = await run(module)
  t.same(outcome, { kind: 'exited', code: 0 })
  t.equal(output.length, outputLimit)
})
