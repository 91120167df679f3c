// Calls from an executor's process: which reach the runtime, what the runtime returns, and that a module cannot misuse
// them.
import t, { type Test } from 'tap'
import { compileSource } from '#examples/functions/compile.ts'
import { Executor, type Run } from '#tenant-runtime/functions/executor/executor.ts'
import { callLimit } from '#tenant-runtime/functions/executor/protocol.ts'
import { RunCalls, type HostResponse, type HostCall } from '#tenant-runtime/functions/executor/run-calls.ts'
import { hashOf } from '#tenant-runtime/functions/function-store.ts'
import { hostFunctions } from '#tenant-runtime/functions/module/abi.ts'
import { checkModule } from '#tenant-runtime/functions/module/check-module.ts'
import { prepareModule } from '#tenant-runtime/functions/module/module-cache.ts'
import { command, constant, drop, i32, unreachable } from './support/wasm.ts'

const source = `
import { env, fetched, get, log, Level, put, query, remove, tryGet, tryQuery } from './tenantry.as'
const wish = process.argv[0]
if (env('WISH') == 'all') {
  log(Level.Info, 'it begins')
  process.stdout.write(query('select 1', '[1]') + '|')
  process.stdout.write(String.UTF8.decode(get('b/p ä')) + '|')
  process.stdout.write(put('b/q', 'text/plain', String.UTF8.encode('bytes')) + '|')
  remove('b/r')
  const response = fetched('{"url":"https://example.com"}', String.UTF8.encode('body'))
  process.stdout.write(response.head + '|' + String.UTF8.decode(response.body))
} else if (env('WISH') == 'handled') {
  const failed = tryGet('b/none')
  process.stdout.write(failed.ok.toString() + ' ' + failed.text)
} else if (env('WISH') == 'unhandled') query('select')
else if (env('WISH') == 'variables') process.stdout.write(env('EMPTY', 'none') + '|' + env('MISSING', 'none') + '|' + env('COLOUR'))
else if (env('WISH') == 'large') {
  const stored = put('b/p', 't/t', new ArrayBuffer(${callLimit} - 6))
  process.stdout.write(stored + ' ' + get('large').byteLength.toString())
} else if (env('WISH') == 'too large') process.stdout.write(tryQuery('x'.repeat(${callLimit} + 1)).text)
else if (env('WISH') == 'many') for (let n = 0; n < 1000; n++) query('select ' + n.toString())
`

/** Returns the options of a run, without its module. */
function runOf(wish: string, onCall: NonNullable<Run['onCall']>, more: Partial<Run> = {}) {
  return {
    environment: [`WISH=${wish}`, 'EMPTY=', 'COLOUR=blue=green'],
    name: 'test',
    input: Buffer.alloc(0),
    timeoutMilliseconds: 10_000,
    memoryPages: 1_024,
    onLog: () => undefined,
    onCall,
    ...more,
  }
}

async function start(t: Test): Promise<Executor> {
  const executor = await Executor.start()
  t.teardown(async () => {
    executor.kill()
    await executor.exited
  })
  return executor
}

const ok = (text: string): HostResponse => ({ ok: true, bytes: Buffer.from(text) })

