// Ends a process group: it receives a signal, and is killed after a time limit.
import { setTimeout as sleep } from 'node:timers/promises'
import { allProcesses } from './process-identity.ts'

const killWaitMilliseconds = 5_000
const pollMilliseconds = 10

interface EndGroupOptions {
  signal: NodeJS.Signals
  /** Time limit of the group after the signal. */
  milliseconds: number
  /** Signal that ends the wait, so that the group is killed at once. */
  expedite?: AbortSignal
  /** Further signal, with a time limit of one second, before SIGKILL. */
  lastSignal?: NodeJS.Signals
}

/**
 * Returns when no process of the group remains.
 * @throws Error if a process cannot be killed (another user's, or blocked in the kernel)
 */
export async function endGroup(group: number, options: EndGroupOptions): Promise<void> {
  const { signal, milliseconds, expedite, lastSignal } = options
  signalGroup(group, signal)
  if (await hasEnded(group, milliseconds, expedite)) return
  if (lastSignal !== undefined) {
    signalGroup(group, lastSignal)
    if (await hasEnded(group, 1_000)) return
  }
  signalGroup(group, 'SIGKILL')
  if (!(await hasEnded(group, killWaitMilliseconds))) throw new Error(`The process group ${group} could not be ended.`)
}

async function hasEnded(group: number, milliseconds: number, expedite?: AbortSignal): Promise<boolean> {
  const deadline = performance.now() + milliseconds
  for (;;) {
    if (!(await hasMembers(group))) return true
    if (performance.now() > deadline || expedite?.aborted === true) return false
    await sleep(pollMilliseconds)
  }
}

async function hasMembers(group: number): Promise<boolean> {
  try {
    process.kill(-group, 0)
  } catch (cause) {
    if (hasCode(cause, 'ESRCH')) return false
  }
  // The kernel includes zombies, which may never be reaped.
  return (await groupMembers(group)).length > 0
}

/** Returns the PIDs of the processes in a group. */
export async function groupMembers(group: number): Promise<number[]> {
  return (await allProcesses()).filter((stat) => stat.group === group).map((stat) => stat.pid)
}

function signalGroup(group: number, signal: NodeJS.Signals): void {
  signalProcess(-group, signal)
}

/** Signals a process or, with a negative number, a group. One that has ended, or belongs to another user, is not an error. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (cause) {
    if (!hasCode(cause, 'ESRCH') && !hasCode(cause, 'EPERM')) throw cause
  }
}

function hasCode(cause: unknown, code: string): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === code
}
