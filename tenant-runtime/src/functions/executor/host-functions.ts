// The host's own functions for one run: its log and environment here, the rest asked of the runtime while the guest waits.
// Runs in the executor's process only.
import { callLimit, logLevels, type HostCallName, type LogLevel } from './protocol.ts'

interface HostRun {
  memory: () => ArrayBuffer
  /** `NAME=value`. */
  environment: readonly string[]
  log: (level: LogLevel, text: Uint8Array) => void
  /** Asks the runtime. The parts are at most `callLimit` bytes together. */
  request: (name: HostCallName, parts: readonly Uint8Array[]) => ApiResponse
  /** Throws when the guest is to do nothing any more. */
  leaveIfOver: () => void
}

interface ApiResponse {
  ok: boolean
  bytes: Uint8Array
}

type Import = (...parameters: number[]) => number | undefined

export class HostFunctions {
  readonly #run: HostRun
  /** The last answer, for `take`. */
  #last: Uint8Array = new Uint8Array()

  constructor(run: HostRun) {
    this.#run = run
  }

  imports(): Record<string, Import> {
    const { log } = this.#run
    const offered: Record<string, Import> = {
      log: (level = 0, at = 0, length = 0) => {
        const text = this.#slice(at, length)
        // It gives no result, so a trap is all that can tell of the mistake.
        if (text === undefined) throw new Error('the text of a log call lies outside of the memory')
        log(logLevels[Math.min(Math.max(level, 0), logLevels.length - 1)] ?? 'info', text)
        return undefined
      },
      env: (at = 0, length = 0) => this.#response(this.#variable(at, length)),
      db_query: (...given) => this.#call('db_query', given),
      storage_get: (...given) => this.#call('storage_get', given),
      storage_put: (...given) => this.#call('storage_put', given),
      storage_delete: (...given) => this.#call('storage_delete', given),
      http_fetch: (...given) => this.#call('http_fetch', given),
      take: (at = 0, size = 0) => {
        const taken = this.#last.subarray(0, size >>> 0)
        const location = this.#slice(at, taken.length)
        if (location === undefined) return -1
        location.set(taken)
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

  /** Undefined for what lies outside of the memory. */
  #slice(at: number, length: number): Uint8Array | undefined {
    const memory = this.#run.memory()
    const [begin, size] = [at >>> 0, length >>> 0]
    return begin + size > memory.byteLength ? undefined : new Uint8Array(memory, begin, size)
  }

  /** @param given addresses and lengths, in pairs */
  #call(name: HostCallName, given: readonly number[]): number {
    const parts: Uint8Array[] = []
    for (let n = 0; n < given.length; n += 2) {
      const part = this.#slice(given[n] ?? 0, given[n + 1] ?? 0)
      if (part === undefined)
        return this.#response(failure('BAD_ADDRESS', `${name}: a parameter lies outside of the memory`))
      parts.push(part)
    }
    const bytes = parts.reduce((sum, { length }) => sum + length, 0)
    if (bytes > callLimit)
      return this.#response(
        failure('CALL_TOO_LARGE', `${name}: the parameters have ${bytes} bytes; at most ${callLimit} are taken`),
      )
    return this.#response(this.#run.request(name, parts))
  }

  #variable(at: number, length: number): ApiResponse {
    const bytes = this.#slice(at, length)
    if (bytes === undefined) return failure('BAD_ADDRESS', 'env: the name lies outside of the memory')
    const begin = `${Buffer.from(bytes).toString('utf8')}=`
    const found = this.#run.environment.find((entry) => entry.startsWith(begin))
    return found === undefined
      ? failure('NO_SUCH_VARIABLE', 'there is no variable of this name')
      : { ok: true, bytes: Buffer.from(found.slice(begin.length)) }
  }

  /** An answer's length, or -(1 + length) of an error; `take` copies either. */
  #response({ ok, bytes }: ApiResponse): number {
    this.#last = bytes
    return ok ? bytes.length : -1 - bytes.length
  }
}

function failure(code: string, message: string): ApiResponse {
  return { ok: false, bytes: Buffer.from(JSON.stringify({ code, message })) }
}
