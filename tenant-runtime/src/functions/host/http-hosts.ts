// The hosts from which a function may fetch: "api.example.com" or "*.example.com", with or without a port. Pure.

interface Pattern {
  /** Whether it matches names below `hostname`, at any depth, but not `hostname` itself. */
  isWildcard: boolean
  /** The host name in the form that a URL has. */
  hostname: string
  /** The port; undefined for the scheme's default, 443 or 80. */
  port: number | undefined
}

const form = /^(\*\.)?(\[[0-9a-fA-F:.]+\]|[^\s:/?#@\\[\]*%]+)(?::(\d{1,5}))?$/

/** Validates a host. @returns its canonical form. @throws SyntaxError with the reason */
export function checkHost(text: string): string {
  const { isWildcard, hostname, port } = read(text)
  return `${isWildcard ? '*.' : ''}${hostname}${port === undefined ? '' : `:${port}`}`
}

/** Whether one of the hosts, in the form that `checkHost` returns, matches the URL. */
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
      `Invalid host ${JSON.stringify(text.slice(0, 100))}. Use a name such as api.example.com or *.example.com, with or without a port.`,
    )
  }
  return { isWildcard, hostname, port: port === undefined ? undefined : Number(port) }
}
