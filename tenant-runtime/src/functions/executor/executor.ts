// An executor as the runtime sees it: a child process that runs one thing at a time and is killed at the deadline.
import { spawn, type ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { decodeFrame, encodeFrame, prefixBytes, type Frame, type Outcome, type Reply, type Request } from './protocol.ts'

/** A module as executors take it. */
export interface Module {
  /** Names the bytes: the hash of the deployed module. */
  key: string
  bytes: Uint8Array
  /** Pages at the start, and the most that the module itself allows. */
  memory: { initial: number; maximum: number | undefined } | undefined
}

export interface Run {
  module: Module
  /** Most pages the function may have. */
  memoryPages: number
  environment: readonly string[]
  name: string
  input: Uint8Array
  timeoutMilliseconds: number
}

/** After `timeout` and `died` the executor is gone. */
export type Failure = { kind: 'timeout' } | { kind: 'refused'; message: string } | { kind: 'died'; message: string }
export type RunOutcome = Outcome | Failure

export interface RunResult {
  outcome: RunOutcome
  output: Buffer
  log: string
  memoryPeak: number
}

export const outputLimit = 6 * 1024 * 1024
const logLimit = 64 * 1024
const maxModules = 16
/** More than an honest executor ever sends. */
const maxReply = outputLimit + 1024 * 1024
const startMilliseconds = 10_000
/** Of Node's own last words; a guest cannot write there. */
const longestComplaint = 2_000
/** What an executor may allocate: the largest function's memory, a compiler's working space, and Node itself. */
const dataLimit = 1_280 * 1024 * 1024

/** Named by the package, because images hold it elsewhere beside this module than the source does. */
const child = fileURLToPath(import.meta.resolve('#executor'))
const source = dirname(dirname(child))
const runtime = dirname(dirname(source))

const nodeArguments = [
  '--permission', `--allow-fs-read=${source}/*`, `--allow-fs-read=${join(runtime, 'package.json')}`,
  '--disallow-code-generation-from-strings', '--no-addons', '--max-old-space-size=64', '--max-semi-space-size=2',
  '--v8-pool-size=1', '--wasm-max-mem-pages=8192', '--wasm-max-table-size=100000', '--wasm-max-committed-code-mb=256',
  child,
]

class ExecutorEnded extends Error {
  readonly outcome: Failure
  readonly memoryPeak: number

  constructor(outcome: Failure, memoryPeak: number) {
    super(`the executor ended: ${outcome.kind}`)
    this.outcome = outcome
    this.memoryPeak = memoryPeak
  }
}

function endOf(error: unknown): ExecutorEnded {
  if (error instanceof ExecutorEnded) return error
  throw error
}

export class Executor {
  readonly #child: ChildProcess
  /** Keys of the modules it holds compiled, the latest used last. */
  readonly #modules = new Set<string>()
  #received: Buffer[] = []
  #receivedBytes = 0
  #waiting: { resolve: (frame: Frame<Reply>) => void; reject: (error: Error) => void } | undefined
  #gone: Error | undefined
  readonly exited: Promise<void>

  private constructor() {
    // It dies with the runtime, whatever it is doing, knows nothing of our environment, whoever adds to that, and can't
    // allocate the machine away.
    this.#child = spawn(
      'setpriv',
      ['--pdeathsig', 'KILL', '--no-new-privs', 'env', '-i', 'TZ=UTC', 'prlimit', `--data=${dataLimit}`, '--core=0', '--nofile=64', '--fsize=0', process.execPath, ...nodeArguments],
      { cwd: '/', env: { PATH: '/usr/bin:/bin' }, stdio: ['pipe', 'pipe', 'pipe'] },
    )
    let complaint = ''
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (complaint = (complaint + text).slice(-longestComplaint)))
    this.exited = new Promise((resolve) => {
      const end = (why: string) => {
        this.#fail(new Error(why))
        resolve()
      }
      this.#child.once('close', (code, signal) => end(`the executor ended (${signal ?? `code ${code ?? '?'}`})${complaint === '' ? '' : `: ${complaint}`}`))
      this.#child.once('error', (error) => end(`the executor could not be started: ${error.message}`))
    })
    this.#child.stdout?.on('data', (chunk: Buffer) => this.#receive(chunk))
    // A pipe that broke is an executor that ended; that is reported above.
    for (const pipe of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) pipe?.on('error', () => undefined)
  }

  /** @throws Error when the process does not answer */
  static async start(): Promise<Executor> {
    const executor = new Executor()
    const timer = setTimeout(() => executor.kill(), startMilliseconds)
    try {
      await executor.#reply()
      return executor
    } finally {
      clearTimeout(timer)
    }
  }

  get pid(): number | undefined {
    return this.#child.pid
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
  async run({ module, memoryPages, environment, name, input, timeoutMilliseconds }: Run): Promise<RunResult> {
    const nothing = { output: Buffer.alloc(0), log: '', memoryPeak: 0 }
    try {
      return await this.#within(timeoutMilliseconds, async () => {
        const refusal = await this.#load(module)
        if (refusal !== undefined) return { ...nothing, outcome: refusal }
        const memory = module.memory && { initial: module.memory.initial, maximum: Math.min(module.memory.maximum ?? memoryPages, memoryPages) }
        const { head, bytes } = await this.#ask({ kind: 'run', key: module.key, memory, arguments: [name], environment: [...environment], outputLimit, logLimit }, input)
        if (head.kind !== 'ran') throw new Error(`the executor answered a run with "${head.kind}"`)
        return { outcome: head.outcome, output: bytes, log: head.log, memoryPeak: head.memoryPeak }
      })
    } catch (error) {
      const { outcome, memoryPeak } = endOf(error)
      return { ...nothing, outcome, memoryPeak }
    }
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
    const { head } = await this.#ask({ kind: 'compile', key: module.key }, module.bytes)
    if (head.kind === 'compiled') return undefined
    this.#modules.delete(module.key)
    return { kind: 'refused', message: head.kind === 'refused' ? head.message : 'the executor gave no proper answer' }
  }

  /** Kills the process when the work takes too long; its peak is read first, because a dead process has none. */
  async #within<T>(milliseconds: number, work: () => Promise<T>): Promise<T> {
    let timeout: ExecutorEnded | undefined
    const timer = setTimeout(() => {
      timeout = new ExecutorEnded({ kind: 'timeout' }, 0)
      void this.#peak().then((bytes) => {
        timeout = new ExecutorEnded({ kind: 'timeout' }, bytes)
        this.kill()
      })
    }, milliseconds)
    try {
      return await work()
    } catch (error) {
      this.kill()
      throw timeout ?? new ExecutorEnded({ kind: 'died', message: error instanceof Error ? error.message : 'the executor failed' }, 0)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Greatest memory of the process so far, in bytes. */
  async #peak(): Promise<number> {
    const status = await readFile(`/proc/${this.pid ?? 0}/status`, 'utf8').catch(() => '')
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024
  }

  #ask(head: Request, bytes: Uint8Array): Promise<Frame<Reply>> {
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
    this.#received.push(chunk)
    this.#receivedBytes += chunk.length
    if (this.#receivedBytes < prefixBytes) return
    if ((this.#received[0]?.length ?? 0) < prefixBytes) this.#received = [Buffer.concat(this.#received)]
    const length = this.#received[0]?.readUInt32LE(0) ?? 0
    if (length > maxReply) {
      this.kill()
      return
    }
    if (this.#receivedBytes < prefixBytes + length) return
    const all = Buffer.concat(this.#received)
    this.#received = []
    this.#receivedBytes = 0
    const waiting = this.#waiting
    this.#waiting = undefined
    try {
      waiting?.resolve(decodeFrame<Reply>(all.readUInt32LE(4), all.subarray(prefixBytes, prefixBytes + length)))
    } catch {
      waiting?.reject(new Error('the executor answered something unreadable'))
      this.kill()
    }
  }

  #fail(error: Error): void {
    this.#gone ??= error
    this.#waiting?.reject(this.#gone)
    this.#waiting = undefined
  }
}
