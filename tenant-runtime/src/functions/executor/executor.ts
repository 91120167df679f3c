// The runtime's side of an executor: a child process that does one thing at a time and is killed at the deadline.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { promisify } from 'node:util'
import { pageBytes } from '../module/abi.ts'
import {
  dataLimit,
  executorCommand,
  executorPriority,
  findConfinement,
  limitCommand,
  randomUser,
  type Confinement,
} from './confinement.ts'
import {
  FrameReader,
  encodeFrame,
  type Frame,
  type LogLevel,
  type Outcome,
  type Reply,
  type Request,
} from './protocol.ts'
import { noUsage, readUsage, type Usage } from './process-usage.ts'
import { RunCalls, rejectCall, type CallHandler } from './run-calls.ts'

/** A module that executors can run. */
export interface Module {
  /** The hash of the deployed module. */
  key: string
  bytes: Uint8Array
  /** Initial and maximum pages that the module states. */
  memory: { initial: number; maximum: number | undefined } | undefined
  /** Whether the module can have effects outside of the executor. */
  reachesOut: boolean
}

export interface Run {
  module: Module
  /** Maximum number of pages of the function's memory. */
  memoryPages: number
  environment: readonly string[]
  name: string
  input: Uint8Array
  timeoutMilliseconds: number
  /** Receives the function's log while it runs, in chunks that are not whole lines. */
  onLog: (level: LogLevel, text: Buffer) => void
  /** Handles the function's calls; by default, all are rejected. */
  onCall?: CallHandler
}

/** The reason to stop a run: its caller has disconnected, or others wait for its executor. */
export type StopReason = 'caller-left' | 'made-room'

/** The failure of a compilation or run. After all but `rejected` the executor has ended. */
export type Failure =
  | { kind: 'timeout' }
  | { kind: 'stopped'; reason: StopReason }
  | { kind: 'rejected'; message: string }
  | { kind: 'died'; message: string }
type RunOutcome = Outcome | Failure

export interface RunResult {
  outcome: RunOutcome
  output: Buffer
  /** Peak of the memory in bytes. */
  memoryPeak: number
  cpuMicroseconds: number
  /** Bytes of the log beyond the limit of one run. */
  logCut: number
}

const runCommand = promisify(execFile)

export const outputLimit = 6 * 1024 * 1024
const logLimit = 64 * 1024
const maxModules = 16
/** Longest frame in bytes; a correct executor sends none that is longer. */
const maxReplyBytes = outputLimit + 1024 * 1024
const startMilliseconds = 10_000
/** Default of a function's memory in bytes, for which an executor is started. */
const defaultMemoryBytes = 128 * 1024 * 1024
/** Largest memory in bytes after which the executor is reused. V8 may retain a larger one, which limits the next run. */
const maxReusedMemoryBytes = 64 * 1024 * 1024
/** The lowest priority of Linux. */
const lowestPriority = 19
/** Microseconds of CPU time after which work may continue at the lowest priority. */
const muchCpuMicroseconds = 250_000
/** Longest text of Node's standard error that is reported. A module can't write to it. */
const maxStderrLength = 2_000

class ExecutorEnded extends Error {
  readonly outcome: Failure
  readonly usage: Usage

  constructor(outcome: Failure, usage: Usage) {
    super(`The executor ended: ${outcome.kind}.`)
    this.outcome = outcome
    this.usage = usage
  }
}

function endOf(error: unknown): ExecutorEnded {
  if (error instanceof ExecutorEnded) return error
  throw error
}

export class Executor {
  readonly #child: ChildProcess
  readonly #confinement: Confinement
  readonly #user = randomUser()
  #pid: number | undefined
  /** Bytes that the process may allocate now. */
  #dataLimit = dataLimit(defaultMemoryBytes)
  /** Keys of the compiled modules in the process, least recently used first. */
  readonly #modules = new Set<string>()
  readonly #frames = new FrameReader<Reply>(maxReplyBytes)
  #onLog: Run['onLog'] | undefined
  /** Calls of the current run. */
  #calls: RunCalls | undefined
  /** Identity of the current run or compilation; undefined if there is none. */
  #work: object | undefined
  /** CPU time that the process has reported, in microseconds. */
  #cpu = 0
  /** CPU time at the start of the current work, in microseconds. */
  #cpuBefore = 0
  #waiting: { resolve: (frame: Frame<Reply>) => void; reject: (error: Error) => void } | undefined
  #gone: Error | undefined
  /** The end that the runtime has decided for the current work. */
  #ending: ExecutorEnded | undefined
  #hasLowPriority = false
  readonly exited: Promise<void>

