// Connects to hosts through the egress proxy of the region's gateway, where the runtime's own network has no way out.
import { request, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { egressErrorHeader, egressToken, sentToken, type InternalToken } from '@tenantry/contract'

/** The egress proxy did not connect. */
export class EgressError extends Error {
  /** One of the contract's `egressErrors`, or that of the failed connection to the proxy. */
  readonly code: string

  constructor(code: string, cause?: unknown) {
    super(`The egress proxy did not connect (${code}).`, { cause })
    this.name = 'EgressError'
    this.code = code
  }
}

/** Opens a connection to a host. Bytes pass unchanged; TLS is up to the caller. @throws EgressError */
export type Tunnel = (hostname: string, port: number, signal: AbortSignal) => Promise<Socket>

export interface EgressProxySettings {
  url: string
  /** The runtime's own token. */
  token: InternalToken
}

/** Returns how to connect for a tenant's function. */
export function tunnelOfTenant({ url, token }: EgressProxySettings, tenantId: string): Tunnel {
  return (hostname, port, signal) => openTunnel(url, egressToken(sentToken(token), tenantId), hostname, port, signal)
}

/** Returns how the runtime connects to its storage. */
export function tunnelToStorage({ url, token }: EgressProxySettings): Tunnel {
  return (hostname, port, signal) => openTunnel(url, sentToken(token), hostname, port, signal)
}

function openTunnel(url: string, token: string, hostname: string, port: number, signal: AbortSignal): Promise<Socket> {
  const proxy = new URL(url)
  const host = hostname.includes(':') && !hostname.startsWith('[') ? `[${hostname}]` : hostname
  return new Promise((resolve, reject) => {
    const connecting = request({
      agent: false,
      host: proxy.hostname,
      port: proxy.port,
      method: 'CONNECT',
      path: `${host}:${port}`,
      headers: { host: `${host}:${port}`, 'proxy-authorization': `Bearer ${token}` },
      signal,
    })
    connecting.once('error', (error) => reject(new EgressError(codeOf(error), error)))
    connecting.once('connect', (response: IncomingMessage, socket: Socket, head: Buffer) => {
      if (response.statusCode === 200) {
        if (head.length > 0) socket.unshift(head)
        resolve(socket)
        return
      }
      socket.destroy()
      const code = response.headers[egressErrorHeader]
      reject(new EgressError(typeof code === 'string' ? code : `HTTP ${response.statusCode}`))
    })
    connecting.end()
  })
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : 'unknown'
}
