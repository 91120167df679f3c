// The gateway's listeners: clients that open many connections at once.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { listenOnAll } from '#gateway/listeners.ts'

/** Opens connections until all of them are open, and prints their number. */
const client = `
  const { connect } = require('node:net')
  let open = 0
  const end = () => { console.log(open); process.exit() }
  setTimeout(end, 10_000)
  for (let n = 0; n < 1_000; n++)
    connect({ host: '127.0.0.1', port: Number(process.argv[1]) }, () => { if (++open === 1_000) end() }).on('error', end)`

t.test('A thousand connections are opened while the gateway accepts none', async (t) => {
  const server = createServer((socket) => socket.on('error', () => undefined))
  const [listening] = await listenOnAll([{ server, host: '127.0.0.1', port: 0, isPublic: true }])
  // This process accepts nothing meanwhile. A connection that finds no room is not opened until it does.
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', client, String(listening?.port)], { encoding: 'utf8' })
  t.equal(stdout.trim(), '1000', stderr)
  server.close()
  await Promise.all([once(server, 'close'), listening?.close()])
})
