// What the confinement of executors denies to a process. A probe that runs instead of an executor reports it: first under
// Node's permissions, then under the operating system's limits alone.
import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { asIdentity, serviceIdentity } from '#local/process/unprivileged.ts'
import {
  coresOfExecutors,
  dataLimit,
  executorCommand,
  findConfinement,
  randomUser,
  type Confinement,
} from '#tenant-runtime/functions/executor/confinement.ts'
import { Executor } from '#tenant-runtime/functions/executor/executor.ts'
import { prepareModule } from '#tenant-runtime/functions/module/module-cache.ts'
import { command, constant, drop, forever, grow } from './support/wasm.ts'

const run = promisify(execFile)
const megabyte = 1024 * 1024
const probe = join(import.meta.dirname, 'support', 'confined-probe.mjs')
const project = join(import.meta.dirname, '..', '..')

/** Whether this machine gives a process namespaces of its own, tested without our code. */
const hasNamespaces = await run('unshare', [
  ...(process.getuid?.() === 0 ? [] : ['--map-current-user']),
  '--net',
  '--ipc',
  '--uts',
  '--pid',
  '--fork',
  '--mount-proc',
  'true',
]).then(
  () => true,
  () => false,
)

/** Returns what the probe reports, and what the system reports about the probe's process. */
async function runProbe(t: Test, confinement: Confinement, { withPermissions }: { withPermissions: boolean }) {
  const scratch = await mkdtemp(join(tmpdir(), 'tenantry-confined-'))
  const secret = join(scratch, 'secret')
  const writable = join(tmpdir(), `tenantry-confined-${randomUUID()}`)
  await writeFile(secret, 'the secret', { mode: 0o600 })
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  const isPermission = (argument: string) => argument === '--permission' || argument.startsWith('--allow-')
  const [program = '', ...args] = executorCommand(confinement, randomUser(), 1, probe).filter(
    (argument) => withPermissions || !isPermission(argument),
  )
  const child = spawn(program, args, {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin', CANARY: 'of the runtime' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const gone = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await gone
    server.close()
    await rm(scratch, { recursive: true })
    await rm(writable, { force: true })
  })
  child.stdin.write(JSON.stringify({ port: address.port, secret, others: [process.pid], writable }))
  const [response] = (await once(child.stdout, 'data')) as [Buffer]
  const pid = await innermostProcess(child.pid ?? 0)
  const [status, limits] = await Promise.all([
    readFile(`/proc/${pid}/status`, 'utf8'),
    readFile(`/proc/${pid}/limits`, 'utf8'),
  ])
  return { reported: JSON.parse(response.toString()) as Record<string, unknown>, status, limits, pid, child, gone }
}

/** Returns the ID of the last process of a chain of children. */
async function innermostProcess(pid: number): Promise<number> {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim()
  return children === '' ? pid : innermostProcess(Number(children))
}

/** Waits until the system has removed a dead process, which needs its parent or the init process. */
async function waitForRemoval(pid: number): Promise<void> {
  while ((await readdir('/proc')).includes(String(pid))) await new Promise((resolve) => setTimeout(resolve, 5))
}

t.test('findConfinement finds the strongest confinement that the machine offers', async (t) => {
  const { namespaces, user } = await findConfinement()
  const isRoot = process.getuid?.() === 0
  t.equal(namespaces.includes('net'), hasNamespaces, namespaces.join(' '))
  t.equal(namespaces.includes('pid'), hasNamespaces)
  t.equal(namespaces.includes('user'), hasNamespaces && !isRoot)
  if (!isRoot) t.equal(user, 'runtime')
})

t.test("Node's permissions deny everything to an executor, with and without namespaces", async (t) => {
  const found = await findConfinement()
  for (const confinement of [found, { ...found, namespaces: [] }]) {
    const { reported } = await runProbe(t, confinement, { withPermissions: true })
    t.match(reported, {
      connect: 'ERR_ACCESS_DENIED',
      listen: 'ERR_ACCESS_DENIED',
      readSecret: 'ERR_ACCESS_DENIED',
      write: 'ERR_ACCESS_DENIED',
      processes: 'ERR_ACCESS_DENIED',
      spawn: 'ERR_ACCESS_DENIED',
      worker: 'ERR_ACCESS_DENIED',
      code: /disallowed/,
    })
    t.same(reported['environment'], { TZ: 'UTC' })
  }
})

t.test('The system confines an executor as far as the machine allows', async (t) => {
  const confinement = await findConfinement()
  const { reported, status, limits, pid } = await runProbe(t, confinement, { withPermissions: false })
  t.same(reported['environment'], { TZ: 'UTC' })
  t.equal(reported['write'], 'EFBIG', 'no file can be written anywhere')
  if (confinement.namespaces.includes('net')) {
    t.equal(reported['interfaces'], 0)
    t.match(reported['connect'], /ENETUNREACH|ECONNREFUSED/, 'the executor does not reach the machine itself')
  }
  if (confinement.namespaces.includes('pid'))
    t.same(reported['signal'], ['ESRCH'], 'the executor cannot address the process of the runtime')
  if (confinement.namespaces.includes('mount')) t.equal(reported['processes'], 1)
  if (confinement.user === 'own') {
    t.not(reported['uid'], process.getuid?.())
    t.equal(reported['readSecret'], 'EACCES', 'the executor cannot read a file of the runtime')
  }
  t.match(status, /NoNewPrivs:\t1/)
  for (const set of ['CapPrm', 'CapEff', 'CapInh', 'CapAmb']) t.match(status, new RegExp(`${set}:\\t0+\\n`))
  t.match(limits, new RegExp(`Max data size +${dataLimit(1)} +${dataLimit(512 * megabyte)} `))
  for (const limit of ['core file size', 'file size', 'locked memory', 'msgqueue size'])
    t.match(limits, new RegExp(`Max ${limit} +0 +0 `))
  t.match(limits, /Max open files +64 +64 /)
  t.equal(
    (await readFile(`/proc/${pid}/oom_score_adj`, 'utf8')).trim(),
    '1000',
    'the system kills the executor first when memory runs out',
  )
})

