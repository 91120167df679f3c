// Substitutes for the runtime in the gateway's benchmark: 4 KB responses, and bodies of any size both ways. Prints
// `{"port"}`.
import { createServer } from 'node:http'

const small = Buffer.alloc(4096, 'x')
const part = Buffer.alloc(256 * 1024, 'x')

const server = createServer((request, response) => {
  const size = Number(/\/bytes\/(\d+)/.exec(request.url ?? '')?.[1] ?? small.length)
  if (request.method === 'POST') {
    let received = 0
    request.on('data', (chunk: Buffer) => (received += chunk.length))
    request.on('end', () => response.end(String(received)))
    return
  }
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': size })
  if (size === small.length) {
    response.end(small)
    return
  }
  let remaining = size
  const send = () => {
    while (remaining > 0) {
      const chunk = remaining < part.length ? part.subarray(0, remaining) : part
      remaining -= chunk.length
      if (!response.write(chunk)) {
        response.once('drain', send)
        return
      }
    }
    response.end()
  }
  send()
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(JSON.stringify({ port: typeof address === 'object' ? address?.port : undefined }))
})
process.on('SIGTERM', () => process.exit(0))
