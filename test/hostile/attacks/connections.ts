// Connections to the gateway that do nothing, or begin something and do not continue, and those of a blocked address.
import { connect } from 'node:net'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'
import type { Attack, Scene } from '../attack.ts'
import { openRaw, repeat, watchConnections } from '../support/requests.ts'

/**
 * Opens connections that send `text` and then nothing. All from one address are more than it may have.
 * @returns what became of them
 */
async function hold(scene: Scene, count: number, text: string, addresses = 1): Promise<string> {
  const port = Number(new URL(scene.attacker.url).port)
  const connections = Array.from({ length: count }, (_, n) =>
    openRaw({ ...scene, address: scene.addressOf(n % addresses) }, port, text),
  )
  return watchConnections(scene, connections)
}

/** Opens a connection that sends `text`. @returns the first bytes of the response, or why it was closed */
function tryConnection({ address: localAddress }: Scene, port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, localAddress })
    socket
      .on('error', (error) => resolve('code' in error ? String(error.code) : error.message))
      .on('close', () => resolve('closed'))
      .on('data', (chunk) => {
        resolve(chunk.toString('latin1', 0, 20))
        socket.destroy()
      })
    socket.write(text)
  })
}

export const connectionAttacks: Attack[] = [
  {
    name: '5,000 idle connections of one address',
    attacker: 'anonymous',
    bound: 'connections of an address',
    sees: /closed|429 TOO_MANY_CONNECTIONS/,
    targets: ['npm start'],
    run: (scene) => hold(scene, effort({ small: 1_500, full: 5_000 }), ''),
  },
  {
    name: '6,000 idle connections of 250 addresses',
    attacker: 'anonymous',
    bound: 'a full table of connections closes the idle ones',
    sees: /closed|open/,
    targets: ['npm start'],
    run: (scene) => hold(scene, effort({ small: 5_500, full: 6_000 }), '', 250),
  },
  {
    name: 'request heads that never end',
    attacker: 'anonymous',
    bound: 'connections of an address; 15 s for a head',
    sees: /closed|408/,
    smallRuns: [],
    targets: ['npm start'],
    run: (scene) => hold(scene, effort({ small: 1_500, full: 5_000 }), 'GET / HTTP/1.1\r\nhost: '),
  },
  {
    name: 'a flood of connections from an address that the operator has blocked',
    attacker: 'anonymous',
    bound: 'a connection of a blocked address is reset, and nothing of it is read',
    sees: /^ECONNRESET$/,
    targets: ['npm start'],
    async run(scene) {
      const path = `/v1/blocked-addresses/${scene.address}`
      const { status, text } = await scene.control('PUT', path, { reason: 'floods', confirmed: true })
      if (status !== 200) throw new Error(text)
      scene.onEnd(() => scene.control('DELETE', path))
      const httpPort = Number(new URL(scene.attacker.url).port)
      const request = 'GET /health HTTP/1.1\r\nhost: x\r\n\r\n'
      await until(async () => (await tryConnection(scene, httpPort, request)) === 'ECONNRESET', 'the block')
      return repeat(scene, effort({ small: 16, full: 64 }), (n) =>
        tryConnection(scene, n % 4 === 0 ? scene.sqlPort : httpPort, request),
      )
    },
  },
]