  private constructor(confinement: Confinement) {
    this.#confinement = confinement
    const [program, ...args] = executorCommand(confinement, this.#user, defaultMemoryBytes)
    this.#child = spawn(program, args, { cwd: '/', env: { PATH: '/usr/bin:/bin' }, stdio: ['pipe', 'pipe', 'pipe'] })
    let stderr = ''
    this.#child.stderr
      ?.setEncoding('utf8')
      .on('data', (text: string) => (stderr = (stderr + text).slice(-maxStderrLength)))
    this.exited = new Promise((resolve) => {
      const end = (reason: string) => {
        this.#fail(new Error(reason))
        resolve()
      }
      this.#child.once('close', (code, signal) =>
        end(`The executor ended (${signal ?? `code ${code ?? '?'}`})${stderr === '' ? '.' : `: ${stderr}`}`),
      )
      this.#child.once('error', (error) => end(`The executor could not be started: ${error.message}`))
    })
    this.#child.stdout?.on('data', (chunk: Buffer) => this.#receive(chunk))
    // A pipe breaks if the executor ends, which is reported above.
    for (const pipe of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) pipe?.on('error', () => undefined)
  }

  /** Starts an executor. @throws Error if the process does not respond */
  static async start(): Promise<Executor> {
    const confinement = await findConfinement()
    const executor = new Executor(confinement)
    const timer = setTimeout(() => executor.kill(), startMilliseconds)
    try {
      await executor.#reply()
      if (confinement.namespaces.includes('pid')) executor.#pid = await onlyChildOf(executor.#child.pid)
      return executor
    } finally {
      clearTimeout(timer)
    }
  }

  /** The process that runs modules. It may be a child of the spawned process. */
  get pid(): number | undefined {
    return this.#pid ?? this.#child.pid
  }

  get isAlive(): boolean {
    return this.#gone === undefined
  }

  kill(): void {
    this.#child.kill('SIGKILL')
    this.#fail(new Error('The executor was killed.'))
  }

