// One program in the place of a container, with real processes: how it starts after failures, and how its processes and lines are
// found again.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { LogLine } from '#control-plane/engines/index.ts'
import { logTime } from '#control-plane/logs/log-times.ts'
import { ContainerLog } from '#local/containers/container-log.ts'
import { ContainerProcess } from '#local/containers/container-process.ts'
import { HostUsers } from '#local/containers/host-users.ts'
import { plainMemory } from '#local/containers/limits.ts'
import { killRemaining } from '#local/containers/process-tree.ts'
import { RunRecords } from '#local/process/run-records.ts'
import { until } from '#test/support/until.ts'

const identity = { uid: 65_534, gid: 65_534 }

async function temporary(t: Test): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'tenantry-program-')))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return directory
}

async function linesOf(log: ContainerLog): Promise<LogLine[]> {
  return Array.fromAsync(log.lines({ follow: false, tail: 10_000 }, new AbortController().signal))
}

/** Returns a program that prints a text and sleeps. */
async function openScene(t: Test, { save = () => Promise.resolve() }: { save?: () => Promise<void> } = {}) {
  const directory = await temporary(t)
  const runs = join(directory, 'run')
  await mkdir(join(directory, 'work'))
  await mkdir(runs)
  const printed = { text: 'first' }
  const container = new ContainerProcess({
    record: {
      id: 'a',
      spec: {
        name: 'tenantry-a',
        labels: { installation: 'i', stack: 's' },
        image: 'postgres',
        command: [],
        environment: {},
        user: '1',
        volumes: [],
        scratch: {},
        networks: [],
        published: [],
        health: { command: ['true'], intervalSeconds: 60, timeoutSeconds: 10, retries: 2, startSeconds: 60 },
        resources: { memoryBytes: 256 * 2 ** 20, cpuMillis: 500, pids: 64 },
        stopSeconds: 5,
      },
      user: 1,
      isStarted: false,
      exitCode: 0,
    },
    launch: () => ({
      command: { command: 'sh', args: ['-c', `echo ${printed.text}; exec sleep 60`] },
      environment: { PATH: '/usr/bin:/bin' },
      directory: join(directory, 'work'),
      ownDirectories: [join(directory, 'work')],
      needs: [],
      identity: undefined,
      hasOwnUser: false,
      stopSignal: 'SIGTERM',
      stopOrder: 0,
      memory: plainMemory,
    }),
    log: new ContainerLog(directory),
    runs: new RunRecords(runs),
    onEvent: () => undefined,
    save,
  })
  t.teardown(() => container.stop(0))
  const hasPrinted = (text: string) =>
    until(async () => (await linesOf(container.log)).some((line) => line.text.includes(text)), text)
  return { container, printed, runs, hasPrinted }
}

t.test('A restart uses the present command', async (t) => {
  const { container, printed, hasPrinted } = await openScene(t)
  await container.start()
  await hasPrinted('first')
  printed.text = 'second'
  process.kill(container.pid ?? 0, 'SIGKILL')
  await hasPrinted('second')
  t.equal(container.restarts, 1)
})

t.test('A program whose start fails can be started again', async (t) => {
  let failures = 1
  const { container, hasPrinted } = await openScene(t, {
    save: () => (failures-- > 0 ? Promise.reject(new Error('no space')) : Promise.resolve()),
  })
  await t.rejects(container.start(), { message: 'no space' })
  t.equal(container.state, 'exited')
  await container.start()
  await hasPrinted('first')
  t.equal(container.state, 'running')
})

t.test('A program that cannot be recorded is supervised', async (t) => {
  const { container, runs, hasPrinted } = await openScene(t)
  await rm(runs, { recursive: true })
  await container.start()
  await hasPrinted('not all records were written')
  await mkdir(runs)
  process.kill(container.pid ?? 0, 'SIGKILL')
  await until(() => container.restarts === 1 && container.state === 'running', 'a restart')
})

t.test('A program whose directory is gone ends neither the host nor its attempts', async (t) => {
  const { container, hasPrinted } = await openScene(t)
  await rm(container.launch.directory, { recursive: true })
  await container.start()
  const inside = await container.spawnInside({ command: 'true', args: [] })
  t.equal(inside.pid, undefined)
  await until(() => container.restarts > 0, 'a further attempt')
  await mkdir(container.launch.directory)
  await hasPrinted('first')
})

t.test('Processes are found behind a symbolic link', async (t) => {
  const directory = await temporary(t)
  await mkdir(join(directory, 'real'))
  await symlink(join(directory, 'real'), join(directory, 'link'))
  const child = spawn('sleep', ['60'], { cwd: join(directory, 'real'), stdio: 'ignore' })
  const ended = once(child, 'exit')
  await once(child, 'spawn')
  await killRemaining({ ownDirectories: [join(directory, 'link')], identity: undefined, hasOwnUser: false })
  t.same(await ended, [null, 'SIGKILL'])
})

t.test('Each line of a log has a later time than the one before', async (t) => {
  const log = new ContainerLog(await temporary(t))
  for (let count = 0; count < 1_000; count++) log.note(`line ${count}`)
  const times = (await linesOf(log)).map(({ at }) => at)
  t.equal(times.length, 1_000)
  t.same(times.map(logTime), times)
  t.same([...new Set(times)].sort(), times)
})

t.test('The first start by root chooses whether programs have users of their own', async (t) => {
  const path = process.env['PATH']
  t.teardown(() => (process.env['PATH'] = path))
  const directory = await temporary(t)
  const file = (name: string) => join(directory, name)
  const store = (name: string, isSeparate?: boolean, base = 2_000_000_000) =>
    writeFile(file(name), JSON.stringify({ base, numbers: {}, isSeparate }))
  t.equal((await HostUsers.open(file('new'), undefined)).areSeparate, false)
  await store('separate', true)
  await store('shared', false)
  await store('low', true, 0)
  process.env['PATH'] = directory
  await t.rejects(HostUsers.open(file('separate'), identity), { message: /none can be started as such a user/ })
  t.equal((await HostUsers.open(file('new'), identity)).areSeparate, false)
  t.match(JSON.parse(await readFile(file('new'), 'utf8')), { isSeparate: false })
  await t.rejects(HostUsers.open(file('low'), identity), { message: /another form/ })
  process.env['PATH'] = path
  t.equal((await HostUsers.open(file('shared'), identity)).areSeparate, false, 'no later start changes it')
  t.same((await HostUsers.open(file('new'), identity)).identityOf(1), identity)
})
