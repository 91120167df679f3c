// What WASI preview 1 offers to a function, tested by a program in C: everything that needs no files and no network, and an
// errno for the rest.
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { compileC } from '#examples/functions/compile-native.ts'
import { Executor, outputLimit } from '#tenant-runtime/functions/executor/executor.ts'
import { hashOf } from '#tenant-runtime/functions/function-store.ts'
import { prepareModule } from '#tenant-runtime/functions/module/module-cache.ts'

const wasm = await compileC(join(import.meta.dirname, 'support', 'wasi-basics.c'))
const module = prepareModule(wasm, hashOf(wasm))

const errno = { badDescriptor: 8, notCapable: 76, invalid: 28, illegalSeek: 70, notDirectory: 54, notSocket: 57 }

async function runProgram(
  t: Test,
  wish: string,
  { input = Buffer.alloc(0), environment = [] }: { input?: Buffer; environment?: string[] } = {},
) {
  const executor = await Executor.start()
  t.teardown(() => executor.kill())
  const written: string[] = []
  const result = await executor.run({
    module,
    memoryPages: 256,
    environment: [`WISH=${wish}`, ...environment],
    name: 'basics',
    input,
    timeoutMilliseconds: 20_000,
    onLog: (_level, text) => written.push(text.toString()),
  })
  return { ...result, log: written.join(''), lines: result.output.toString().trimEnd().split('\n') }
}

const ended = { kind: 'exited', code: 0 }

t.test('The only argument is the name of the function', async (t) => {
  t.match(await runProgram(t, 'arguments'), { outcome: ended, lines: ['basics', '(end)'] })
})

t.test('The environment contains the given variables in full, and nothing else', async (t) => {
  const environment = ['EMPTY=', 'EQUALS=a=b', 'TEXT=grün €', `LONG=${'x'.repeat(30_000)}`]
  const { outcome, lines } = await runProgram(t, 'environment', { environment })
  t.same(outcome, ended)
  t.same(lines, ['WISH=environment', ...environment, 'missing: none'])
})

t.test('The realtime and monotonic clocks work, and others are invalid', async (t) => {
  const { outcome, lines } = await runProgram(t, 'clocks')
  t.same(outcome, ended)
  const [realtime = '', ...others] = lines
  t.ok(Math.abs(Number(realtime.split(' ')[1]) - Date.now()) < 60_000, realtime)
  t.same(others, [
    'backwards 0',
    'resolution 0 1000 0 1000',
    'processor 0',
    `unknown ${errno.invalid} ${errno.invalid}`,
  ])
})

t.test('Random numbers have any length, and differ each time', async (t) => {
  t.match(await runProgram(t, 'random'), { outcome: ended, lines: ['0 0', 'same 0', 'large 0', 'missing 0'] })
})

t.test('Standard input is read to its end, in chunks of any size', async (t) => {
  const input = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251))
  const sum = input.reduce((sum, byte) => (Math.imul(sum, 31) + byte) >>> 0, 0)
  for (const chunk of [1, 7, 4_096, 1_000_000]) {
    const { lines } = await runProgram(t, `input ${chunk}`, { input })
    t.same(lines, [`300000 bytes, ${Math.ceil(300_000 / chunk)} reads, sum ${sum}, at the end 0 0`])
  }
  t.same((await runProgram(t, 'input 100')).lines, ['0 bytes, 0 reads, sum 0, at the end 0 0'], 'an empty input')
})

t.test('A read fills several buffers, and a write sends several', async (t) => {
  t.same((await runProgram(t, 'scattered', { input: Buffer.from('abcdefgh') })).lines, [
    '6 ab cdef',
    'one two three',
    '14',
  ])
})

t.test('Standard output and standard error keep their order', async (t) => {
  t.match(await runProgram(t, 'interleaved'), { outcome: ended, lines: ['0', '2', '4'], log: '1\n3\n' })
})

t.test('Output of single bytes is complete', async (t) => {
  const { outcome, output } = await runProgram(t, 'single bytes')
  t.same(outcome, ended)
  t.ok(output.equals(Buffer.alloc(2_000_000, 'x')))
  t.ok(output.length < outputLimit)
})

t.test('main, exit and _Exit return their codes, and only _Exit drops buffered output', async (t) => {
  for (const code of [0, 1, 42, 255]) {
    t.match(await runProgram(t, `return ${code}`), { outcome: { kind: 'exited', code } })
    const exited = await runProgram(t, `exit ${code}`)
    t.same([exited.outcome, exited.output.toString()], [{ kind: 'exited', code }, 'written before the exit'])
    const immediate = await runProgram(t, `_exit ${code}`)
    t.same([immediate.outcome, immediate.output.toString()], [{ kind: 'exited', code }, ''])
  }
})

t.test('abort is a trap', async (t) => {
  t.match(await runProgram(t, 'abort'), { outcome: { kind: 'trapped', message: /unreachable/ } })
})

t.test('A sleep ends after its duration or at its time, and at once for a past time', async (t) => {
  t.match(await runProgram(t, 'sleep'), {
    outcome: ended,
    lines: ['nanosleep 0 0', 'slept 1', 'until 0', 'reached 1', 'past 0 0'],
  })
})

t.test('poll reports the standard streams as ready, and rejects others', async (t) => {
  t.same((await runProgram(t, 'poll', { input: Buffer.from('x') })).lines, [
    'ready 2 1 1',
    'none 1 1',
    `unknown clock ${errno.invalid}`,
    `nothing ${errno.invalid}`,
    'clock 0 1 5',
  ])
})

t.test('sched_yield succeeds', async (t) => {
  t.match(await runProgram(t, 'yield'), { outcome: ended })
})

t.test('Access to a file by its name returns ENOTCAPABLE', async (t) => {
  const { outcome, lines } = await runProgram(t, 'files')
  t.same(outcome, ended)
  t.equal(lines.length, 16)
  for (const line of lines) t.match(line, new RegExp(` -1 ${errno.notCapable}$`))
})

t.test('Only the three standard descriptors exist', async (t) => {
  const { outcome, lines } = await runProgram(t, 'descriptors')
  t.same(outcome, ended)
  const bad = `-1 ${errno.badDescriptor}`
  t.same(lines, [
    `read 3 ${bad}`,
    `write 3 ${bad}`,
    `write 0 ${bad}`,
    `read 1 ${bad}`,
    `close 3 ${bad}`,
    `close -1 ${bad}`,
    `fstat 3 ${bad}`,
    'fstat 0 0 0',
    `lseek 0 -1 ${errno.illegalSeek}`,
    `pread 0 -1 ${errno.illegalSeek}`,
    `ftruncate 1 -1 ${errno.invalid}`,
    'fsync 1 0 0',
    'terminal 0 0',
    `accept 3 ${bad}`,
    `recv 3 ${bad}`,
    `send 1 -1 ${errno.notSocket}`,
    `prestat ${errno.badDescriptor} ${errno.badDescriptor}`,
    `path_open ${errno.badDescriptor} ${errno.notDirectory}`,
    `readdir ${errno.badDescriptor} ${errno.notDirectory}`,
    `symlink ${errno.badDescriptor}`,
    'close 2 0 0',
    `write 2 when closed ${bad}`,
  ])
})
