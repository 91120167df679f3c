// The supervisor with real processes: it restarts what dies, whatever the processes write and however they end.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigurationError } from '@tenantry/contract'
import pino from 'pino'
import t, { type Test } from 'tap'
import { LogBudget } from '#local/process/log-budget.ts'
import { groupMembers } from '#local/process/process-group.ts'
import { Supervisor, type ProcessService } from '#local/process/supervisor.ts'

interface Line {
  level: number
  msg: string
  service?: string
  cut?: boolean
  dropped?: number
}

interface Scene {
  supervisor: Supervisor
  lines: Line[]
  /** Resolves to the first line that fits. */
  until(found: (line: Line) => boolean): Promise<Line>
  /** Resolves to the process ID of the service, once the service reports that it runs. */
  running(): Promise<number>
  configurationErrors: ConfigurationError[]
}

const hasText = (text: string) => (line: Line) => line.msg.startsWith(text)

async function openScene(t: Test, options: { readyMilliseconds?: number } = {}): Promise<Scene> {
  const runDirectory = await mkdtemp(join(tmpdir(), 'tenantry-supervisor-'))
  const lines: Line[] = []
  const waiting = new Set<() => void>()
  const log = pino(
    { level: 'trace', base: null },
    {
      write: (text) => {
        lines.push(JSON.parse(text) as Line)
        for (const wake of waiting) wake()
      },
    },
  )
  const configurationErrors: ConfigurationError[] = []
  const supervisor = new Supervisor({
    runDirectory,
    identity: undefined,
    log,
    onConfigurationError: (error) => configurationErrors.push(error),
    ...options,
  })
  await supervisor.endOrphans()
  t.teardown(async () => {
    await supervisor.stop(AbortSignal.abort())
    await rm(runDirectory, { recursive: true, force: true })
  })
  const until = (found: (line: Line) => boolean) =>
    new Promise<Line>((resolve) => {
      const poll = () => {
        const line = lines.find(found)
        if (line === undefined) return
        waiting.delete(poll)
        resolve(line)
      }
      waiting.add(poll)
      poll()
    })
  return {
    supervisor,
    lines,
    configurationErrors,
    until,
    running: async () => Number(/^running (\d+)$/.exec((await until(hasText('running'))).msg)?.[1]),
  }
}

/** A service that runs a shell script. */
function shell(name: string, script: string, more: Partial<ProcessService> = {}): ProcessService {
  return {
    name,
    command: '/bin/sh',
    args: ['-c', script],
    cwd: '/',
    environment: { PATH: '/usr/bin:/bin' },
    needs: [],
    ready: async () => true,
    stopSignal: 'SIGTERM',
    stopOrder: 0,
    stopMilliseconds: 1_000,
    ...more,
  }
}

/** Kills the service and waits until it reports again that it runs. */
async function checkRestarts(t: Test, scene: Scene, when: string): Promise<void> {
  const before = await scene.running()
  scene.lines.length = 0
  process.kill(before, 'SIGKILL')
  t.not(await scene.running(), before, `${when}: the service was started again`)
}

t.test('A line longer than any string is cut, and the service is still restarted', { timeout: 240_000 }, async (t) => {
  const scene = await openScene(t)
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-supervisor-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const marker = join(directory, 'written')
  const long = (bytes: number) => `head -c ${bytes} /dev/zero | tr '\\0' x; echo`
  const script = `[ -e ${marker} ] || { : > ${marker}; ${long(100_000)}; { ${long(540_000_000)}; } >&2; }; echo running $$; exec sleep 1000`
  await scene.supervisor.start(shell('talker', script))
  await scene.running()
  const found = scene.lines.filter((line) => line.msg.startsWith('x'))
  t.same(
    found.map(({ msg, cut }) => [msg.length, cut]),
    [
      [65_536, true],
      [65_536, true],
    ],
    'a line of each stream, cut at 64 KB',
  )
  await checkRestarts(t, scene, 'after such lines')
})

