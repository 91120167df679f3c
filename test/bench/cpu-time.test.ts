// Tests of the CPU time that benchmarks read from /proc.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { test } from 'tap'
import { cpuMicroseconds, descendants, endedChildrenMicroseconds, threadMicroseconds } from '#bench/support/cpu-time.ts'

const stat =
  '4711 (a (b) 9 8) S 1 4711 4711 0 -1 4194304 500 90 0 0 120 30 7 5 20 0 11 0 12345 1000 200 18446744073709551615 1 1 0'

test('the time of a thread is the first number of its schedstat, in nanoseconds', async (t) => {
  t.equal(threadMicroseconds('1234567 84514 238\n'), 1234.567)
  t.equal(threadMicroseconds(''), 0, 'the thread has ended')
})

test('the time of ended child processes is in ticks of 10 ms, after a name that contains anything', async (t) => {
  t.equal(endedChildrenMicroseconds(stat), 120_000)
  t.equal(endedChildrenMicroseconds(''), 0, 'the process has ended')
})

test('descendants are the process, its children and theirs', async (t) => {
  const processes = [
    { pid: 5, parent: 4 },
    { pid: 2, parent: 1 },
    { pid: 4, parent: 2 },
    { pid: 3, parent: 1 },
    { pid: 6, parent: 3 },
  ]
  t.same(descendants(2, processes), [2, 4, 5])
  t.same(descendants(9, processes), [], 'a process that has ended')
})

test('a process has the time of its children that have ended', async (t) => {
  const before = await cpuMicroseconds(process.pid)
  const busy = 'while (process.cpuUsage().user < 200_000);console.log(process.cpuUsage().user)'
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', busy])
  const after = await cpuMicroseconds(process.pid)
  t.ok(after - before >= Number(stdout) - 20_000, `${after - before} µs include ${stdout.trim()} µs`)
})
