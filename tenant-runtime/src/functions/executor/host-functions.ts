// The host's own functions for one run. It handles the log and the environment itself and forwards the other calls to the
// runtime, for which the module waits. Runs in the executor's process only.
import { callLimit, logLevels, type HostCallName, type LogLevel } from './protocol.ts'

interface HostRun {
  memory: () => ArrayBuffer
  /** Entries `NAME=value`. */
  environment: readonly string[]
  log: (level: LogLevel, text: Uint8Array) => void
  /** Calls the runtime. The parts have at most `callLimit` bytes together. */
  request: (name: HostCallName, parts: readonly Uint8Array[]) => CallResult
  /** Throws if the module has ended. */
  leaveIfOver: () => void
}

interface CallResult {
  ok: boolean
  bytes: Uint8Array
}

type Import = (...parameters: number[]) => number | undefined

export class HostFunctions {
  readonly #run: HostRun
  /** The last result, for `take`. */
  #last: Uint8Array = new Uint8Array()

  constructor(run: HostRun) {
    this.#run = run
  }

  imports(): Record<string, Import> {
    const { log } = this.#run
    const offered: Record<string, Import> = {
      log: (level = 0, at = 0, length = 0) => {
        const text = this.#slice(at, length)
        // The function has no result, so only a trap can report the error.
        if (text === undefined) throw new Error('log: The text is outside of the memory.')
        log(logLevels[Math.min(Math.max(level, 0), logLevels.length - 1)] ?? 'info', text)
        return undefined
      },
      env: (at = 0, length = 0) => this.#storeResult(this.#variable(at, length)),
      db_query: (...given) => this.#call('db_query', given),
      storage_get: (...given) => this.#call('storage_get', given),
      storage_put: (...given) => this.#call('storage_put', given),
      storage_delete: (...given) => this.#call('storage_delete', given),
      http_fetch: (...given) => this.#call('http_fetch', given),
      take: (at = 0, size = 0) => {
        const taken = this.#last.subarray(0, size >>> 0)
        const target = this.#slice(at, taken.length)
        if (target === undefined) return -1
        target.set(taken)
        return taken.length
      },
    }
    return Object.fromEntries(
      Object.entries(offered).map(([name, call]) => [
        name,
        (...given: number[]) => {
          this.#run.leaveIfOver()
          return call(...given)
        },
      ]),
    )
  }

  /** Returns a part of the memory; undefined if it is outside. */
  #slice(at: number, length: number): Uint8Array | undefined {
    const memory = this.#run.memory()
    const [begin, size] = [at >>> 0, length >>> 0]
    return begin + size > memory.byteLength ? undefined : new Uint8Array(memory, begin, size)
  }

  /** Calls the runtime. @param given pairs of addresses and lengths */
  #call(name: HostCallName, given: readonly number[]): number {
    const parts: Uint8Array[] = []
    for (let n = 0; n < given.length; n += 2) {
      const part = this.#slice(given[n] ?? 0, given[n + 1] ?? 0)
      if (part === undefined)
        return this.#storeResult(failure('BAD_ADDRESS', `${name}: A parameter is outside of the memory.`))
      parts.push(part)
    }
    const bytes = parts.reduce((sum, { length }) => sum + length, 0)
    if (bytes > callLimit)
      return this.#storeResult(
        failure('CALL_TOO_LARGE', `${name}: The parameters have ${bytes} bytes. At most ${callLimit} are allowed.`),
      )
    return this.#storeResult(this.#run.request(name, parts))
  }

  #variable(at: number, length: number): CallResult {
    const bytes = this.#slice(at, length)
    if (bytes === undefined) return failure('BAD_ADDRESS', 'env: The name is outside of the memory.')
    const begin = `${Buffer.from(bytes).toString('utf8')}=`
    const found = this.#run.environment.find((entry) => entry.startsWith(begin))
    return found === undefined
      ? failure('NO_SUCH_VARIABLE', 'env: The variable does not exist.')
      : { ok: true, bytes: Buffer.from(found.slice(begin.length)) }
  }

  /** Stores a result for `take` and returns its length; -(1 + length) for an error. */
  #storeResult({ ok, bytes }: CallResult): number {
    this.#last = bytes
    return ok ? bytes.length : -1 - bytes.length
  }
}

function failure(code: string, message: string): CallResult {
  return { ok: false, bytes: Buffer.from(JSON.stringify({ code, message })) }
}
