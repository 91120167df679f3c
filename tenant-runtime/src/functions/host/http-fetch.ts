// The host call `http_fetch`: sends a function's request to a host on its list. A name is resolved once, all of its addresses
// are checked, and the connection goes to the first one. Each redirect is checked like a new request.
import { request as plainRequest, type IncomingMessage } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { isIP } from 'node:net'
import { callLimit } from '../executor/protocol.ts'
import { isReachable, type Networks } from '@tenantry/contract'
import { CallError } from './call-error.ts'
import { responseHeaders, readRequest, redirected, type FetchRequest } from './fetch-request.ts'
import { allowsHost, portOf } from './http-hosts.ts'

export interface FetchDeps {
  /** Returns all addresses of a host name. */
  resolve: (hostname: string) => Promise<string[]>
  /** Whether anything beyond the networks of this machine can be reached. */
  hasWayOut: () => Promise<boolean>
  /** Private networks that functions may reach. */
  reachable: Networks
}

const maxRedirects = 5

/** Sends a function's request. @returns a line of JSON, `{"status":…,"headers":{…}}`, and the body. @throws CallError */
export async function fetchForFunction(
  deps: FetchDeps,
  hosts: readonly string[],
  parts: readonly Buffer[],
  signal: AbortSignal,
): Promise<Buffer> {
  let request = readRequest(parts)
  for (let redirects = 0; ; redirects++) {
    const address = await addressOf(deps, hosts, request.url, signal)
    const response = await send(request, address, signal).catch(async (error: unknown) => {
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

/** Returns the address to connect to. @throws CallError if the host is not on the list, or an address is missing or not allowed */
async function addressOf(deps: FetchDeps, hosts: readonly string[], url: URL, signal: AbortSignal): Promise<string> {
  if (!allowsHost(hosts, url))
    throw new CallError(
      'HOST_NOT_ALLOWED',
      `http_fetch: The host ${JSON.stringify(url.host.slice(0, 300))} is not in the function's "http_hosts".`,
    )
  const bare = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const addresses = isIP(bare) === 0 ? await resolveAddresses(deps, bare, signal) : [bare]
  const [first] = addresses
  if (first === undefined) throw new CallError('FETCH_FAILED', 'http_fetch: The host name has no address.')
  // A host with both allowed and other addresses is rejected, because it may be an attack.
  if (!addresses.every((address) => isReachable(address, deps.reachable))) {
    throw new CallError('ADDRESS_REJECTED', 'http_fetch: The host has an address that functions may not reach.')
  }
  return first
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
    const [code, shown] = [codeOf(cause), JSON.stringify(hostname.slice(0, 100))]
    // The resolver reports that the name does not exist or has no address.
    const isAbsent = ['ENOTFOUND', 'ENODATA', 'EAI_NODATA'].includes(code)
    if (isAbsent) throw new CallError('FETCH_FAILED', `http_fetch: The host name ${shown} does not exist.`, { cause })
    if (!(await hasWayOut())) throw noOutboundNetwork(cause)
    throw new CallError(
      'FETCH_FAILED',
      `http_fetch: The host name ${shown} could not be looked up (${code}). Retry later.`,
      { cause },
    )
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

function send(
  { method, url, headers, body }: FetchRequest,
  address: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const isSecure = url.protocol === 'https:'
    const request = (isSecure ? tlsRequest : plainRequest)({
      // A new connection, to the address that was checked.
      agent: false,
      host: address,
      port: portOf(url),
      method,
      path: `${url.pathname}${url.search}`,
      signal,
      headers: {
        ...headers,
        host: url.host,
        ...(body.length > 0 || /^P/.test(method) ? { 'content-length': body.length } : {}),
      },
      ...(isSecure && isIP(hostname) === 0 ? { servername: hostname } : {}),
    })
    request.on('error', reject)
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
