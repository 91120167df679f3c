// The gateway's floor: the simplest forwarder that Node and undici allow, without checks, tenants or counters.
// `node bare-forwarder.ts PORT` prints `{"port"}`.
import { createServer } from 'node:http'
import { pipeline } from 'node:stream'
// The gateway's own undici, so that both use the same release.
import { createRequire } from 'node:module'

const { Pool } = createRequire(new URL('../../gateway/src/main.ts', import.meta.url))(
  'undici',
) as typeof import('undici')
const pool = new Pool(`http://127.0.0.1:${process.argv[2] ?? ''}`)

const server = createServer((request, response) => {
  const { host: _host, connection: _connection, 'transfer-encoding': _coding, ...headers } = request.headers
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined
  pool
    .request({ path: request.url ?? '/', method: request.method as 'GET', headers, body: hasBody ? request : null })
    .then(
      ({ statusCode, headers: result, body }) => {
        delete result.connection
        delete result['keep-alive']
        delete result['transfer-encoding']
        response.writeHead(statusCode, result)
        pipeline(body, response, () => undefined)
      },
      () => response.writeHead(502).end(),
    )
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(JSON.stringify({ port: typeof address === 'object' ? address?.port : undefined }))
})
process.on('SIGTERM', () => process.exit(0))
