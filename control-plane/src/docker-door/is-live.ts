// Health check of the door's container: does the Engine answer through it?
import { request } from 'node:http'

const call = request({ socketPath: process.env['TENANTRY_DOOR_SOCKET'] ?? '', path: '/_ping', agent: false, timeout: 4_000 })
call.on('response', (answer) => {
  process.exitCode = answer.statusCode === 200 ? 0 : 1
  answer.resume()
})
call.on('timeout', () => call.destroy(new Error('no answer')))
call.on('error', () => {
  process.exitCode = 1
})
call.end()
