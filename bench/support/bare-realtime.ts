// The floor of broadcasts: a WebSocket server that forwards each frame to all other clients, without topics, tenants or
// limits. `node bare-realtime.ts` prints `{"port"}`.
// The runtime's own ws, so that both use the same release.
import { createRequire } from 'node:module'

const { WebSocketServer } = createRequire(new URL('../../tenant-runtime/src/main.ts', import.meta.url))(
  'ws',
) as typeof import('ws')
const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false })

server.on('connection', (socket) => {
  socket.on('message', (data: Buffer, isBinary) => {
    for (const client of server.clients) if (client !== socket) client.send(data, { binary: isBinary })
  })
})
server.on('listening', () => {
  const address = server.address()
  console.log(JSON.stringify({ port: typeof address === 'object' ? address?.port : undefined }))
})
process.on('SIGTERM', () => process.exit(0))
