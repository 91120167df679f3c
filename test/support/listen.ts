// Lets a server listen on a free port of this machine until the test ends.
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Test } from 'tap'

/** @returns the port */
export async function listen(t: Pick<Test, 'teardown'>, server: Server | TlsServer): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return address.port
}
