// An executor as the runtime sees it: a child process that runs one thing at a time and is killed at the deadline.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { pageBytes } from '../module/abi.ts'
import { dataLimit, executorCommand, findConfinement, limitCommand, someUser, type Confinement } from './confinement.ts'
import {
  FrameReader,
  encodeFrame,
  type Frame,
  type LogLevel,
  type Outcome,
  type Reply,
  type Request,
} from './protocol.ts'
import { RunCalls, notOffered, type ResponseCall } from './run-calls.ts'

/** A module as executors take it. */
export interface Module {
  /** Names the bytes: the hash of the deployed module. */
  key: string
  bytes: Uint8Array
  /** Pages at the start, and the most that the module itself allows. */
  memory: { initial: number; maximum: number | undefined } | undefined
  /** Whether it can ask the host for anything that others could see. */
  reachesOut: boolean
}

export interface Run {
  module: Module
  /** Most pages the function may have. */
  memoryPages: number
  environment: readonly string[]
  name: string
  input: Uint8Array
  timeoutMilliseconds: number
  /** Told of what the function says, while it runs; pieces are not whole lines. */
  onLog: (level: LogLevel, text: Buffer) => void
  /** Answers what the function asks for, which waits meanwhile; without it nothing is offered. */
  onCall?: ResponseCall
}

/** After `timeout` and `died` the executor is gone. */
export type Failure = { kind: 'timeout' } | { kind: 'refused'; message: string } | { kind: 'died'; message: string }
type RunOutcome = Outcome | Failure

export interface RunResult {
  outcome: RunOutcome
  output: Buffer
  /** Bytes. */
  memoryPeak: number
  cpuMicroseconds: number
  /** Bytes of log beyond what is taken of one run. */
  logCut: number
}

const runCommand = promisify(execFile)

export const outputLimit = 6 * 1024 * 1024
const logLimit = 64 * 1024
const maxModules = 16
/** More than an honest executor ever sends. */
const maxReply = outputLimit + 1024 * 1024
const startMilliseconds = 10_000
/** Bytes; of functions that say nothing of their memory. An executor begins with what these need. */
const usualMemory = 128 * 1024 * 1024
/** Bytes; V8 may keep a larger memory for long, and it would count against what the next run may allocate. */
const largestStored = 64 * 1024 * 1024
/** Linux tells times of processes in hundredths of a second, on every machine that Node runs on. */
const tickMicroseconds = 10_000
/** Of Node's own last words; a guest cannot write there. */
const maxComplaintLength = 2_000
/** What a process has used so far. */
interface Used {
  memoryPeak: number
  cpuMicroseconds: number
}

const nothing: Used = { memoryPeak: 0, cpuMicroseconds: 0 }

class ExecutorEnded extends Error {
  readonly outcome: Failure
  readonly used: Used

  constructor(outcome: Failure, used: Used) {
    super(`the executor ended: ${outcome.kind}`)
    this.outcome = outcome
    this.used = used
  }
}

function endOf(error: unknown): ExecutorEnded {
  if (error instanceof ExecutorEnded) return error
  throw error
}

export class Executor {
  readonly #child: ChildProcess
  readonly #confinement: Confinement
  readonly #user = someUser()
  #pid: number | undefined
  /** What it may allocate now; bytes. */
  #dataLimit = dataLimit(usualMemory)
  /** Keys of the modules it holds compiled, the latest used last. */
  readonly #modules = new Set<string>()
  readonly #frames = new FrameReader<Reply>(maxReply)
  #onLog: Run['onLog'] | undefined
  /** Of the run under way. */
  #calls: RunCalls | undefined
  /** What the process has told of its processor's time, and what it was before the work at hand; microseconds. */
  #cpu = 0
  #cpuBefore = 0
  #waiting: { resolve: (frame: Frame<Reply>) => void; reject: (error: Error) => void } | undefined
  #gone: Error | undefined
  readonly exited: Promise<void>

  private constructor(confinement: Confinement) {
    this.#confinement = confinement
    const [program, ...args] = executorCommand(confinement, this.#user, usualMemory)
    this.#child = spawn(program, args, { cwd: '/', env: { PATH: '/usr/bin:/bin' }, stdio: ['pipe', 'pipe', 'pipe'] })
    let complaint = ''
    this.#child.stderr
      ?.setEncoding('utf8')
      .on('data', (text: string) => (complaint = (complaint + text).slice(-maxComplaintLength)))
    this.exited = new Promise((resolve) => {
      const end = (why: string) => {
        this.#fail(new Error(why))
        resolve()
      }
      this.#child.once('close', (code, signal) =>
        end(`the executor ended (${signal ?? `code ${code ?? '?'}`})${complaint === '' ? '' : `: ${complaint}`}`),
      )
      this.#child.once('error', (error) => end(`the executor could not be started: ${error.message}`))
    })
    this.#child.stdout?.on('data', (chunk: Buffer) => this.#receive(chunk))
    // A pipe that broke is an executor that ended; that is reported above.
    for (const pipe of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) pipe?.on('error', () => undefined)
  }

