// The hosts that a function may fetch from: "api.example.com", "*.example.com", with a port or with the scheme's own. Pure.

interface Pattern {
  /** Any name below it, at any depth, but not itself. */
  isWildcard: boolean
  /** As a URL has it. */
  hostname: string
  /** Undefined for the scheme's own: 443 or 80. */
  port: number | undefined
}

const form = /^(\*\.)?(\[[0-9a-fA-F:.]+\]|[^\s:/?#@\\[\]*%]+)(?::(\d{1,5}))?$/

/** @returns it as it is kept. @throws SyntaxError that says what is wrong */
export function checkHost(text: string): string {
  const { isWildcard, hostname, port } = read(text)
  return `${isWildcard ? '*.' : ''}${hostname}${port === undefined ? '' : `:${port}`}`
}

/** Whether one of the hosts, as `checkHost` gives them, is the URL's. */
export function allowsHost(hosts: readonly string[], url: URL): boolean {
  return hosts.some((text) => {
    const { isWildcard, hostname, port } = read(text)
    const isPort = port === undefined ? url.port === '' : port === portOf(url)
    return isPort && (isWildcard ? url.hostname.endsWith(`.${hostname}`) : url.hostname === hostname)
  })
}

export function portOf({ protocol, port }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
}

function read(text: string): Pattern {
  const [, wildcard, host = '', port] = form.exec(text) ?? []
  const hostname = URL.parse(`https://${host}`)?.hostname ?? ''
  const isWildcard = wildcard !== undefined
  const isNumeric = /^\[|^[\d.]+$/.test(hostname)
  if (
    hostname === '' ||
    hostname.startsWith('.') ||
    (isWildcard && isNumeric) ||
    Number(port ?? 1) < 1 ||
    Number(port ?? 1) > 65_535
  ) {
    throw new SyntaxError(
      `${JSON.stringify(text.slice(0, 100))} is no host: want a name like api.example.com or *.example.com, with or without a port`,
    )
  }
  return { isWildcard, hostname, port: port === undefined ? undefined : Number(port) }
}
