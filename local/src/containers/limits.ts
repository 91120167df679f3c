// The limits of a program that an operating-system user and `prlimit` can enforce.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Resources } from '../../../control-plane/src/stacks/index.ts'
import type { Command } from '../process/unprivileged.ts'

const run = promisify(execFile)

const maxOpenFiles = 4_096

const megabyte = 1024 * 1024

/** The rules by which the limit of memory of a program is set. */
export interface MemoryLimit {
  /** Bytes that the limit needs in addition to the service's. */
  reservedBytes: number
  /** Bytes up to which the program may raise the limit of its child processes. */
  largestBytes: number
}

/** The program starts no other programs. */
export const plainMemory: MemoryLimit = { reservedBytes: 0, largestBytes: 0 }

/**
 * Each process of Node reserves address space for code that it compiles, which the kernel counts as memory in use. The
 * runtime sets the limits of the executors of functions itself.
 */
export const runtimeMemory: MemoryLimit = { reservedBytes: 512 * megabyte, largestBytes: 1536 * megabyte }

/**
 * Limits of a further program that the control plane runs, such as a client of Postgres. The kernel compares `pids` with all
 * processes of the user, which include those of the service, so it exceeds the service's own limit.
 */
export const clientResources: Resources = { memoryBytes: 1024 * megabyte, cpuMillis: 0, pids: 512 }

/** Limits of one program. */
export interface Limits {
  resources: Resources
  memory: MemoryLimit
  /** Whether no other program runs as its user. */
  hasOwnUser: boolean
}

/**
 * Returns arguments of `prlimit`. The memory is that of each process, without what it shares with others. The number of
 * processes is that of a user, so it only applies to a user that runs one program.
 */
function limitArguments({ resources, memory, hasOwnUser }: Limits): string[] {
  const soft = resources.memoryBytes + memory.reservedBytes
  // A user's own process could not raise its hard limits again, so only root sets them.
  const hard = hasOwnUser ? String(Math.max(soft, memory.largestBytes)) : ''
  return [`--data=${soft}:${hard}`, '--core=0', ...(hasOwnUser ? [`--nproc=${resources.pids}`] : [])]
}

/** Returns a command that runs another one with the limits. */
export function limited(limits: Limits, { command, args }: Command): Command {
  return {
    command: 'prlimit',
    args: [...limitArguments(limits), `--nofile=${maxOpenFiles}`, command, ...args],
  }
}

/** Sets the limits of a running process, which its later child processes inherit. */
export async function setLimits(pid: number, limits: Limits): Promise<void> {
  await run('prlimit', ['--pid', String(pid), ...limitArguments(limits)], { timeout: 5_000 })
}

/** Returns what is not enforced, for the operator. */
export function limitWarnings(hasOwnUsers: boolean): string[] {
  return [
    'Tenants with their own database run as processes: no network isolation, no limit of CPU time or disk space.',
    'The limit of memory applies to each process of a service, and not to their sum.',
    ...(hasOwnUsers
      ? []
      : [
          'All processes run as one operating-system user: no limit of the number of processes, ' +
            "and a program that escapes its service can read all tenants' data.",
        ]),
  ]
}