  /** @throws Error when the process does not answer */
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

  /** Of the process that runs the guest; the one that was spawned may stand before it. */
  get pid(): number | undefined {
    return this.#pid ?? this.#child.pid
  }

  get isAlive(): boolean {
    return this.#gone === undefined
  }

  kill(): void {
    this.#child.kill('SIGKILL')
    this.#fail(new Error('the executor was killed'))
  }

  /** Compiles a module, as a check of it. @returns what is wrong with it */
  async compile(module: Module, timeoutMilliseconds: number): Promise<Failure | undefined> {
    return this.#within(timeoutMilliseconds, () => this.#load(module)).catch((error: unknown) => endOf(error).outcome)
  }

  /** Never throws for what the guest does. */
  async run({
    module,
    memoryPages,
    environment,
    name,
    input,
    timeoutMilliseconds,
    onLog,
    onCall = notOffered,
  }: Run): Promise<RunResult> {
    const empty = { output: Buffer.alloc(0), logCut: 0 }
    this.#onLog = onLog
    const calls = new RunCalls(onCall, ({ ok, bytes }) =>
      this.#child.stdin?.write(encodeFrame({ kind: 'answer', ok }, bytes)),
    )
    this.#calls = calls
    try {
      return await this.#within(timeoutMilliseconds, async () => {
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
        if (head.kind !== 'ran') throw new Error(`the executor answered a run with "${head.kind}"`)
        const { outcome, memoryPeak, logCut } = head
        if (memoryPeak > largestStored) this.kill()
        return { outcome, output: bytes, memoryPeak, cpuMicroseconds: this.#cpu - this.#cpuBefore, logCut }
      })
    } catch (error) {
      const { outcome, used } = endOf(error)
      return { ...empty, ...used, outcome }
    } finally {
      this.#onLog = undefined
      this.#calls = undefined
      calls.end()
    }
  }

  /** What the process may allocate follows what the function may. */
  async #allow(memory: number): Promise<void> {
    const limit = dataLimit(memory)
    if (limit === this.#dataLimit) return
    const [program, ...args] = limitCommand(this.#confinement, this.#user, this.pid ?? 0, memory)
    await runCommand(program, args, { timeout: startMilliseconds })
    this.#dataLimit = limit
  }

  async #load(module: Module): Promise<{ kind: 'refused'; message: string } | undefined> {
    const isLoaded = this.#modules.delete(module.key)
    this.#modules.add(module.key)
    if (isLoaded) return undefined
    const [oldest] = this.#modules
    if (this.#modules.size > maxModules && oldest !== undefined) {
      this.#modules.delete(oldest)
      this.#child.stdin?.write(encodeFrame({ kind: 'forget', key: oldest }))
    }
    const { head } = await this.#request({ kind: 'compile', key: module.key }, module.bytes)
    if (head.kind === 'compiled') return undefined
    this.#modules.delete(module.key)
    return { kind: 'refused', message: head.kind === 'refused' ? head.message : 'the executor gave no proper answer' }
  }

  /** Kills the process when the work takes too long; what it used is read first, because a dead process tells nothing. */
  async #within<T>(milliseconds: number, work: () => Promise<T>): Promise<T> {
    let timeout: ExecutorEnded | undefined
    this.#cpuBefore = this.#cpu
    const timer = setTimeout(() => {
      timeout = new ExecutorEnded({ kind: 'timeout' }, nothing)
      void this.#used().then((used) => {
        timeout = new ExecutorEnded({ kind: 'timeout' }, used)
        this.kill()
      })
    }, milliseconds)
    try {
      return await work()
    } catch (error) {
      this.kill()
      throw (
        timeout ??
        new ExecutorEnded(
          { kind: 'died', message: error instanceof Error ? error.message : 'the executor failed' },
          nothing,
        )
      )
    } finally {
      clearTimeout(timer)
    }
  }

  /** Its greatest memory so far, and the processor's time of the work at hand. */
  async #used(): Promise<Used> {
    const read = (name: string) => readFile(`/proc/${this.pid ?? 0}/${name}`, 'utf8').catch(() => '')
    const [status, stat] = await Promise.all([read('status'), read('stat')])
    // The name of the process may hold anything; behind it come numbers, of which the 12th and 13th are clock ticks.
    const [user = 0, system = 0] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
      .map(Number)
    return {
      memoryPeak: Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024,
      cpuMicroseconds: Math.max(0, (user + system) * tickMicroseconds - this.#cpuBefore),
    }
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
      this.#fail(new Error('the executor answered something unreadable', { cause }))
      this.kill()
    }
  }

  #take(frame: Frame<Reply>): void {
    if (frame.head.kind === 'log') {
      this.#onLog?.(frame.head.level, frame.bytes)
      return
    }
    if (frame.head.kind === 'call') {
      if (this.#calls === undefined) throw new Error('it called while nothing ran')
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

async function onlyChildOf(pid = 0): Promise<number | undefined> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return /^(\d+) $/.test(children) ? Number(children) : undefined
}
