// WASI preview 1 for one run: arguments, environment, clocks, random numbers, the three standard streams, exit, sleep.
// There is no filesystem and no network; whatever asks for one is told so. Runs in the executor's process only.
import { wasiNames, type WasiName } from '../module/abi.ts'

const success = 0
const badDescriptor = 8
const fault = 21
const invalid = 28
const notImplemented = 52
const illegalSeek = 70

/** Thrown to leave the guest. A guest may catch it, so what it stands for is noted beforehand. */
class Leave extends Error {}

export interface WasiRun {
  memory: () => ArrayBuffer
  arguments: readonly string[]
  environment: readonly string[]
  stdin: Uint8Array
  outputLimit: number
  /** Standard error, as it is written. */
  log: (text: Uint8Array) => void
}

type Import = (...parameters: never[]) => number

export class Wasi {
  readonly #run: WasiRun
  readonly #output: Buffer[] = []
  #outputBytes = 0
  #read = 0
  /** Set once the guest has asked to end, or was made to. */
  exitCode: number | undefined
  isFlooded = false

  constructor(run: WasiRun) {
    this.#run = run
  }

  get stdout(): Buffer {
    return Buffer.concat(this.#output)
  }

  /** A guest that caught its own end gets no further than its next call. */
  leaveIfOver(): void {
    if (this.exitCode !== undefined || this.isFlooded) throw new Leave()
  }

  imports(): Record<string, Import> {
    const offered = this.#offered()
    return Object.fromEntries(wasiNames.map((name) => [name, this.#guarded(offered[name] ?? (() => notImplemented))]))
  }

  /** A bad address is the guest's mistake and an errno, never an exception of ours. */
  #guarded(call: Import): Import {
    return (...parameters) => {
      this.leaveIfOver()
      try {
        return call(...parameters)
      } catch (error) {
        if (error instanceof Leave) throw error
        if (error instanceof RangeError || error instanceof TypeError) return fault
        throw error
      }
    }
  }

  #view(): DataView {
    return new DataView(this.#run.memory())
  }

  #slice(address: number, length: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#run.memory(), address >>> 0, length >>> 0)
  }

  #offered(): Partial<Record<WasiName, Import>> {
    const run = this.#run
    return {
      args_sizes_get: (count: number, bytes: number) => this.#listSizes(run.arguments, count, bytes),
      args_get: (pointers: number, buffer: number) => this.#list(run.arguments, pointers, buffer),
      environ_sizes_get: (count: number, bytes: number) => this.#listSizes(run.environment, count, bytes),
      environ_get: (pointers: number, buffer: number) => this.#list(run.environment, pointers, buffer),
      clock_res_get: (_clock: number, at: number) => {
        this.#view().setBigUint64(at >>> 0, 1_000n, true)
        return success
      },
      clock_time_get: (clock: number, _precision: bigint, at: number) => {
        this.#view().setBigUint64(at >>> 0, clock === 0 ? realtime() : process.hrtime.bigint(), true)
        return success
      },
      random_get: (at: number, length: number) => {
        const target = this.#slice(at, length)
        // The generator takes 64 KB at a time.
        for (let from = 0; from < target.length; from += 65_536) crypto.getRandomValues(target.subarray(from, from + 65_536))
        return success
      },
      fd_fdstat_get: (fd: number, at: number) => {
        if (fd > 2) return badDescriptor
        const view = this.#view()
        const start = at >>> 0
        // A character device, no flags, the right to read or to write.
        view.setUint8(start, 2)
        view.setUint16(start + 2, 0, true)
        view.setBigUint64(start + 8, fd === 0 ? 2n : 64n, true)
        view.setBigUint64(start + 16, 0n, true)
        return success
      },
      fd_filestat_get: (fd: number, at: number) => {
        if (fd > 2) return badDescriptor
        const stat = this.#slice(at, 64).fill(0)
        stat[16] = 2
        return success
      },
      fd_prestat_get: () => badDescriptor,
      fd_prestat_dir_name: () => badDescriptor,
      fd_close: (fd: number) => (fd > 2 ? badDescriptor : success),
      fd_seek: (fd: number) => (fd > 2 ? badDescriptor : illegalSeek),
      fd_tell: (fd: number) => (fd > 2 ? badDescriptor : illegalSeek),
      fd_fdstat_set_flags: (fd: number) => (fd > 2 ? badDescriptor : success),
      fd_sync: (fd: number) => (fd > 2 ? badDescriptor : success),
      fd_read: (fd: number, vectors: number, count: number, at: number) => {
        if (fd !== 0) return badDescriptor
        let total = 0
        for (const target of this.#vectors(vectors, count)) {
          const piece = run.stdin.subarray(this.#read, this.#read + target.length)
          target.set(piece)
          this.#read += piece.length
          total += piece.length
        }
        this.#view().setUint32(at >>> 0, total, true)
        return success
      },
      fd_write: (fd: number, vectors: number, count: number, at: number) => {
        if (fd !== 1 && fd !== 2) return badDescriptor
        let total = 0
        for (const source of this.#vectors(vectors, count)) {
          total += source.length
          if (fd === 1) this.#writeOutput(source)
          else run.log(source)
        }
        this.#view().setUint32(at >>> 0, total, true)
        return success
      },
      poll_oneoff: (subscriptions: number, events: number, count: number, at: number) => this.#poll(subscriptions >>> 0, events >>> 0, count >>> 0, at >>> 0),
      sched_yield: () => success,
      proc_exit: (code: number) => {
        this.exitCode = code
        throw new Leave()
      },
    }
  }

  #listSizes(list: readonly string[], count: number, bytes: number): number {
    const view = this.#view()
    view.setUint32(count >>> 0, list.length, true)
    view.setUint32(bytes >>> 0, list.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0), true)
    return success
  }

