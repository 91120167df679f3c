// Health check of the containers of the proxy and of the watchdog: it requests a ping of the Engine at a socket.
import { request } from 'node:http'

const call = request({ socketPath: process.argv[2] ?? '', path: '/_ping', agent: false, timeout: 4_000 })
call.on('response', (response) => {
  process.exitCode = response.statusCode === 200 ? 0 : 1
  response.resume()
})
call.on('timeout', () => call.destroy(new Error('No response.')))
call.on('error', () => {
  process.exitCode = 1
})
call.end()
