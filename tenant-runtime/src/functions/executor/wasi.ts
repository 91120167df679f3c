// WASI preview 1 for one run: arguments, environment, clocks, random numbers, the three standard streams, exit, sleep. Calls
// for files or the network return an error. Runs in the executor's process only.
import { wasiNames, type WasiName } from '../module/abi.ts'

const success = 0
const badDescriptor = 8
const fault = 21
const invalid = 28
const notImplemented = 52
const notDirectory = 54
const notSocket = 57
const illegalSeek = 70

const clocks = { realtime: 0, monotonic: 1, processTime: 2, threadTime: 3 } as const
/** Subscriptions that one call may wait for. */
const maxSubscriptions = 1_024

/** Thrown to leave the module. The module may catch it, so its reason is stored before. */
class Leave extends Error {}

interface WasiRun {
  memory: () => ArrayBuffer
  arguments: readonly string[]
  environment: readonly string[]
  stdin: Uint8Array
  outputLimit: number
  /** Receives standard error as it is written. */
  log: (text: Uint8Array) => void
}

type Import = (...parameters: never[]) => number

export class Wasi {
  readonly #run: WasiRun
  /** A buffer with `#outputBytes` written bytes. It grows in steps, because many programs write byte by byte. */
  #output = Buffer.allocUnsafe(4_096)
  #outputBytes = 0
  #read = 0
  readonly #open = new Set([0, 1, 2])
  readonly #cpuBefore = process.cpuUsage()
  /** The exit code, once the module has called `proc_exit`. */
  exitCode: number | undefined
  isFlooded = false

  constructor(run: WasiRun) {
    this.#run = run
  }

  get stdout(): Buffer {
    return this.#output.subarray(0, this.#outputBytes)
  }

  /** Ends a module that continues after its end, at its next call. */
  leaveIfOver(): void {
    if (this.exitCode !== undefined || this.isFlooded) throw new Leave()
  }