  #list(list: readonly string[], pointers: number, buffer: number): number {
    const view = this.#view()
    let at = buffer >>> 0
    for (const [index, text] of list.entries()) {
      const bytes = Buffer.from(`${text}\0`)
      view.setUint32((pointers >>> 0) + index * 4, at, true)
      this.#slice(at, bytes.length).set(bytes)
      at += bytes.length
    }
    return success
  }

  *#vectors(address: number, count: number): Generator<Uint8Array<ArrayBuffer>> {
    const view = this.#view()
    for (let index = 0; index < count >>> 0; index++) {
      const at = (address >>> 0) + index * 8
      yield this.#slice(view.getUint32(at, true), view.getUint32(at + 4, true))
    }
  }

  #writeOutput(source: Uint8Array): void {
    this.#outputBytes += source.length
    if (this.#outputBytes > this.#run.outputLimit) {
      this.isFlooded = true
      throw new Leave()
    }
    this.#output.push(Buffer.from(source))
  }

  /** Clocks are slept for; the standard streams are always ready. */
  #poll(subscriptions: number, events: number, count: number, at: number): number {
    if (count === 0) return invalid
    const view = this.#view()
    const wanted = Array.from({ length: Math.min(count, 1_024) }, (_, index) => {
      const from = subscriptions + index * 48
      const kind = view.getUint8(from + 8)
      return { userData: view.getBigUint64(from, true), kind, wait: kind === 0 ? waitOf(view, from + 16) : 0 }
    })
    const shortest = Math.min(...wanted.map(({ wait }) => wait))
    if (shortest > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, shortest)
    let ready = 0
    for (const { userData, kind, wait } of wanted) {
      if (wait > shortest) continue
      const event = events + ready * 32
      this.#slice(event, 32).fill(0)
      view.setBigUint64(event, userData, true)
      view.setUint8(event + 10, kind)
      ready++
    }
    view.setUint32(at, ready, true)
    return success
  }
}

function realtime(): bigint {
  return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1_000)) * 1_000n
}

/** Milliseconds until a clock subscription is due. */
function waitOf(view: DataView, clock: number): number {
  const id = view.getUint32(clock, true)
  const nanoseconds = view.getBigUint64(clock + 8, true)
  const isAbsolute = (view.getUint16(clock + 24, true) & 1) === 1
  const now = id === 0 ? realtime() : process.hrtime.bigint()
  const left = isAbsolute ? nanoseconds - now : nanoseconds
  return left <= 0n ? 0 : Number(left) / 1e6
}