t.test('Any bytes are read as lines, and no output is an error', async (t) => {
  const scene = await openScene(t)
  const deep = `{"level":30,"msg":"deep","a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`
  const odd =
    'invalid \\377\\376 text\\nnul \\000 here\\nescape \\033[2J now\\n' +
    '{"level":"x","msg":5}\\n{broken\\n[1]\\n{"__proto__":{"level":60},"toJSON":1}\\n\\r\\n\\n'
  const script = `echo running $$; printf '${odd}'
printf '%s\\n' '${deep}'; printf 'no end'; exec sleep 1000 >&- 2>&-`
  await scene.supervisor.start(shell('talker', script))
  await scene.until(hasText('no end'))
  const texts = scene.lines
    .filter(({ service, msg }) => service === 'talker' && !msg.startsWith('running'))
    .map(({ msg }) => msg)
  t.same(texts, [
    'invalid \ufffd\ufffd text',
    'nul \ufffd here',
    'escape \ufffd[2J now',
    '',
    '{broken',
    '[1]',
    '',
    'deep',
    'no end',
  ])
  await checkRestarts(t, scene, 'with its output closed')
})

t.test('A service that writes without end is limited, and dropped lines are counted', async (t) => {
  const scene = await openScene(t)
  const count = 50_000
  await scene.supervisor.start(shell('talker', `seq ${count}; exec sleep 1000`))
  let dropped = 0
  while (scene.lines.filter(({ msg }) => /^\d+$/.test(msg)).length + dropped < count) {
    const report = await scene.until(({ dropped: some }) => some !== undefined)
    dropped += report.dropped ?? 0
    t.match(report.msg, /^\d+ lines of the service were dropped, because it writes too many\.$/)
    delete report.dropped
  }
  const shown = scene.lines.filter(({ msg }) => /^\d+$/.test(msg)).length
  t.equal(shown + dropped, count, 'each line was written or counted')
  t.ok(shown >= 2_000 && shown < count, `${shown} lines were written`)
})

t.test('A budget admits a burst and a steady rate, of lines and of bytes', async (t) => {
  let now = 0
  const budget = new LogBudget({ burstLines: 3, linesPerSecond: 1, burstBytes: 100, bytesPerSecond: 10 }, () => now)
  t.same(
    [1, 1, 1, 1].map((bytes) => budget.admits(bytes)),
    [true, true, true, false],
  )
  now = 2_000
  t.same(
    [1, 1, 1].map((bytes) => budget.admits(bytes)),
    [true, true, false],
    'two seconds, two lines',
  )
  now = 1_000_000
  t.same(
    [101, 100, 1].map((bytes) => budget.admits(bytes)),
    [false, true, false],
    'bytes',
  )
})

