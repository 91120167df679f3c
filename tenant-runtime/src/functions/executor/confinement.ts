// What an executor's process is shut off from: the command line that starts it, as strong as this machine allows.
import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { executorProgram } from './executor-program.ts'

const run = promisify(execFile)

export interface Confinement {
  /** Namespaces of its own. Without `net` it is the permission model alone that keeps it from the network. */
  namespaces: readonly Namespace[]
  /** `own`: each executor is a user of its own; `runtime`: it is the runtime's, whatever that may do. */
  user: 'own' | 'runtime'
}

const networkAlone = ['net', 'ipc', 'uts'] as const
const withProcesses = [...networkAlone, 'pid'] as const
const whole = [...withProcesses, 'mount'] as const
type Namespace = (typeof whole)[number] | 'user'

const { file: child, readable } = executorProgram()

const nodeArguments = [
  '--permission',
  ...readable.map((path) => `--allow-fs-read=${path}`),
  '--disallow-code-generation-from-strings',
  '--no-addons',
  '--expose-gc',
  '--no-concurrent-array-buffer-sweeping',
  '--max-old-space-size=64',
  '--max-semi-space-size=2',
  '--v8-pool-size=1',
  '--wasm-max-mem-pages=8192',
  '--wasm-max-table-size=100000',
  '--wasm-max-committed-code-mb=256',
]

const megabyte = 1024 * 1024
/** Of data that Node may write to before a guest is there, most of it V8's reserve for code, which is hardly ever touched. */
const ownBytes = 608 * megabyte
/** For compiling, tables, input and output. */
const workingBytes = 192 * megabyte
const memoryStep = 128 * megabyte
const largestMemory = 512 * megabyte

/** Users that no machine gives to anybody else, and that systems don't take for their own either. */
const userRange = [1_900_000_000, 2_000_000_000] as const
/** Threads: Node has three, and takes some more for its own files. */
const maxThreads = 24

const probeMilliseconds = 5_000
/** Whatever is not a function comes first: a neighbour's requests, and the database. */
const niceness = '10'
/** Elsewhere whoever is woken may wait some milliseconds until the scheduler takes a function off, however low its priority. */
const cores = coresOfExecutors(readFileSync('/proc/self/status', 'utf8'))
/** Of all that are there the ones that the machine misses least when memory runs out. */
const outOfMemoryScore = '1000'

/** @param memory bytes of the function. @returns bytes that its process may allocate in all, for a few steps of memory */
export function dataLimit(memory: number): number {
  return ownBytes + workingBytes + Math.min(Math.ceil(Math.max(memory, 1) / memoryStep) * memoryStep, largestMemory)
}

/** A user for one executor; it means something only where the confinement has an `own` user. */
export function someUser(): number {
  return randomInt(...userRange)
}

/**
 * The cores that this process may use but for a quarter, and at least one, which functions leave alone.
 * @returns undefined with a single one
 */
export function coresOfExecutors(status: string): string | undefined {
  const list = /^Cpus_allowed_list:\s+(\S+)$/m.exec(status)?.[1] ?? ''
  const allowed = list.split(',').flatMap((range) => {
    const [first = NaN, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, n) => first + n)
  })
  return allowed.length < 2 ? undefined : allowed.slice(Math.max(1, allowed.length >> 2)).join(',')
}

type Command = [program: string, ...args: string[]]

/** What starts an executor, for functions of up to `memory` bytes; tests run another `program` in its place. */
export function executorCommand(confinement: Confinement, uid: number, memory: number, program = child): Command {
  return [
    ...confining(confinement, uid),
    // It knows nothing of our environment, whoever adds to that, and can't allocate the machine away.
    'env',
    '-i',
    'TZ=UTC',
    'nice',
    '-n',
    niceness,
    ...(cores === undefined ? [] : ['taskset', '-c', cores]),
    'prlimit',
    `--data=${dataLimit(memory)}:${dataLimit(largestMemory)}`,
    '--core=0',
    '--nofile=64',
    '--fsize=0',
    '--memlock=0',
    '--msgqueue=0',
    // What a user has elsewhere counts too, so only one of its own can have a limit.
    ...(confinement.user === 'own' || confinement.namespaces.includes('user') ? [`--nproc=${maxThreads}`] : []),
    process.execPath,
    ...nodeArguments,
    program,
  ]
}

/** What makes the limit of a running executor that for functions of up to `memory` bytes. */
export function limitCommand({ user }: Confinement, uid: number, pid: number, memory: number): Command {
  const limit: Command = ['prlimit', '--pid', String(pid), `--data=${dataLimit(memory)}:`]
  // Only its own user may, and root with all its capabilities, which it has not everywhere.
  return user === 'own' ? ['setpriv', ...asUser(uid), '--inh-caps=-all', ...limit] : limit
}

/** What the machine allows, tried out with commands that do nothing; found once for the process. */
export function findConfinement(): Promise<Confinement> {
  found ??= probe()
  return found
}

let found: Promise<Confinement> | undefined

async function probe(): Promise<Confinement> {
  const isRoot = process.getuid?.() === 0
  const candidates = [whole, withProcesses, networkAlone, []].flatMap((namespaces): Confinement[] => {
    if (!isRoot) return [{ namespaces: namespaces.length === 0 ? [] : ['user', ...namespaces], user: 'runtime' }]
    return [
      { namespaces, user: 'own' },
      { namespaces, user: 'runtime' },
    ]
  })
  for (const candidate of candidates) if (await works(candidate)) return candidate
  throw new Error(
    'no executor can be confined here: setpriv, choom, env, nice, prlimit and taskset of util-linux and coreutils are needed',
  )
}

/** It must be able to read what it is made of, too. */
async function works(confinement: Confinement): Promise<boolean> {
  const [program, ...args] = [
    ...confining(confinement, userRange[0]),
    'sh',
    '-c',
    'test -x "$0" && test -r "$1"',
    process.execPath,
    child,
  ]
  try {
    await run(program, args, {
      cwd: '/',
      env: { PATH: '/usr/bin:/bin' },
      timeout: probeMilliseconds,
      killSignal: 'SIGKILL',
    })
    return true
  } catch {
    return false
  }
}

/** It dies with the runtime, whatever it is doing, and can't become more than it is. */
function confining({ namespaces, user }: Confinement, uid: number): Command {
  const mortal = ['setpriv', '--pdeathsig', 'KILL'] as const
  const flags = namespaces.map(
    (namespace) =>
      ({ user: '--map-current-user', net: '--net', ipc: '--ipc', uts: '--uts', pid: '--pid', mount: '--mount-proc' })[
        namespace
      ],
  )
  const hasProcesses = namespaces.includes('pid')
  const withoutCapabilities = ['--bounding-set=-all', '--inh-caps=-all', '--ambient-caps=-all']
  return [
    'choom',
    '-n',
    outOfMemoryScore,
    '--',
    // A death signal is forgotten where a process changes its user, so it is set again behind that.
    ...mortal,
    ...(namespaces.length === 0
      ? []
      : ['unshare', ...flags, ...(hasProcesses ? ['--fork', '--kill-child=KILL'] : []), ...mortal]),
    ...(process.getuid?.() === 0 ? [...(user === 'own' ? asUser(uid) : []), ...withoutCapabilities] : []),
    '--no-new-privs',
  ]
}

function asUser(uid: number): string[] {
  return [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
}