  /** Reads the process' usage and then kills it, so that the current work ends with `failure`. */
  stop(failure: Failure): void {
    if (this.#ending !== undefined) return
    this.#ending = new ExecutorEnded(failure, noUsage)
    void this.#usage().then((usage) => {
      this.#ending = new ExecutorEnded(failure, usage)
      this.kill()
    })
  }

  /**
   * Gives the process the lowest priority if its work has used much CPU time, so that shorter runs are not delayed by it. Work
   * that waits, for a database or for its turn on a busy machine, keeps its priority.
   */
  async lowerPriority(): Promise<void> {
    const work = this.#work
    if (this.#hasLowPriority || work === undefined) return
    const { cpuMicroseconds } = await this.#usage()
    // The work may have ended meanwhile. The next one begins with the usual priority.
    if (cpuMicroseconds < muchCpuMicroseconds || this.#work !== work) return
    this.#hasLowPriority = trySetPriority(this.pid, lowestPriority)
  }

  /** Gives the process its priority back. @returns false if the machine does not allow it */
  restorePriority(): boolean {
    if (!this.#hasLowPriority) return true
    this.#hasLowPriority = !trySetPriority(this.pid, executorPriority)
    return !this.#hasLowPriority
  }

  /** Compiles a module, as a check. @returns the failure; undefined if the module is valid */
  async compile(module: Module, timeoutMilliseconds: number): Promise<Failure | undefined> {
    return this.#withDeadline(timeoutMilliseconds, () => this.#load(module)).catch(
      (error: unknown) => endOf(error).outcome,
    )
  }

  /** Runs a module. A failure of the function is part of the result, never thrown. */
  async run({
    module,
    memoryPages,
    environment,
    name,
    input,
    timeoutMilliseconds,
    onLog,
    onCall = rejectCall,
  }: Run): Promise<RunResult> {
    const empty = { output: Buffer.alloc(0), logCut: 0 }
    this.#onLog = onLog
    const calls = new RunCalls(onCall, ({ ok, bytes }) =>
      this.#child.stdin?.write(encodeFrame({ kind: 'response', ok }, bytes)),
    )
    this.#calls = calls
    try {
      return await this.#withDeadline(timeoutMilliseconds, async () => {
        await this.#allow(memoryPages * pageBytes)
        const rejection = await this.#load(module)
        if (rejection !== undefined)
          return { ...empty, memoryPeak: 0, cpuMicroseconds: this.#cpu - this.#cpuBefore, outcome: rejection }
        const memory = module.memory && {
          initial: module.memory.initial,
          maximum: Math.min(module.memory.maximum ?? memoryPages, memoryPages),
        }
        const { head, bytes } = await this.#request(
          {
            kind: 'run',
            key: module.key,
            memory,
            arguments: [name],
            environment: [...environment],
            outputLimit,
            logLimit,
          },
          input,
        )
        if (head.kind !== 'ran') throw new Error(`The executor replied to a run with "${head.kind}".`)
        const { outcome, memoryPeak, logCut } = head
        if (memoryPeak > maxReusedMemoryBytes) this.kill()
        return { outcome, output: bytes, memoryPeak, cpuMicroseconds: this.#cpu - this.#cpuBefore, logCut }
      })
    } catch (error) {
      const { outcome, usage } = endOf(error)
      return { ...empty, ...usage, outcome }
    } finally {
      this.#onLog = undefined
      this.#calls = undefined
      calls.end()
    }
  }

  /** Changes the process' limit to that for the function's memory. */
  async #allow(memory: number): Promise<void> {
    const limit = dataLimit(memory)
    if (limit === this.#dataLimit) return
    const [program, ...args] = limitCommand(this.#confinement, this.#user, this.pid ?? 0, memory)
    await runCommand(program, args, { timeout: startMilliseconds })
    this.#dataLimit = limit
  }

  async #load(module: Module): Promise<{ kind: 'rejected'; message: string } | undefined> {
    const isLoaded = this.#modules.delete(module.key)
    this.#modules.add(module.key)
    if (isLoaded) return undefined
    const [oldest] = this.#modules
    if (this.#modules.size > maxModules && oldest !== undefined) {
      this.#modules.delete(oldest)
      this.#child.stdin?.write(encodeFrame({ kind: 'evict', key: oldest }))
    }
    const { head } = await this.#request({ kind: 'compile', key: module.key }, module.bytes)
    if (head.kind === 'compiled') return undefined
    this.#modules.delete(module.key)
    return {
      kind: 'rejected',
      message: head.kind === 'rejected' ? head.message : 'The executor sent an invalid reply.',
    }
  }

  /** Runs work with a deadline, at which it reads the process' usage and then kills it. @throws ExecutorEnded */
  async #withDeadline<T>(milliseconds: number, work: () => Promise<T>): Promise<T> {
    this.#cpuBefore = this.#cpu
    this.#work = {}
    const timer = setTimeout(() => this.stop({ kind: 'timeout' }), milliseconds)
    try {
      return await work()
    } catch (error) {
      this.kill()
      throw (
        this.#ending ??
        new ExecutorEnded(
          { kind: 'died', message: error instanceof Error ? error.message : 'The executor failed.' },
          noUsage,
        )
      )
    } finally {
      clearTimeout(timer)
      this.#work = undefined
      // Work may end just before the process is killed. The process must not begin another one.
      if (this.#ending !== undefined) this.kill()
    }
  }

  /** Reads the process' peak memory, and its CPU time for the current work. */
  async #usage(): Promise<Usage> {
    const { memoryPeak, cpuMicroseconds } = await readUsage(this.pid)
    return { memoryPeak, cpuMicroseconds: Math.max(0, cpuMicroseconds - this.#cpuBefore) }
  }

  #request(head: Request, bytes: Uint8Array): Promise<Frame<Reply>> {
    const reply = this.#reply()
    this.#child.stdin?.write(encodeFrame(head, bytes))
    return reply
  }

  #reply(): Promise<Frame<Reply>> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone)
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  #receive(chunk: Buffer): void {
    try {
      for (const frame of this.#frames.push(chunk)) this.#take(frame)
    } catch (cause) {
      this.#fail(new Error('The executor sent an invalid frame.', { cause }))
      this.kill()
    }
  }

  #take(frame: Frame<Reply>): void {
    if (frame.head.kind === 'log') {
      this.#onLog?.(frame.head.level, frame.bytes)
      return
    }
    if (frame.head.kind === 'call') {
      if (this.#calls === undefined) throw new Error('A call came without a run.')
      this.#calls.take(frame.head, frame.bytes)
      return
    }
    this.#calls?.checkIdle()
    this.#cpu = frame.head.cpu
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.resolve(frame)
  }

  #fail(error: Error): void {
    this.#gone ??= error
    this.#waiting?.reject(this.#gone)
    this.#waiting = undefined
  }
}

/** Changes a process' priority. @returns whether the machine allowed it */
function trySetPriority(pid: number | undefined, priority: number): boolean {
  if (pid === undefined) return false
  try {
    setPriority(pid, priority)
    return true
  } catch {
    return false
  }
}

async function onlyChildOf(pid = 0): Promise<number | undefined> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return /^(\d+) $/.test(children) ? Number(children) : undefined
}