t.test('An invalid configuration ends the start with its message, and is not tried again', async (t) => {
  const scene = await openScene(t)
  const wrong = shell('wrong', 'echo starting >&2; echo "TENANTRY_X is \\"y\\"" >&2; exit 78', {
    ready: async () => false,
  })
  const error = await scene.supervisor.start(wrong).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  t.ok(error instanceof ConfigurationError)
  t.match(error, { message: 'wrong: TENANTRY_X is "y"' })
  const other = shell('other', 'exit 1', { ready: async () => false })
  await t.rejects(scene.supervisor.start(other), { message: /The service other ended during its start/ })

  const directory = await mkdtemp(join(tmpdir(), 'tenantry-supervisor-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const marker = join(directory, 'broken')
  await scene.supervisor.start(
    shell(
      'later',
      `if [ -e ${marker} ]; then echo "it is broken now" >&2; exit 78; fi; : > ${marker}; echo running $$; exec sleep 1000`,
    ),
  )
  process.kill(await scene.running(), 'SIGKILL')
  await scene.until(hasText('A service is not restarted'))
  t.same(
    scene.configurationErrors.map(({ message }) => message),
    ['later: it is broken now'],
  )
})

t.test('A start that fails between two tries is tried again', async (t) => {
  const scene = await openScene(t)
  let tries = 0
  await scene.supervisor.start(
    shell('unlucky', 'echo running $$; exec sleep 1000', {
      prepare: async () => {
        tries++
        if (tries === 2) throw new Error('the disk is full')
      },
    }),
  )
  await checkRestarts(t, scene, 'after a failed preparation')
  t.equal(tries, 3)
})

t.test('A stop during a restart ends, and leaves no process', async (t) => {
  const scene = await openScene(t)
  const restarting = Promise.withResolvers<undefined>()
  const stopped = Promise.withResolvers<undefined>()
  let tries = 0
  await scene.supervisor.start(
    shell('late', 'echo running $$; exec sleep 1000', {
      prepare: async () => {
        tries++
        if (tries < 2) return
        restarting.resolve(undefined)
        await stopped.promise
      },
    }),
  )
  const first = await scene.running()
  scene.lines.length = 0
  process.kill(first, 'SIGKILL')
  await restarting.promise
  const stop = scene.supervisor.stop(new AbortController().signal)
  stopped.resolve(undefined)
  await stop
  t.notOk(scene.lines.some(hasText('running')), 'nothing was started afterwards')
  t.same(await groupMembers(first), [])
  await t.rejects(scene.supervisor.start(shell('too-late', 'exec sleep 1000')), {
    message: /while all services are being stopped/,
  })
})

t.test('The first restart has no delay, further ones a growing delay', { timeout: 60_000 }, async (t) => {
  const scene = await openScene(t)
  await scene.supervisor.start(shell('crashing', 'echo running $$; sleep 0.2'))
  const delays = () =>
    scene.lines.flatMap((line) => (hasText('A service ended by itself')(line) && 'delay' in line ? [line.delay] : []))
  await scene.until(() => delays().length >= 4)
  t.same(delays().slice(0, 4), [0, 100, 200, 400])
})

t.test('Services of one stop order are stopped at the same time', { timeout: 60_000 }, async (t) => {
  const scene = await openScene(t)
  // Each ends only after both were asked to.
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-supervisor-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const script = (own: string, other: string) =>
    `trap ': > ${directory}/${own}; while [ ! -e ${directory}/${other} ]; do sleep 0.01; done; echo ended; exit 0' TERM
     echo running $$; while :; do sleep 0.01; done`
  await scene.supervisor.start(shell('one', script('one', 'other'), { stopMilliseconds: 30_000 }))
  await scene.supervisor.start(shell('other', script('other', 'one'), { stopMilliseconds: 30_000 }))
  await scene.until((line) => line.service === 'one' && hasText('running')(line))
  await scene.until((line) => line.service === 'other' && hasText('running')(line))
  await scene.supervisor.stop(new AbortController().signal)
  t.equal(scene.lines.filter(hasText('ended')).length, 2, 'none was killed')
})

t.test(
  'A service that is ended gets one signal, also when all are stopped meanwhile',
  { timeout: 60_000 },
  async (t) => {
    const scene = await openScene(t)
    const never = new AbortController().signal
    await scene.supervisor.end('unknown', never)
    const directory = await mkdtemp(join(tmpdir(), 'tenantry-supervisor-'))
    t.teardown(() => rm(directory, { recursive: true, force: true }))
    const script = `const { existsSync } = require('node:fs')
    const end = () => { if (existsSync(process.argv[1])) { console.log('ended'); process.exit(0) } }
    process.on('SIGTERM', () => { console.log('signal'); setInterval(end, 10) })
    setInterval(() => {}, 1000)
    console.log('running ' + process.pid)`
    await scene.supervisor.start(
      shell('one', '', {
        command: process.execPath,
        args: ['-e', script, join(directory, 'go')],
        stopMilliseconds: 30_000,
      }),
    )
    await scene.running()
    const ended = scene.supervisor.end('one', never)
    await scene.until(hasText('signal'))
    const stopped = scene.supervisor.stop(never)
    await writeFile(join(directory, 'go'), '')
    await Promise.all([ended, stopped])
    t.equal(scene.lines.filter(hasText('signal')).length, 1)
    t.equal(scene.lines.filter(hasText('ended')).length, 1, 'the service was not killed')
    t.notOk(scene.lines.some(hasText('A service ended by itself')), 'nor started again')
  },
)

t.test('The time limit of a start does not include the time in which a service recovers', async (t) => {
  const readyMilliseconds = 300
  const scene = await openScene(t, { readyMilliseconds })
  const begin = performance.now()
  const recovers = async () => performance.now() - begin > 3 * readyMilliseconds || 'recovering'
  await scene.supervisor.start(shell('recovering', 'exec sleep 1000', { ready: recovers }))
  t.ok(performance.now() - begin > 3 * readyMilliseconds)
  const silent = shell('silent', 'exec sleep 1000', { ready: async () => false })
  await t.rejects(scene.supervisor.start(silent), { message: 'The service silent did not respond within 0.3 s.' })
})
