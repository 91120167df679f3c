// The command line that starts an executor's process, confined as far as this machine allows.
import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { executorProgram } from './executor-program.ts'

const run = promisify(execFile)

export interface Confinement {
  /** New namespaces of the process. Without `net`, only Node's permission model denies access to the network. */
  namespaces: readonly Namespace[]
  /** The process' user: `own` for a user of its own, `runtime` for the runtime's. */
  user: 'own' | 'runtime'
}

const networkAlone = ['net', 'ipc', 'uts'] as const
const withProcesses = [...networkAlone, 'pid'] as const
const allNamespaces = [...withProcesses, 'mount'] as const
type Namespace = (typeof allNamespaces)[number] | 'user'

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
/** Bytes of data that Node reserves before it runs a module. Most of it is V8's reserve for code, which is hardly used. */
const ownBytes = 608 * megabyte
/** Bytes for the compiler, tables, input and output. */
const workingBytes = 192 * megabyte
const memoryStep = 128 * megabyte
const largestMemory = 512 * megabyte

/** User ids that neither machines nor operating systems assign. */
const userRange = [1_900_000_000, 2_000_000_000] as const
/** Maximum number of threads. Node has three, and starts some more to read its own files. */
const maxThreads = 24

const probeMilliseconds = 5_000
/** Priority below that of requests and the database. */
export const executorPriority = 10
/** The cores for executors. On a shared core, another process may wait some milliseconds even for one of low priority. */
const cores = coresOfExecutors(readFileSync('/proc/self/status', 'utf8'))
/** The highest score, so that the kernel kills executors first when memory runs out. */
const outOfMemoryScore = '1000'

/**
 * Returns the bytes that an executor's process may allocate in all.
 * @param memory bytes of the function's memory, which are rounded up to few steps
 */
export function dataLimit(memory: number): number {
  return ownBytes + workingBytes + Math.min(Math.ceil(Math.max(memory, 1) / memoryStep) * memoryStep, largestMemory)
}

/** Returns a random user id for one executor. It is used only if the confinement has an `own` user. */
export function randomUser(): number {
  return randomInt(...userRange)
}

/**
 * Returns the cores for executors: those of this process without a quarter, at least one.
 * @returns undefined if this process has a single core
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

/** Returns the command that starts an executor for functions of up to `memory` bytes. Tests run another `program`. */
export function executorCommand(confinement: Confinement, uid: number, memory: number, program = child): Command {
  return [
    ...confinementCommand(confinement, uid),
    // It receives nothing of the runtime's environment, and its memory is limited.
    'env',
    '-i',
    'TZ=UTC',
    'nice',
    '-n',
    String(executorPriority),
    ...(cores === undefined ? [] : ['taskset', '-c', cores]),
    'prlimit',
    `--data=${dataLimit(memory)}:${dataLimit(largestMemory)}`,
    '--core=0',
    '--nofile=64',
    '--fsize=0',
    '--memlock=0',
    '--msgqueue=0',
    // The limit counts all threads of a user, so it is set only for a user of its own.
    ...(confinement.user === 'own' || confinement.namespaces.includes('user') ? [`--nproc=${maxThreads}`] : []),
    process.execPath,
    ...nodeArguments,
    program,
  ]
}

/** Returns the command that changes the limit of a running executor to functions of up to `memory` bytes. */
export function limitCommand({ user }: Confinement, uid: number, pid: number, memory: number): Command {
  const limit: Command = ['prlimit', '--pid', String(pid), `--data=${dataLimit(memory)}:`]
  // Only the process' own user may change the limit, or a root user with all capabilities, which containers often lack.
  return user === 'own' ? ['setpriv', ...asUser(uid), '--inh-caps=-all', ...limit] : limit
}

/** Finds the strongest confinement that the machine allows, once for this process, by commands that do nothing. */
export function findConfinement(): Promise<Confinement> {
  found ??= probe()
  return found
}

let found: Promise<Confinement> | undefined

async function probe(): Promise<Confinement> {
  const isRoot = process.getuid?.() === 0
  const candidates = [allNamespaces, withProcesses, networkAlone, []].flatMap((namespaces): Confinement[] => {
    if (!isRoot) return [{ namespaces: namespaces.length === 0 ? [] : ['user', ...namespaces], user: 'runtime' }]
    return [
      { namespaces, user: 'own' },
      { namespaces, user: 'runtime' },
    ]
  })
  for (const candidate of candidates) if (await works(candidate)) return candidate
  throw new Error(
    'No executor can be confined. Install setpriv, choom, env, nice, prlimit and taskset of util-linux and coreutils.',
  )
}

/** Whether a confinement works, and a process in it can read Node and the executor's program. */
async function works(confinement: Confinement): Promise<boolean> {
  const [program, ...args] = [
    ...confinementCommand(confinement, userRange[0]),
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

/** Returns the start of the command. The process is killed when the runtime ends, and can't gain privileges. */
function confinementCommand({ namespaces, user }: Confinement, uid: number): Command {
  const withDeathSignal = ['setpriv', '--pdeathsig', 'KILL'] as const
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
    // A change of the user clears the death signal, so it is set again afterwards.
    ...withDeathSignal,
    ...(namespaces.length === 0
      ? []
      : ['unshare', ...flags, ...(hasProcesses ? ['--fork', '--kill-child=KILL'] : []), ...withDeathSignal]),
    ...(process.getuid?.() === 0 ? [...(user === 'own' ? asUser(uid) : []), ...withoutCapabilities] : []),
    '--no-new-privs',
  ]
}

function asUser(uid: number): string[] {
  return [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
}
