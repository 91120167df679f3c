// Transfers one large body up or down over a bare socket, with the least work in the client, so that the server is
// measured.
import { connect } from 'node:net'
import { once } from 'node:events'

export interface Location {
  port: number
  path: string
  headers: Record<string, string>
}

const chunk = Buffer.alloc(256 * 1024, 'x')

function head(method: string, { path, headers }: Location, length?: number): string {
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

/**
 * @returns the response's body
 * @throws Error for any status but 200
 */
export async function upload(method: 'PUT' | 'POST', location: Location, bytes: number): Promise<string> {
  const socket = connect({ port: location.port, host: '127.0.0.1', noDelay: true })
  let response = ''
  socket.setEncoding('utf8').on('data', (text: string) => (response += text))
  const closed = once(socket, 'close')
  socket.write(head(method, location, bytes))
  for (let sent = 0; sent < bytes && response === ''; sent += chunk.length) {
    if (!socket.write(sent + chunk.length <= bytes ? chunk : chunk.subarray(0, bytes - sent)))
      await Promise.race([once(socket, 'drain'), closed])
  }
  await closed
  if (!response.startsWith('HTTP/1.1 200 ')) throw new Error(`The upload failed: ${response.slice(0, 500)}`)
  return response.slice(response.indexOf('\r\n\r\n') + 4)
}

/**
 * Reads a body and discards it.
 * @throws Error for any status but 200, and for another number of bytes
 */
export async function download(location: Location, bytes: number): Promise<void> {
  let begin = ''
  let received = 0
  const socket = connect({
    port: location.port,
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
  socket.write(head('GET', location))
  await closed
  const body = received - (begin.indexOf('\r\n\r\n') + 4)
  if (!begin.startsWith('HTTP/1.1 200 ') || body !== bytes)
    throw new Error(`The download failed or is not ${bytes} bytes long: ${begin.slice(0, 500)} with ${body} bytes`)
}
