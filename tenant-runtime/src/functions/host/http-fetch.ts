// The host call `http_fetch`: sends a function's request to a host on its list. A name is resolved once, all of its addresses
// are checked, and the connection goes to the first one: by this process, or by the egress proxy of the region's gateway. Each
// redirect is checked like a new request.
import { request as plainRequest, type IncomingMessage } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { isReachable, pinnedAddress, type Networks } from '@tenantry/contract'
import { EgressError, type Tunnel } from '../../egress/egress-proxy.ts'
import { callLimit } from '../executor/protocol.ts'
import { CallError } from './call-error.ts'
import { bytesOf, responseHeaders, readRequest, redirected, sentHeaders, type FetchRequest } from './fetch-request.ts'
import { allowsHost, portOf } from './http-hosts.ts'
import type { RunEgress } from './run-egress.ts'

export interface FetchDeps {
  /** Returns all addresses of a host name. */
  resolve: (hostname: string) => Promise<string[]>
  /** Whether anything beyond the networks of this machine can be reached. */
  hasWayOut: () => Promise<boolean>
  /** Private networks that functions may reach. */
  reachable: Networks
  /** Connects through the egress proxy; undefined to connect directly. */
  tunnel?: Tunnel | undefined
}

/** The destination of a request: an address that was checked, or a connection of the egress proxy to such an address. */
type Destination = { address: string } | { socket: Socket }

const maxRedirects = 5

/**
 * Sends a function's request.
 * @returns a line of JSON, `{"status":…,"headers":{…}}`, and the body
 * @throws CallError; RuntimeError if the bytes to send cannot be recorded
 */
export async function fetchForFunction(
  deps: FetchDeps,
  hosts: readonly string[],
  parts: readonly Buffer[],
  egress: RunEgress,
  signal: AbortSignal,
): Promise<Buffer> {
  let request = readRequest(parts)
  for (let redirects = 0; ; redirects++) {
    const destination = await destinationOf(deps, hosts, request.url, signal)
    await egress.expect(bytesOf(request)).catch((error: unknown) => {
      if ('socket' in destination) destination.socket.destroy()
      throw error
    })
    const response = await send(request, destination, egress, signal).catch(async (error: unknown) => {
      throw codeOf(error) === 'ENETUNREACH' && !(await deps.hasWayOut()) ? noOutboundNetwork(error) : failed(error)
    })
    try {
      const next = redirected(request, response.statusCode ?? 0, response.headers.location)
      if (next === undefined) return await receive(response)
      if (redirects === maxRedirects)
        throw new CallError(
          'TOO_MANY_REDIRECTS',
          `http_fetch: The request was redirected more than ${maxRedirects} times.`,
        )
      request = next
    } catch (error) {
      throw failed(error)
    } finally {
      response.destroy()
    }
  }
}

/** Returns where to send a request. @throws CallError if the host is not on the list, or an address is missing or not allowed */
async function destinationOf(
  deps: FetchDeps,
  hosts: readonly string[],
  url: URL,
  signal: AbortSignal,
): Promise<Destination> {
  if (!allowsHost(hosts, url))
    throw new CallError(
      'HOST_NOT_ALLOWED',
      `http_fetch: The host ${JSON.stringify(url.host.slice(0, 300))} is not in the function's "http_hosts".`,
    )
  if (deps.tunnel !== undefined) return { socket: await openTunnel(deps.tunnel, url, signal) }
  const found = await pinnedAddress(url.hostname, {
    resolve: (hostname) => resolveAddresses(deps, hostname, signal),
    isAllowed: (address) => isReachable(address, deps.reachable),
  })
  if (found === undefined) throw new CallError('FETCH_FAILED', 'http_fetch: The host name has no address.')
  if ('forbidden' in found) throw addressRejected()
  return found
}

async function openTunnel(tunnel: Tunnel, url: URL, signal: AbortSignal): Promise<Socket> {
  try {
    return await tunnel(url.hostname, portOf(url), signal)
  } catch (cause) {
    if (!(cause instanceof EgressError)) throw cause
    if (cause.code === 'ADDRESS_REJECTED') throw addressRejected(cause)
    if (cause.code === 'HOST_UNKNOWN') throw hostUnknown(url.hostname, cause)
    throw failed(cause)
  }
}

