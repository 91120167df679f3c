// Reads a CONNECT request: its destination and its token. Pure.

/** The host and port that a runtime wants to connect to. */
export interface Destination {
  /** The host in the form of `URL.hostname`, in which every notation of an IPv4 address is dotted and decimal. */
  readonly hostname: string
  readonly port: number
}

const form = /^(\[[0-9a-fA-F:.]{2,45}\]|[^\s:/?#@\\[\]%]{1,253}):([1-9]\d{0,4})$/

/** Reads `host:port`. @returns undefined for anything else */
export function readDestination(text: string): Destination | undefined {
  const [, host = '', port = ''] = form.exec(text) ?? []
  const hostname = URL.parse(`http://${host}/`)?.hostname ?? ''
  return hostname === '' || Number(port) > 65_535 ? undefined : { hostname, port: Number(port) }
}

/** Reads the token of `Proxy-Authorization: Bearer …`. @returns undefined for any other header */
export function readToken(header: string | undefined): string | undefined {
  return /^Bearer ([\x21-\x7e]{1,512})$/.exec(header ?? '')?.[1]
}
