// A client of WebSockets that only counts what arrives, so that a benchmark measures the server and not its client.
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import type { Location } from './transfer.ts'

export class FrameSocket {
  readonly #socket: Socket
  #pending: Buffer = Buffer.alloc(0)
  /** The number of frames that have arrived. */
  received = 0
  /** Called for each frame with its payload. */
  onFrame: ((payload: Buffer) => void) | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('error', () => undefined)
  }

  /** Connects, and waits for the response 101. @throws Error for another response */
  static open({ port, path, headers }: Location): Promise<FrameSocket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      const lines = [
        `GET ${path} HTTP/1.1`,
        'Host: localhost',
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
        ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      ]
      socket.write(`${lines.join('\r\n')}\r\n\r\n`)
      let head = ''
      const read = (chunk: Buffer) => {
        head += chunk.toString('latin1')
        const end = head.indexOf('\r\n\r\n')
        if (end < 0) return
        socket.off('data', read)
        if (!head.startsWith('HTTP/1.1 101')) {
          socket.destroy()
          reject(new Error(head))
          return
        }
        const frames = new FrameSocket(socket)
        frames.#read(Buffer.from(head.slice(end + 4), 'latin1'))
        resolve(frames)
      }
      socket.on('data', read)
      socket.once('error', reject)
    })
  }

  /** Sends a text frame. */
  send(text: string): void {
    const payload = Buffer.from(text)
    const { length } = payload
    const head = Buffer.alloc(length < 126 ? 6 : 8)
    head[0] = 0x81
    head[1] = 0x80 | (length < 126 ? length : 126)
    // The mask is zero, which leaves the payload as it is.
    if (length >= 126) head.writeUInt16BE(length, 2)
    this.#socket.write(Buffer.concat([head, payload]))
  }

  close(): void {
    this.#socket.destroy()
  }

  #read(chunk: Buffer): void {
    let data: Buffer = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    for (;;) {
      const frame = frameOf(data)
      if (frame === undefined) break
      this.received++
      this.onFrame?.(data.subarray(frame.begin, frame.end))
      data = data.subarray(frame.end)
    }
    this.#pending = data
  }
}

/** Returns where the payload of the first frame is; undefined when it is not complete. */
function frameOf(data: Buffer): { begin: number; end: number } | undefined {
  if (data.length < 2) return undefined
  const short = (data[1] ?? 0) & 0x7f
  const begin = short < 126 ? 2 : short === 126 ? 4 : 10
  if (data.length < begin) return undefined
  const length = short < 126 ? short : short === 126 ? data.readUInt16BE(2) : Number(data.readBigUInt64BE(2))
  return data.length < begin + length ? undefined : { begin, end: begin + length }
}
