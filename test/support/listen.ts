// Lets a server listen on a free port until the test ends.
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Test } from 'tap'

/**
 * @param address the address to listen on: this machine's own, unless the test needs another one
 * @returns the port
 */
export async function listen(
  t: Pick<Test, 'teardown'>,
  server: Server | TlsServer,
  address = '127.0.0.1',
): Promise<number> {
  server.listen(0, address)
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('no port was given')
  return bound.port
}
