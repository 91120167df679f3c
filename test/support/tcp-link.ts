// A TCP link to a server of this machine that a test can break, as networks do.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A link, through which clients reach the server at `port`. */
export interface TcpLink {
  port: number
  /** Ends all connections; new ones are possible. */
  cut(): void
  /** Loses everything from now on, in both directions, as a cable that is pulled out. */
  silence(): void
  /** Lets new connections pass again. Those that were silent end. */
  restore(): void
  stop(): Promise<void>
}

/**
 * Opens a link.
 * @param isAffected whether a connection, by its first bytes, is lost during a silence
 */
export async function openTcpLink(
  target: number,
  isAffected: (first: Buffer) => boolean = () => true,
): Promise<TcpLink> {
  const sockets = new Set<Socket>()
  let silenced = new Set<Socket>()
  let isSilent = false
  const server = createServer((client) => {
    const onward = connect(target, '127.0.0.1')
    let affected: boolean | undefined
    const forward = (from: Socket, to: Socket) =>
      from.on('data', (bytes: Buffer) => {
        affected ??= isAffected(bytes)
        if (isSilent && affected) silenced.add(from)
        else if (!to.write(bytes)) {
          from.pause()
          to.once('drain', () => from.resume())
        }
      })
    forward(client, onward)
    forward(onward, client)
    for (const end of [client, onward]) {
      sockets.add(end)
      end.on('error', () => undefined)
      end.on('close', () => {
        sockets.delete(end)
        // The other side of a silent link does not notice.
        if (isSilent && affected !== false) silenced.add(client).add(onward)
        else for (const each of [client, onward]) each.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  const cut = () => {
    for (const socket of [...sockets]) socket.destroy()
  }
  return {
    port: address.port,
    cut,
    silence() {
      isSilent = true
    },
    restore() {
      isSilent = false
      for (const socket of silenced) socket.destroy()
      silenced = new Set()
    },
    async stop() {
      isSilent = false
      const closed = once(server, 'close')
      server.close()
      cut()
      await closed
    },
  }
}
