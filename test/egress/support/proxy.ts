// An egress proxy on this machine, and hosts at another loopback address in the place of public ones.
import { createServer, type RequestListener, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Server as TlsServer } from 'node:https'
import type { Test } from 'tap'
import { readNetworks, tenantToken } from '@tenantry/contract'
import { EgressProxy, type EgressProxyOptions } from '#gateway/egress/egress-proxy.ts'
import { defaultLimits } from '#gateway/limits.ts'
import { tunnelOfTenant, type Tunnel } from '#tenant-runtime/egress/egress-proxy.ts'
import { listen } from '#test/support/listen.ts'

export const internalToken = 'the-internal-token-of-the-egress-tests'
/** The only address that tests allow as public. */
export const publicAddress = '127.0.0.2'
export const [tenantA, tenantB] = ['t_0123456789abcdef0123', 't_abcdef0123456789abcd'] as const

interface StartedProxy {
  proxy: EgressProxy
  port: number
  url: string
  /** Names that were looked up. */
  lookups: string[]
  /** Destinations whose rejection was reported. */
  reported: string[]
  tunnelOf(tenantId: string): Tunnel
}

/** Starts an egress proxy. Every name resolves to the public address unless `resolve` is given. */
export async function startProxy(
  t: Pick<Test, 'teardown'>,
  {
    rules = {},
    limits = {},
    ...options
  }: Partial<Pick<EgressProxyOptions, 'resolve'>> & {
    rules?: Partial<EgressProxyOptions['rules']>
    limits?: Partial<EgressProxyOptions['limits']>
  } = {},
): Promise<StartedProxy> {
  const lookups: string[] = []
  const reported: string[] = []
  const resolve = options.resolve ?? (async () => [publicAddress])
  const proxy = new EgressProxy({
    internalToken,
    rules: { storage: [], reachable: readNetworks([publicAddress]), forbidden: readNetworks([]), ...rules },
    limits: { ...defaultLimits, ...limits },
    resolve: (hostname) => {
      lookups.push(hostname)
      return resolve(hostname)
    },
    elapsed: () => performance.now(),
    onRejected: (tenantId, destination) => reported.push(`${tenantId} ${destination}`),
  })
  const port = await listen(t, proxy.server)
  t.teardown(() => proxy.close())
  const url = `http://127.0.0.1:${port}`
  return {
    proxy,
    port,
    url,
    lookups,
    reported,
    tunnelOf: (tenantId) => tunnelOfTenant({ url, token: internalToken }, tenantId),
  }
}

/** Starts a server at the public address. @returns its port */
export const servePublic = (t: Pick<Test, 'teardown'>, server: Server | TlsServer): Promise<number> =>
  listen(t, server, publicAddress)

/** Starts an HTTP server at the public address. @returns its port */
export const servePublicly = (t: Pick<Test, 'teardown'>, listener: RequestListener): Promise<number> =>
  servePublic(t, createServer(listener))

/** Sends a CONNECT request as text. @returns the connection, and the first line and the code of the response */
export async function sendConnect(
  port: number,
  target: string,
  authorization: string | undefined = `Bearer ${tenantToken(internalToken, tenantA)}`,
): Promise<{ socket: Socket; status: number; code: string }> {
  const socket = connect({ host: '127.0.0.1', port }).on('error', () => undefined)
  const lines = [`CONNECT ${target} HTTP/1.1`, 'Host: x']
  if (authorization !== '') lines.push(`Proxy-Authorization: ${authorization}`)
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  const head = await new Promise<string>((resolve) => {
    let text = ''
    socket.on('data', function read(chunk: Buffer) {
      text += chunk.toString('latin1')
      if (!text.includes('\r\n\r\n')) return
      socket.off('data', read)
      resolve(text)
    })
    socket.once('close', () => resolve(text))
  })
  return {
    socket,
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0),
    code: /^tenantry-egress-error: (\w+)/m.exec(head)?.[1] ?? '',
  }
}