  imports(): Record<string, Import> {
    const offered = this.#offered()
    return Object.fromEntries(wasiNames.map((name) => [name, this.#guarded(offered[name] ?? (() => notImplemented))]))
  }

  /** Makes an invalid address return an error number instead of an exception. */
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
      clock_res_get: (clock: number, at: number) => {
        if (this.#now(clock) === undefined) return invalid
        this.#view().setBigUint64(at >>> 0, 1_000n, true)
        return success
      },
      clock_time_get: (clock: number, _precision: bigint, at: number) => {
        const now = this.#now(clock)
        if (now === undefined) return invalid
        this.#view().setBigUint64(at >>> 0, now, true)
        return success
      },
      random_get: (at: number, length: number) => {
        const target = this.#slice(at, length)
        // The generator fills at most 64 KB at a time.
        for (let from = 0; from < target.length; from += 65_536)
          crypto.getRandomValues(target.subarray(from, from + 65_536))
        return success
      },
      fd_fdstat_get: (fd: number, at: number) => {
        if (!this.#open.has(fd)) return badDescriptor
        const view = this.#view()
        const start = at >>> 0
        // The type is unknown, so that no library takes it for a terminal and flushes each line. The rights are those to read
        // or to write.
        view.setUint8(start, 0)
        view.setUint16(start + 2, 0, true)
        view.setBigUint64(start + 8, fd === 0 ? 2n : 64n, true)
        view.setBigUint64(start + 16, 0n, true)
        return success
      },
      fd_filestat_get: (fd: number, at: number) => {
        if (!this.#open.has(fd)) return badDescriptor
        this.#slice(at, 64).fill(0)
        return success
      },
      fd_close: (fd: number) => (this.#open.delete(fd) ? success : badDescriptor),
      fd_prestat_get: () => badDescriptor,
      fd_prestat_dir_name: () => badDescriptor,
      ...this.#returning(success, ['fd_sync', 'fd_datasync', 'fd_fdstat_set_flags']),
      ...this.#returning(illegalSeek, ['fd_seek', 'fd_tell', 'fd_pread', 'fd_pwrite', 'fd_advise']),
      ...this.#returning(invalid, [
        'fd_allocate',
        'fd_filestat_set_size',
        'fd_filestat_set_times',
        'fd_fdstat_set_rights',
        'fd_renumber',
      ]),
      ...this.#returning(notSocket, ['sock_accept', 'sock_recv', 'sock_send', 'sock_shutdown']),
      ...this.#returning(notDirectory, [
        'fd_readdir',
        'path_create_directory',
        'path_filestat_get',
        'path_filestat_set_times',
        'path_link',
        'path_open',
        'path_readlink',
        'path_remove_directory',
        'path_rename',
        'path_unlink_file',
      ]),
      // Its directory is the third parameter.
      path_symlink: (_path: number, _length: number, fd: number) => (this.#open.has(fd) ? notDirectory : badDescriptor),
      fd_read: (fd: number, vectors: number, count: number, at: number) => {
        if (fd !== 0 || !this.#open.has(fd)) return badDescriptor
        let total = 0
        for (const target of this.#vectors(vectors, count)) {
          const chunk = run.stdin.subarray(this.#read, this.#read + target.length)
          target.set(chunk)
          this.#read += chunk.length
          total += chunk.length
        }
        this.#view().setUint32(at >>> 0, total, true)
        return success
      },
      fd_write: (fd: number, vectors: number, count: number, at: number) => {
        if (fd === 0 || !this.#open.has(fd)) return badDescriptor
        let total = 0
        for (const source of this.#vectors(vectors, count)) {
          total += source.length
          if (fd === 1) this.#writeOutput(source)
          else run.log(source)
        }
        this.#view().setUint32(at >>> 0, total, true)
        return success
      },
      poll_oneoff: (subscriptions: number, events: number, count: number, at: number) =>
        this.#poll(subscriptions >>> 0, events >>> 0, count >>> 0, at >>> 0),
      sched_yield: () => success,
      proc_exit: (code: number) => {
        this.exitCode = code
        throw new Leave()
      },
    }
  }

  /** Creates functions that return `code` for the standard streams, and an error for other descriptors. */
  #returning(code: number, names: readonly WasiName[]): Partial<Record<WasiName, Import>> {
    return Object.fromEntries(names.map((name) => [name, (fd: number) => (this.#open.has(fd) ? code : badDescriptor)]))
  }

  /** Returns a clock's time in nanoseconds; undefined for an unknown clock. */
  #now(clock: number): bigint | undefined {
    if (clock === clocks.realtime) return realtime()
    if (clock === clocks.monotonic) return process.hrtime.bigint()
    if (clock !== clocks.processTime && clock !== clocks.threadTime) return undefined
    const { user, system } = process.cpuUsage(this.#cpuBefore)
    return BigInt(user + system) * 1_000n
  }

  #listSizes(list: readonly string[], count: number, bytes: number): number {
    const view = this.#view()
    view.setUint32(count >>> 0, list.length, true)
    view.setUint32(
      bytes >>> 0,
      list.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0),
      true,
    )
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
    const end = this.#outputBytes + source.length
    if (end > this.#run.outputLimit) {
      this.isFlooded = true
      throw new Leave()
    }
    if (end > this.#output.length) {
      const larger = Buffer.allocUnsafe(Math.max(end, 2 * this.#output.length))
      larger.set(this.#output.subarray(0, this.#outputBytes))
      this.#output = larger
    }
    this.#output.set(source, this.#outputBytes)
    this.#outputBytes = end
  }

  /** Waits for subscriptions: sleeps for clocks; the standard streams are always ready. */
  #poll(subscriptions: number, events: number, count: number, at: number): number {
    if (count === 0 || count > maxSubscriptions) return invalid
    const view = this.#view()
    const subscribed: Subscription[] = []
    for (let from = subscriptions; from < subscriptions + count * 48; from += 48) {
      const kind = view.getUint8(from + 8)
      const userData = view.getBigUint64(from, true)
      if (kind === 0) {
        const wait = this.#waitOf(view, from + 16)
        if (wait === undefined) return invalid
        subscribed.push({ userData, kind, wait, error: success })
      } else if (kind <= 2) {
        subscribed.push({
          userData,
          kind,
          wait: 0,
          error: this.#open.has(view.getInt32(from + 16, true)) ? success : badDescriptor,
        })
      } else return invalid
    }
    const minWait = Math.min(...subscribed.map(({ wait }) => wait))
    if (minWait > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, minWait)
    const due = subscribed.filter(({ wait }) => wait <= minWait)
    for (const [index, { userData, kind, error }] of due.entries()) {
      const event = events + index * 32
      this.#slice(event, 32).fill(0)
      view.setBigUint64(event, userData, true)
      view.setUint16(event + 8, error, true)
      view.setUint8(event + 10, kind)
      if (kind === 1) view.setBigUint64(event + 16, BigInt(this.#run.stdin.length - this.#read), true)
    }
    view.setUint32(at, due.length, true)
    return success
  }

  /** Returns the milliseconds until a clock's subscription is due; undefined for an unknown clock. */
  #waitOf(view: DataView, clock: number): number | undefined {
    const now = this.#now(view.getUint32(clock, true))
    if (now === undefined) return undefined
    const nanoseconds = view.getBigUint64(clock + 8, true)
    const isAbsolute = (view.getUint16(clock + 24, true) & 1) === 1
    const remaining = isAbsolute ? nanoseconds - now : nanoseconds
    return remaining <= 0n ? 0 : Number(remaining) / 1e6
  }
}

interface Subscription {
  userData: bigint
  kind: number
  /** Time until it is due, in milliseconds. */
  wait: number
  error: number
}

function realtime(): bigint {
  return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1_000)) * 1_000n
}
