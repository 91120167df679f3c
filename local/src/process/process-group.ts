// Ending a process group: asked first, killed when it does not listen.
import { setTimeout as sleep } from 'node:timers/promises'
import { allProcesses } from './process-identity.ts'

const killWaitMilliseconds = 5_000
const pollMilliseconds = 10

interface EndGroupOptions {
  signal: NodeJS.Signals
  /** How long the group may take over it. */
  milliseconds: number
  /** Aborted: no more patience. */
  expedite?: AbortSignal
  /** Asked once more with this one, for a second, before SIGKILL. */
  lastSignal?: NodeJS.Signals
}

/**
 * Returns when nothing of the group is left.
 * @throws Error when some of it can't be killed (another user's, or stuck in the kernel)
 */
export async function endGroup(group: number, options: EndGroupOptions): Promise<void> {
  const { signal, milliseconds, expedite, lastSignal } = options
  signalGroup(group, signal)
  if (await gone(group, milliseconds, expedite)) return
  if (lastSignal !== undefined) {
    signalGroup(group, lastSignal)
    if (await gone(group, 1_000)) return
  }
  signalGroup(group, 'SIGKILL')
  if (!(await gone(group, killWaitMilliseconds))) throw new Error(`process group ${group} can't be ended`)
}

async function gone(group: number, milliseconds: number, expedite?: AbortSignal): Promise<boolean> {
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
  // The kernel counts zombies, which nobody may come to collect.
  return (await groupMembers(group)).length > 0
}

/** Pids of the processes in a group. */
export async function groupMembers(group: number): Promise<number[]> {
  return (await allProcesses()).filter((stat) => stat.group === group).map((stat) => stat.pid)
}

function signalGroup(group: number, signal: NodeJS.Signals): void {
  signalProcess(-group, signal)
}

/** Signals a process, or with a negative number a group. One that is gone, or not ours to signal, is no error. */
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
