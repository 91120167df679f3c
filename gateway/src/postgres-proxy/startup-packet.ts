// The first packet of an SQL client, read strictly (PostgreSQL's protocol 3, "Start-up"). Pure.

type StartupPacket =
  /** The client would go on in TLS, or in GSSAPI encryption, if the server can. */
  | { kind: 'tls' }
  | { kind: 'gss' }
  /** Another session's query is to be cancelled: process id and secret as that session was told, in hexadecimal. */
  | { kind: 'cancel'; key: string }
  | { kind: 'login'; user: string }
  | { kind: 'unreadable' }

/** Of the length word, which counts itself, and of the code after it. */
export const lengthBytes = 4
const headBytes = 8

/** PostgreSQL's own bound: a longer key is none. */
const maxKeyBytes = 4 + 256
const cancelCode = 80_877_102
const tlsCode = 80_877_103
const gssCode = 80_877_104
const protocolMajor = 3

/** @returns the whole packet's length by its first four bytes; undefined when that is out of bounds */
export function packetLength(start: Buffer, max: number): number | undefined {
  const length = start.readUInt32BE(0)
  return length < headBytes || length > max ? undefined : length
}

/** @param packet whole, with its length */
export function readStartupPacket(packet: Buffer): StartupPacket {
  const code = packet.readUInt32BE(lengthBytes)
  const rest = packet.subarray(headBytes)
  if (code === tlsCode || code === gssCode) {
    if (rest.length > 0) return { kind: 'unreadable' }
    return { kind: code === tlsCode ? 'tls' : 'gss' }
  }
  if (code === cancelCode) {
    const isKey = rest.length >= headBytes && rest.length <= maxKeyBytes
    return isKey ? { kind: 'cancel', key: rest.toString('hex') } : { kind: 'unreadable' }
  }
  const user = code >>> 16 === protocolMajor ? onlyUser(rest) : undefined
  return user === undefined ? { kind: 'unreadable' } : { kind: 'login', user }
}

/**
 * The one `user` among the parameters: names and values that end in a zero byte each, and a zero byte at the end of all.
 * PostgreSQL takes the last of several users; whoever names several wants one to be looked at and another to be used.
 */
function onlyUser(parameters: Buffer): string | undefined {
  if (parameters.at(-1) !== 0) return undefined
  const texts = parameters.toString('latin1').slice(0, -1).split('\0')
  // Each value ends in a zero byte too, so that an empty text follows the last.
  if (texts.pop() !== '' || texts.length % 2 !== 0) return undefined
  let user: string | undefined
  for (let at = 0; at < texts.length; at += 2) {
    if (texts[at] === '') return undefined
    if (texts[at] !== 'user') continue
    if (user !== undefined) return undefined
    user = texts[at + 1]
  }
  return user
}
