// A small load client: keep-alive connections on bare sockets, one prepared request, and a reader that skips response
// bodies.
import { connect, type Socket } from 'node:net'
import { quantile } from '#bench/figures.ts'

export interface LoadOptions {
  host?: string
  port: number
  /** The whole request head, and body if any, as bytes for the wire; or a function that makes the next one. */
  request: string | Buffer | (() => Buffer)
  connections: number
  /** The maximum number of requests in flight on one connection. */
  pipeline?: number
  milliseconds: number
  /** The expected status of every response; default 200. */
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

/**
 * Runs the load.
 * @throws Error on the first wrong status, unreadable response or lost connection
 */
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

/** Returns a request's head as bytes for the wire. */
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
    const sendTimes: number[] = []
    const reader = new ResponseReader(options.status ?? 200)
    const send = () => {
      sendTimes.push(performance.now())
      socket.write(next())
    }
    socket.on('connect', () => {
      for (let n = 0; n < (options.pipeline ?? 1); n++) send()
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('The server closed the connection')))
    socket.on('data', (chunk: Buffer) => {
      try {
        const responses = reader.read(chunk)
        const now = performance.now()
        for (let n = 0; n < responses; n++) latencies.push(now - (sendTimes.shift() ?? now))
        if (now < end) for (let n = 0; n < responses; n++) send()
        else if (sendTimes.length === 0) finish(socket, resolve)
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

/** Finds the ends of responses that have a Content-Length. */
class ResponseReader {
  readonly #status: Buffer
  #pending: Buffer = Buffer.alloc(0)
  #remainingBodyBytes = 0

  constructor(status: number) {
    this.#status = Buffer.from(`HTTP/1.1 ${status} `)
  }

  /** @returns the number of responses that the chunk ended */
  read(chunk: Buffer): number {
    let responses = 0
    let at = 0
    while (at < chunk.length) {
      if (this.#remainingBodyBytes > 0) {
        const taken = Math.min(this.#remainingBodyBytes, chunk.length - at)
        this.#remainingBodyBytes -= taken
        at += taken
        if (this.#remainingBodyBytes === 0) responses++
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
      this.#remainingBodyBytes = this.#lengthIn(rest.subarray(0, headEnd))
      if (this.#remainingBodyBytes === 0) responses++
    }
    return responses
  }

  #lengthIn(head: Buffer): number {
    if (head.compare(this.#status, 0, this.#status.length, 0, this.#status.length) !== 0) {
      throw new Error(`The status is wrong. The response begins with ${head.subarray(0, 80).toString('latin1')}`)
    }
    const text = head.toString('latin1')
    const match = /\r\ncontent-length: *(\d+)/i.exec(text)
    if (match === null) throw new Error('The response has no Content-Length')
    return Number(match[1])
  }
}
