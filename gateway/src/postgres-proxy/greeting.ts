// Brings a new SQL client to its startup packet, over the steps before it: TLS where the door has it, else "no".
import type { Socket } from 'node:net'
import { TLSSocket, type SecureContext } from 'node:tls'
import { sqlRejections, type SqlRejection } from './fatal.ts'
import { lengthBytes, packetLength, readStartupPacket } from './startup-packet.ts'

type Greeting =
  /** `packet` is to be passed on as it is; nothing after it has been read. */
  | { kind: 'login'; client: Socket; packet: Buffer; user: string }
  | { kind: 'cancel'; client: Socket; packet: Buffer; key: string }
  | { kind: 'refused'; client: Socket; rejection: SqlRejection }
  | { kind: 'gone' }

const yes = 'S'
const no = 'N'

/** @param max bytes of a startup packet */
export async function greet(client: Socket, max: number, tls: SecureContext | undefined): Promise<Greeting> {
  const rejected = (rejection: SqlRejection): Greeting => ({ kind: 'refused', client, rejection })
  const requested = new Set<string>()
  let isSecure = false
  for (;;) {
    const start = await take(client, lengthBytes)
    if (start === undefined) return { kind: 'gone' }
    const length = packetLength(start, max)
    if (length === undefined) return rejected(sqlRejections.unreadable)
    const rest = await take(client, length - lengthBytes)
    if (rest === undefined) return { kind: 'gone' }
    const packet = Buffer.concat([start, rest])
    const startup = readStartupPacket(packet)
    switch (startup.kind) {
      case 'cancel':
        // Clients before PostgreSQL 17 cancel in the clear whatever the session does.
        return { ...startup, client, packet }
      case 'login':
        return tls !== undefined && !isSecure ? rejected(sqlRejections.tlsRequired) : { ...startup, client, packet }
      case 'unreadable':
        return rejected(sqlRejections.unreadable)
      case 'gss':
      case 'tls': {
        if (requested.has(startup.kind) || isSecure) return rejected(sqlRejections.unreadable)
        requested.add(startup.kind)
        if (startup.kind === 'gss' || tls === undefined) {
          client.write(no)
          break
        }
        // What was sent ahead of the answer would pass for something said in confidence.
        if (client.readableLength > 0) return rejected(sqlRejections.unreadable)
        client.write(yes)
        client = secured(client, tls)
        isSecure = true
      }
    }
  }
}

function secured(client: Socket, secureContext: SecureContext): Socket {
  const secure = new TLSSocket(client, { isServer: true, secureContext })
  secure.on('error', () => secure.destroy())
  secure.on('close', () => client.destroy())
  client.on('close', () => secure.destroy())
  return secure
}

/** The next bytes, exactly so many; undefined when the connection ends before. */
function take(socket: Socket, size: number): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const finish = (bytes: Buffer | undefined) => {
      socket.off('readable', poll)
      socket.off('end', gone)
      socket.off('close', gone)
      resolve(bytes)
    }
    const gone = () => finish(undefined)
    const poll = () => {
      const bytes: unknown = socket.read(size)
      if (Buffer.isBuffer(bytes)) finish(bytes.length === size ? bytes : undefined)
    }
    socket.on('readable', poll)
    socket.on('end', gone)
    socket.on('close', gone)
    if (socket.destroyed) gone()
    else poll()
  })
}