async function resolveAddresses(
  { resolve, reachable, hasWayOut }: FetchDeps,
  hostname: string,
  signal: AbortSignal,
): Promise<string[]> {
  signal.throwIfAborted()
  // Without a default route a resolver takes seconds to fail. It may still know names in networks that the operator allows.
  if (reachable.rules.length === 0 && !(await hasWayOut())) throw noOutboundNetwork()
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(new Error('The run has ended.'))
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([resolve(hostname), aborted.promise])
  } catch (cause) {
    if (signal.aborted)
      throw new CallError('FETCH_FAILED', 'http_fetch: The run ended while the host name was looked up.', { cause })
    const code = codeOf(cause)
    // The resolver reports that the name does not exist or has no address.
    const isAbsent = ['ENOTFOUND', 'ENODATA', 'EAI_NODATA'].includes(code)
    if (isAbsent) throw hostUnknown(hostname, cause)
    if (!(await hasWayOut())) throw noOutboundNetwork(cause)
    throw new CallError(
      'FETCH_FAILED',
      `http_fetch: The host name ${shownName(hostname)} could not be looked up (${code}). Retry later.`,
      { cause },
    )
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

function send(
  fetching: FetchRequest,
  destination: Destination,
  egress: RunEgress,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { method, url, body } = fetching
    const connectionOver = (socket: Socket) =>
      isSecure ? connectTls({ socket, host: hostname, ...serverName }) : socket
    const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const isSecure = url.protocol === 'https:'
    const serverName = isSecure && isIP(hostname) === 0 ? { servername: hostname } : {}
    const request = (isSecure ? tlsRequest : plainRequest)({
      // A new connection, to the address that was checked.
      ...('address' in destination
        ? { agent: false, host: destination.address, ...serverName }
        : { createConnection: () => connectionOver(destination.socket) }),
      port: portOf(url),
      method,
      path: `${url.pathname}${url.search}`,
      signal,
      headers: sentHeaders(fetching),
    })
    request.on('error', reject)
    request.once('socket', (socket) => {
      const add = () => egress.add(bytesOf(fetching))
      if (isSecure || socket.connecting) socket.once(isSecure ? 'secureConnect' : 'connect', add)
      else add()
    })
    request.once('response', resolve)
    // The request did not offer to switch protocols.
    request.once('upgrade', (_response, socket) => {
      socket.destroy()
      reject(new CallError('FETCH_FAILED', 'http_fetch: The host switched to another protocol.'))
    })
    request.end(body)
  })
}

async function receive(response: IncomingMessage): Promise<Buffer> {
  const head = Buffer.from(
    `${JSON.stringify({ status: response.statusCode ?? 0, headers: responseHeaders(response.headers) })}\n`,
  )
  const chunks: Buffer[] = [head]
  let bytes = head.length
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > callLimit)
      throw new CallError('ANSWER_TOO_LARGE', `http_fetch: The response has more than ${callLimit} bytes.`)
    chunks.push(chunk)
  }
  if (!response.complete) throw new CallError('FETCH_FAILED', 'http_fetch: The response ended too early.')
  return Buffer.concat(chunks)
}

function addressRejected(cause?: unknown): CallError {
  return new CallError('ADDRESS_REJECTED', 'http_fetch: The host has an address that functions may not reach.', {
    cause,
  })
}

function hostUnknown(hostname: string, cause: unknown): CallError {
  return new CallError('FETCH_FAILED', `http_fetch: The host name ${shownName(hostname)} does not exist.`, { cause })
}

function shownName(hostname: string): string {
  return JSON.stringify(hostname.slice(0, 100))
}

/** The error for any host if the installation's network has no default route. */
function noOutboundNetwork(cause?: unknown): CallError {
  return new CallError(
    'NO_OUTBOUND_NETWORK',
    'http_fetch: Functions of this installation run on a network without internet access.',
    { cause },
  )
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown'
}

/** The error of a failed connection. It has only the cause's code, because messages contain addresses. */
function failed(error: unknown): CallError {
  if (error instanceof CallError) return error
  return new CallError('FETCH_FAILED', `http_fetch: The request failed (${codeOf(error)}).`, { cause: error })
}
