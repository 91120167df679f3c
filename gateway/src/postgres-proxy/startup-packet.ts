// Reads the first packet of an SQL client strictly (PostgreSQL's protocol 3, "Start-up"). Pure.

type StartupPacket =
  /** A request for TLS or for GSSAPI encryption, if the server supports it. */
  | { kind: 'tls' }
  | { kind: 'gss' }
  /** A request to cancel another session's query, with the process ID and secret of that session in hexadecimal. */
  | { kind: 'cancel'; key: string }
  | { kind: 'login'; user: string }
  | { kind: 'unreadable' }

/** The size of the length word, which counts itself. The code after it has the same size. */
export const lengthBytes = 4
const headBytes = 8

/** PostgreSQL's own limit of a cancel key's size. */
const maxKeyBytes = 4 + 256
const cancelCode = 80_877_102
const tlsCode = 80_877_103
const gssCode = 80_877_104
const protocolMajor = 3

/**
 * Reads the packet's length.
 * @param start the first four bytes of the packet
 * @returns the length of the whole packet; undefined when it is out of bounds
 */
export function packetLength(start: Buffer, max: number): number | undefined {
  const length = start.readUInt32BE(0)
  return length < headBytes || length > max ? undefined : length
}

/**
 * Reads a packet.
 * @param packet the whole packet, with its length
 */
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

/** Reads the names and values of parameters in turn; undefined if they are not in the form that PostgreSQL requires. */
function textsOf(parameters: Buffer): string[] | undefined {
  if (parameters.at(-1) !== 0) return undefined
  const texts = parameters.toString('latin1').slice(0, -1).split('\0')
  // Each value ends in a zero byte too, so that an empty text follows the last one.
  return texts.pop() === '' && texts.length % 2 === 0 ? texts : undefined
}

/** Form of the names of databases that several tenants share. */
const sharedName = /^tenantry_homes_[0-9]+$/

/** Reads the names and values of a login's parameters, in pairs. */
function pairsOf(packet: Buffer): (readonly [string, string])[] {
  const texts = textsOf(packet.subarray(headBytes)) ?? []
  return texts.flatMap((name, at) => (at % 2 === 0 ? [[name, texts[at + 1] ?? ''] as const] : []))
}

/** Returns the packet with other parameters. */
function withPairs(packet: Buffer, pairs: readonly (readonly [string, string])[]): Buffer {
  const rest = Buffer.from(`${pairs.flat().join('\0')}\0\0`, 'latin1')
  const head = Buffer.from(packet.subarray(0, headBytes))
  head.writeUInt32BE(headBytes + rest.length)
  return Buffer.concat([head, rest])
}

/**
 * Converts a login to a shared database that the home has left into one to its present database.
 * @returns undefined if the login is to another database
 */
export function movedPacket(packet: Buffer, database: string): Buffer | undefined {
  const pairs = pairsOf(packet)
  const named = pairs.findLast(([name]) => name === 'database')?.[1]
  if (named === undefined || named === database || !sharedName.test(named)) return undefined
  return withPairs(packet, [...pairs.filter(([name]) => name !== 'database'), ['database', database]])
}

/**
 * Converts a login to a database's alias for read-only copies into one to the database itself, whose transactions are
 * read-only by default: a copy may become the primary at any time.
 * @returns undefined if the login is to another database
 */
export function readOnlyPacket(
  packet: Buffer,
  { alias, database }: { alias: string; database: string },
): Buffer | undefined {
  const pairs = pairsOf(packet)
  // PostgreSQL uses the last of several values.
  if (pairs.findLast(([name]) => name === 'database')?.[1] !== alias) return undefined
  return withPairs(packet, [
    ...pairs.filter(([name]) => name !== 'database'),
    ['database', database],
    ['default_transaction_read_only', 'on'],
  ])
}

/**
 * Returns the only `user` among the parameters: names and values that end in a zero byte each, and a zero byte at the end
 * of all. PostgreSQL uses the last of several users, so that the proxy could check one user and Postgres admit another.
 */
function onlyUser(parameters: Buffer): string | undefined {
  const texts = textsOf(parameters)
  if (texts === undefined) return undefined
  let user: string | undefined
  for (let at = 0; at < texts.length; at += 2) {
    if (texts[at] === '') return undefined
    if (texts[at] !== 'user') continue
    if (user !== undefined) return undefined
    user = texts[at + 1]
  }
  return user
}
