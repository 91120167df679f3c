// One large body up or down over a bare socket: what a client costs at least, so that it is the server that is measured.
import { connect } from 'node:net'
import { once } from 'node:events'

export interface Place {
  port: number
  path: string
  headers: Record<string, string>
}

const piece = Buffer.alloc(256 * 1024, 'x')

function head(method: string, { path, headers }: Place, length?: number): string {
  const all = {
    host: 'localhost',
    ...headers,
    connection: 'close',
    ...(length === undefined ? {} : { 'content-length': String(length) }),
  }
  return `${method} ${path} HTTP/1.1\r\n${Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`
}

/** @returns the answer's body. @throws Error for any status but 200 */
export async function upload(method: 'PUT' | 'POST', place: Place, bytes: number): Promise<string> {
  const socket = connect({ port: place.port, host: '127.0.0.1', noDelay: true })
  let answer = ''
  socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
  const closed = once(socket, 'close')
  socket.write(head(method, place, bytes))
  for (let sent = 0; sent < bytes && answer === ''; sent += piece.length) {
    if (!socket.write(sent + piece.length <= bytes ? piece : piece.subarray(0, bytes - sent)))
      await Promise.race([once(socket, 'drain'), closed])
  }
  await closed
  if (!answer.startsWith('HTTP/1.1 200 ')) throw new Error(`an upload was answered ${answer.slice(0, 500)}`)
  return answer.slice(answer.indexOf('\r\n\r\n') + 4)
}

/** Reads and forgets. @throws Error for any status but 200, and for another number of bytes */
export async function download(place: Place, bytes: number): Promise<void> {
  let begin = ''
  let received = 0
  const socket = connect({
    port: place.port,
    host: '127.0.0.1',
    onread: {
      buffer: Buffer.alloc(256 * 1024),
      callback(count, buffer) {
        if (received === 0) begin = Buffer.from(buffer.subarray(0, Math.min(count, 4096))).toString('latin1')
        received += count
        return true
      },
    },
  })
  const closed = once(socket, 'close')
  socket.write(head('GET', place))
  await closed
  const body = received - (begin.indexOf('\r\n\r\n') + 4)
  if (!begin.startsWith('HTTP/1.1 200 ') || body !== bytes)
    throw new Error(`a download was answered ${begin.slice(0, 500)} with ${body} bytes`)
}