t.test('Calls of the host and their responses', async (t) => {
  const wasm = await compileSource(source)
  const module = prepareModule(wasm, hashOf(wasm))
  const executor = await start(t)

  t.test('The runtime receives each call with its parts, and the module receives the response', async (t) => {
    const calls: unknown[] = []
    const log: string[] = []
    const { outcome, output } = await executor.run({
      module,
      ...runOf(
        'all',
        async ({ name, parts }) => {
          calls.push([name, ...parts.map(String)])
          return ok(name === 'http_fetch' ? '{"status":200}\nthe\nbody' : name)
        },
        { onLog: (level, text) => log.push(`${level}: ${text.toString()}`) },
      ),
    })
    t.same(outcome, { kind: 'exited', code: 0 })
    t.same(calls, [
      ['db_query', 'select 1', '[1]'],
      ['storage_get', 'b/p ä'],
      ['storage_put', 'b/q', 'text/plain', 'bytes'],
      ['storage_delete', 'b/r'],
      ['http_fetch', '{"url":"https://example.com"}', 'body'],
    ])
    t.equal(output.toString(), 'db_query|storage_get|storage_put|{"status":200}|the\nbody')
    t.same(log, ['info: it begins\n'])
  })

  t.test('A module can handle the error of a call, and traps if it does not', async (t) => {
    const fail = async (): Promise<HostResponse> => ({ ok: false, bytes: Buffer.from('{"code":"NO"}') })
    const handled = await executor.run({ module, ...runOf('handled', fail) })
    t.equal(handled.output.toString(), 'false {"code":"NO"}')
    let log = ''
    const unhandled = await executor.run({
      module,
      ...runOf('unhandled', fail, { onLog: (_level, text) => (log += text.toString()) }),
    })
    t.equal(unhandled.outcome.kind, 'trapped')
    t.match(log, 'db_query: {"code":"NO"}')
    const thrown = await executor.run({ module, ...runOf('handled', () => Promise.reject(new Error('a secret'))) })
    t.equal(thrown.output.toString(), 'false {"code":"INTERNAL","message":"The host call failed unexpectedly."}')
  })

  t.test('The executor itself returns the variables of the environment', async (t) => {
    const { output } = await executor.run({
      module,
      ...runOf('variables', () => Promise.reject(new Error('an unexpected call'))),
    })
    t.equal(output.toString(), '|none|blue=green')
  })

  t.test('A call and its response carry up to six megabytes', async (t) => {
    const { output } = await executor.run({
      module,
      ...runOf('large', async ({ name, parts }) =>
        name === 'storage_put'
          ? ok(String(parts.reduce((sum, { length }) => sum + length, 0)))
          : { ok: true, bytes: Buffer.alloc(callLimit) },
      ),
    })
    t.equal(output.toString(), `${callLimit} ${callLimit}`)
    const tooLarge = await executor.run({
      module,
      ...runOf('too large', () => Promise.reject(new Error('an unexpected call'))),
    })
    t.match(tooLarge.output.toString(), /"CALL_TOO_LARGE"/)
  })

  t.test('One run makes a thousand calls', async (t) => {
    let calls = 0
    const { outcome } = await executor.run({
      module,
      ...runOf('many', async ({ parts }) => {
        t.equal(String(parts[0]), `select ${calls++}`)
        return ok('')
      }),
    })
    t.same(outcome, { kind: 'exited', code: 0 })
    t.equal(calls, 1_000)
  })

  t.test("The runtime aborts an executor's call at the deadline", async (t) => {
    const doomed = await start(t)
    const given = Promise.withResolvers<AbortSignal>()
    const { outcome } = await doomed.run({
      module,
      ...runOf(
        'many',
        (_call, signal) => {
          given.resolve(signal)
          return new Promise(() => undefined)
        },
        { timeoutMilliseconds: 300 },
      ),
    })
    t.equal(outcome.kind, 'timeout')
    t.ok((await given.promise).aborted)
    t.notOk(doomed.isAlive)
  })

  t.test("The runtime aborts an executor's call when the executor dies", async (t) => {
    const doomed = await start(t)
    const signals: AbortSignal[] = []
    const { outcome } = await doomed.run({
      module,
      ...runOf('many', (_call, signal) => {
        signals.push(signal)
        process.kill(doomed.pid ?? 0, 'SIGKILL')
        return new Promise(() => undefined)
      }),
    })
    t.equal(outcome.kind, 'died')
    t.ok(signals[0]?.aborted)
  })

  t.test('A call returns NOT_OFFERED where the runtime offers no calls', async (t) => {
    const { onCall: _, ...run } = runOf('handled', async () => ok(''))
    t.match((await executor.run({ module, ...run })).output.toString(), /NOT_OFFERED/)
  })
})

const functionType = (parameters: number, results: number) => [
  0x60,
  parameters,
  ...Array<number>(parameters).fill(i32),
  results,
  ...Array<number>(results).fill(i32),
]

