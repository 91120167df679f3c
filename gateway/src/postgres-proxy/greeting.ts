// Reads a new SQL client's startup packet after the optional steps before it: TLS where the proxy has a certificate, else
// "no".
import type { Socket } from 'node:net'
import { TLSSocket, type SecureContext } from 'node:tls'
import { sqlRejections, type SqlRejection } from './fatal.ts'
import { lengthBytes, packetLength, readStartupPacket } from './startup-packet.ts'

type Greeting =
  /** A login. `packet` is the whole startup packet, and nothing after it has been read. */
  | { kind: 'login'; client: Socket; packet: Buffer; user: string }
  | { kind: 'cancel'; client: Socket; packet: Buffer; key: string }
  | { kind: 'rejected'; client: Socket; rejection: SqlRejection }
  | { kind: 'gone' }

const yes = 'S'
const no = 'N'

/** The proxy's use of TLS. */
interface GreetingTls {
  /** The certificate of new sessions; undefined while there is none. */
  context: SecureContext | undefined
  /** Whether logins without TLS are rejected. */
  isRequired: boolean
}

/**
 * Reads the startup packet.
 * @param max bytes of a startup packet
 */
export async function greet(client: Socket, max: number, tls: GreetingTls): Promise<Greeting> {
  const reject = (rejection: SqlRejection): Greeting => ({ kind: 'rejected', client, rejection })
  const requestedKinds = new Set<string>()
  let isSecure = false
  for (;;) {
    const start = await take(client, lengthBytes)
    if (start === undefined) return { kind: 'gone' }
    const length = packetLength(start, max)
    if (length === undefined) return reject(sqlRejections.unreadable)
    const rest = await take(client, length - lengthBytes)
    if (rest === undefined) return { kind: 'gone' }
    const packet = Buffer.concat([start, rest])
    const startup = readStartupPacket(packet)
    switch (startup.kind) {
      case 'cancel':
        // Clients before PostgreSQL 17 send cancellations unencrypted, whatever the session uses.
        return { ...startup, client, packet }
      case 'login':
        return tls.isRequired && !isSecure ? reject(sqlRejections.tlsRequired) : { ...startup, client, packet }
      case 'unreadable':
        return reject(sqlRejections.unreadable)
      case 'gss':
      case 'tls': {
        if (requestedKinds.has(startup.kind) || isSecure) return reject(sqlRejections.unreadable)
        requestedKinds.add(startup.kind)
        if (startup.kind === 'gss' || tls.context === undefined) {
          client.write(no)
          break
        }
        // Bytes that arrived before the response are unencrypted and must not be mistaken for encrypted ones.
        if (client.readableLength > 0) return reject(sqlRejections.unreadable)
        client.write(yes)
        client = startTls(client, tls.context)
        isSecure = true
      }
    }
  }
}

function startTls(client: Socket, secureContext: SecureContext): Socket {
  const secure = new TLSSocket(client, { isServer: true, secureContext })
  secure.on('error', () => secure.destroy())
  secure.on('close', () => client.destroy())
  client.on('close', () => secure.destroy())
  return secure
}

/** Reads exactly the next `size` bytes. Resolves to undefined when the connection ends before. */
function take(socket: Socket, size: number): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const finish = (bytes: Buffer | undefined) => {
      socket.off('readable', read)
      socket.off('end', gone)
      socket.off('close', gone)
      resolve(bytes)
    }
    const gone = () => finish(undefined)
    const read = () => {
      const bytes: unknown = socket.read(size)
      if (Buffer.isBuffer(bytes)) finish(bytes.length === size ? bytes : undefined)
    }
    socket.on('readable', read)
    socket.on('end', gone)
    socket.on('close', gone)
    if (socket.destroyed) gone()
    else read()
  })
}
