// A small load client: keep-alive connections on bare sockets, one prepared request, answers only skipped over.
import { connect, type Socket } from 'node:net'
import { quantile } from '#bench/figures.ts'

export interface LoadOptions {
  host?: string
  port: number
  /** The whole request head, and body if any, as it goes over the wire; or what makes the next one. */
  request: string | Buffer | (() => Buffer)
  connections: number
  /** Requests under way on one connection. */
  pipeline?: number
  milliseconds: number
  /** Checked for every answer; default 200. */
  status?: number
}

export interface LoadResult {
  requests: number
  /** Requests per second. */
  rps: number
  /** Milliseconds. */
  p50: number
  p99: number
}

/** @throws on the first wrong status, unreadable answer or lost connection */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const latencies: number[] = []
  const begin = performance.now()
  const end = begin + options.milliseconds
  await Promise.all(Array.from({ length: options.connections }, () => run(options, end, latencies)))
  const seconds = (performance.now() - begin) / 1000
  return {
    requests: latencies.length,
    rps: latencies.length / seconds,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
  }
}

/** A request's head as it goes over the wire. */
export function wire(method: string, path: string, headers: Record<string, string>): Buffer {
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nhost: localhost\r\n${Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}\r\n`,
  )
}

function run(options: LoadOptions, end: number, latencies: number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const { request: given } = options
    const once = typeof given === 'function' ? undefined : Buffer.from(given)
    const next = typeof given === 'function' ? given : () => once ?? Buffer.alloc(0)
    const socket = connect({ host: options.host ?? '127.0.0.1', port: options.port, noDelay: true })
    const sent: number[] = []
    const reader = new ResponseReader(options.status ?? 200)
    const send = () => {
      sent.push(performance.now())
      socket.write(next())
    }
    socket.on('connect', () => {
      for (let n = 0; n < (options.pipeline ?? 1); n++) send()
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the connection was closed')))
    socket.on('data', (chunk: Buffer) => {
      try {
        const responses = reader.read(chunk)
        const now = performance.now()
        for (let n = 0; n < responses; n++) latencies.push(now - (sent.shift() ?? now))
        if (now < end) for (let n = 0; n < responses; n++) send()
        else if (sent.length === 0) finish(socket, resolve)
      } catch (cause) {
        socket.destroy()
        reject(cause instanceof Error ? cause : new Error(String(cause)))
      }
    })
  })
}

function finish(socket: Socket, resolve: () => void): void {
  resolve()
  socket.removeAllListeners('close')
  socket.destroy()
}

/** Finds the ends of answers that say their Content-Length. */
class ResponseReader {
  readonly #status: Buffer
  #pending: Buffer = Buffer.alloc(0)
  #bodyLeft = 0

  constructor(status: number) {
    this.#status = Buffer.from(`HTTP/1.1 ${status} `)
  }

  /** @returns how many answers the chunk ended */
  read(chunk: Buffer): number {
    let responses = 0
    let at = 0
    while (at < chunk.length) {
      if (this.#bodyLeft > 0) {
        const taken = Math.min(this.#bodyLeft, chunk.length - at)
        this.#bodyLeft -= taken
        at += taken
        if (this.#bodyLeft === 0) responses++
        continue
      }
      const rest = this.#pending.length === 0 ? chunk.subarray(at) : Buffer.concat([this.#pending, chunk.subarray(at)])
      const headEnd = rest.indexOf('\r\n\r\n')
      if (headEnd < 0) {
        this.#pending = rest
        break
      }
      at += headEnd + 4 - this.#pending.length
      this.#pending = Buffer.alloc(0)
      this.#bodyLeft = this.#lengthIn(rest.subarray(0, headEnd))
      if (this.#bodyLeft === 0) responses++
    }
    return responses
  }

  #lengthIn(head: Buffer): number {
    if (head.compare(this.#status, 0, this.#status.length, 0, this.#status.length) !== 0) {
      throw new Error(`an answer began ${head.subarray(0, 80).toString('latin1')}`)
    }
    const text = head.toString('latin1')
    const match = /\r\ncontent-length: *(\d+)/i.exec(text)
    if (match === null) throw new Error('an answer came without Content-Length')
    return Number(match[1])
  }
}