t.test('A call with an address outside of the memory returns an error to the module', async (t) => {
  const executor = await start(t)
  const received: HostCall[] = []
  const runs = async (name: string, given: number[], wanted: (result: number[]) => number[]) => {
    const { parameters, results } = hostFunctions[name] ?? { parameters: 0, results: 0 }
    const call = [...given.flatMap(constant), 0x10, 0]
    const wasm = command({
      memory: [0, 1],
      importModule: 'tenantry',
      imports: [name],
      importType: functionType(parameters, results),
      code: wanted(call),
    })
    const { outcome } = await executor.run({
      module: prepareModule(wasm, hashOf(wasm)),
      ...runOf('', async (call) => {
        received.push(call)
        return ok('')
      }),
    })
    return outcome
  }
  /** Traps unless the result is negative. */
  const negative = (call: number[]) => [...call, ...constant(0), 0x4e, 0x04, 0x40, unreachable, 0x0b]
  const bad = [
    [65_536, 1],
    [65_535, 2],
    [-1, 1],
    [0, -1],
    [0, 65_537],
    [0x7fff_ffff, 0x7fff_ffff],
    [-1, -1],
  ]
  for (const [name, { parameters, results }] of Object.entries(hostFunctions)) {
    if (results === 0) continue
    for (const pair of bad) {
      for (let at = 0; at < parameters; at += 2) {
        const given = Array.from({ length: parameters }, (_, n) => (n >= at && n < at + 2 ? (pair[n - at] ?? 0) : 0))
        // A call of `take` for no bytes copies nothing.
        if (name === 'take' && (pair[0] ?? 0) >>> 0 <= 65_536) continue
        t.same(await runs(name, given, negative), { kind: 'exited', code: 0 }, `${name} ${given.join(' ')}`)
      }
    }
  }
  t.same(received, [], 'the runtime receives no call')
  t.match(await runs('log', [1, 65_536, 1], (call) => call), { kind: 'trapped', message: /outside of the memory/ })
  t.same(
    await runs('log', [99, 0, 10], (call) => call),
    { kind: 'exited', code: 0 },
    'a level above the last is the last',
  )
  t.same(
    await runs('db_query', [0, 0, 65_536, 0], (call) => [...call, drop]),
    { kind: 'exited', code: 0 },
    'an empty range at the end of the memory is valid',
  )
})

t.test('A module may import only the functions of the host, with their signatures', async (t) => {
  const importing = (name: string, type: number[]) => () =>
    checkModule(command({ importModule: 'tenantry', imports: [name], importType: type }))
  for (const [name, { parameters, results }] of Object.entries(hostFunctions)) {
    t.doesNotThrow(importing(name, functionType(parameters, results)), name)
    t.throws(importing(name, functionType(parameters + 1, results)), {
      code: 'INVALID_WASM',
      message: new RegExp(`"tenantry.${name}" with another signature: it takes ${parameters} i32`),
    })
    t.throws(importing(name, functionType(parameters, 1 - results)), {
      code: 'INVALID_WASM',
      message: /another signature/,
    })
    t.throws(
      importing(name, [
        0x60,
        parameters,
        ...Array<number>(parameters).fill(0x7e),
        results,
        ...Array<number>(results).fill(i32),
      ]),
      { code: 'INVALID_WASM', message: /another signature/ },
    )
  }
  for (const name of ['memory', 'db_execute', 'constructor', '__proto__', '']) {
    t.throws(
      importing(name, functionType(0, 0)),
      { code: 'INVALID_WASM', message: /which is not offered\. tenantry has log, env/ },
      name,
    )
  }
})

t.test('The runtime detects an executor that violates the protocol', async (t) => {
  const response = Promise.withResolvers<HostResponse>()
  const sent: string[] = []
  const start = (result: () => Promise<HostResponse> = () => response.promise) =>
    new RunCalls(result, ({ bytes }) => sent.push(Buffer.from(bytes).toString()))
  const call = (head: object = {}, bytes = 'ab') =>
    [
      { kind: 'call', name: 'storage_get', parts: [2], ...head } as Parameters<RunCalls['take']>[0],
      Buffer.from(bytes),
    ] as const
  const bad: [what: string, head: object, bytes?: string][] = [
    ['an unknown name', { name: 'exec' }],
    ['a name that every object has', { name: 'constructor' }],
    ['parts shorter than the bytes', { parts: [1] }],
    ['parts longer than the bytes', { parts: [3] }],
    ['a negative part', { parts: [3, -1] }],
    ['fractional parts', { parts: [1.5, 0.5] }],
    ['parts that are not numbers', { parts: ['2'] }],
    ['no parts', { parts: [] }],
    ['too many parts', { parts: [2, 0, 0, 0] }],
    ['more bytes than the limit', { parts: [callLimit + 1] }, 'x'.repeat(callLimit + 1)],
  ]
  for (const [what, head, bytes] of bad)
    t.throws(() => start().take(...call(head, bytes)), /^(?:The executor made|The parts)/, what)
  const calls = start()
  calls.take(...call())
  t.throws(() => calls.take(...call()), /without the response/, 'a second call before the response')
  t.throws(() => calls.checkIdle(), /without the response/, 'an end before the response')
  response.resolve({ ok: true, bytes: Buffer.from('first') })
  await response.promise
  await new Promise(setImmediate)
  calls.checkIdle()
  calls.take(...call())
  calls.end()
  await new Promise(setImmediate)
  t.same(sent, ['first'], 'nothing is sent once the run is over')
  start(async () => ({ ok: true, bytes: Buffer.alloc(callLimit + 1) })).take(...call())
  await new Promise(setImmediate)
  t.match(sent[1], /INTERNAL/, 'a response beyond the limit becomes an error')
})