t.test('Executors leave a quarter of the cores free, and at least one', async (t) => {
  const status = (list: string) =>
    `Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t${list}\nMems_allowed_list:\t0\n`
  t.same(
    ['0', '0-1', '0-2', '4,6', '0-7', '0-1,8-9,12'].map((list) => coresOfExecutors(status(list))),
    [undefined, '1', '1,2', '6', '2,3,4,5,6,7', '1,8,9,12'],
  )
  t.equal(coresOfExecutors(''), undefined, 'without a list from the system there is no limit')
  const own = /^Cpus_allowed_list:.*$/m
  const executor = await Executor.start()
  const mine = await readFile('/proc/self/status', 'utf8')
  const its = await readFile(`/proc/${executor.pid ?? 0}/status`, 'utf8')
  executor.kill()
  await executor.exited
  const wanted = coresOfExecutors(mine)
  const spread = (list = '') =>
    list
      .split(':')
      .at(-1)
      ?.trim()
      .split(',')
      .flatMap((range) => {
        const [first = 0, last = first] = range.split('-').map(Number)
        return Array.from({ length: last - first + 1 }, (_, n) => first + n)
      })
      .join(',')
  t.equal(spread(own.exec(its)?.[0]), wanted ?? spread(own.exec(mine)?.[0]))
})

t.test('The executor ends with the process that the runtime started', async (t) => {
  const { pid, child, gone } = await runProbe(t, await findConfinement(), { withPermissions: true })
  child.kill('SIGKILL')
  await gone
  await waitForRemoval(pid)
  t.pass('no process remains')
})

t.test('The executor ends with the runtime, even in an endless loop', async (t) => {
  const source = `
    const { Executor } = await import(${JSON.stringify(join(project, 'tenant-runtime/src/functions/executor/executor.ts'))})
    const executor = await Executor.start()
    const bytes = new Uint8Array(${JSON.stringify([...command({ code: forever })])})
    void executor.run({
      module: { key: 'loops', bytes, memory: undefined }, memoryPages: 1, environment: [], name: 'test',
      input: Buffer.alloc(0), timeoutMilliseconds: 300000, onLog: () => undefined,
    })
    console.log(executor.pid)
  `
  const runtime = spawn(process.execPath, ['--input-type=module', '-e', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [reported] = (await once(runtime.stdout, 'data')) as [Buffer]
  const pid = Number(reported.toString())
  t.ok((await readFile(`/proc/${pid}/cmdline`, 'utf8')).includes('--permission'))
  runtime.kill('SIGKILL')
  await once(runtime, 'close')
  await waitForRemoval(pid)
  t.pass('no process remains')
})

t.test("An executor's memory limit follows the function of each run", async (t) => {
  let executor = await Executor.start()
  t.teardown(() => executor.kill())
  const run = async (grown: number, megabytes: number) => {
    // An executor that had a large memory is not used again.
    if (!executor.isAlive) executor = await Executor.start()
    const module = prepareModule(
      command({ memory: [0, 1], code: [...constant(grown), ...grow, drop] }),
      `grows by ${grown}`,
    )
    const limit = async () =>
      Number(
        /Max data size +(\d+) /.exec(await readFile(`/proc/${executor.pid ?? 0}/limits`, 'utf8').catch(() => ''))?.[1],
      )
    const { outcome, memoryPeak } = await executor.run({
      module,
      memoryPages: megabytes * 16,
      environment: [],
      name: 'test',
      input: Buffer.alloc(0),
      timeoutMilliseconds: 10_000,
      onLog: () => undefined,
    })
    return { outcome, memoryPeak, limit: executor.isAlive ? await limit() : undefined }
  }
  const ended = { kind: 'exited', code: 0 }
  for (const megabytes of [512, 16, 256, 128]) {
    t.same(await run(20, megabytes), {
      outcome: ended,
      memoryPeak: 21 * 65_536,
      limit: dataLimit(megabytes * megabyte),
    })
    t.same(
      await run(megabytes * 16, megabytes),
      { outcome: ended, memoryPeak: 65_536, limit: dataLimit(megabytes * megabyte) },
      'the module gets no more memory than its limit',
    )
  }
  for (const [grown, megabytes] of [
    [8_000, 512],
    [2_000, 128],
    [1_000, 64],
    [200, 16],
  ] as const) {
    for (let round = 0; round < 20; round++) {
      const { outcome, memoryPeak } = await run(grown, megabytes)
      t.same([outcome, memoryPeak], [ended, (grown + 1) * 65_536], `${grown} pages, round ${round}`)
    }
  }
})

t.test('A runtime whose user is not root confines executors as far as the machine lets users', async (t) => {
  const { command: program, args } = await asIdentity(await serviceIdentity(), [project], {
    command: process.execPath,
    args: [join(import.meta.dirname, 'support', 'confined-as-user.ts')],
  })
  const { stdout } = await run(program, args, { cwd: '/' })
  const { confinement, outcome, status, uid } = JSON.parse(stdout) as {
    confinement: Confinement
    outcome: unknown
    status: string
    uid: number
  }
  t.not(uid, 0)
  t.same(outcome, { kind: 'exited', code: 0 })
  t.equal(confinement.user, 'runtime')
  t.match(status, /NoNewPrivs:\t1/)
  t.match(status, /CapEff:\t0+\n/)
  if (confinement.namespaces.length > 0) t.match(status, /NSpid:\t\d+\t1\n/)
})
