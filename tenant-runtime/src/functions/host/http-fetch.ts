// http_fetch: a request of a function's to a host of its list. A name is resolved once, all of its addresses are looked at, and
// the connection goes to the first of them; each redirect is a new request that is looked at in the same way.
import { request as plainRequest, type IncomingMessage } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { isIP } from 'node:net'
import { callLimit } from '../executor/protocol.ts'
import { isReachable, type Networks } from '@tenantry/contract'
import { CallError } from './call-error.ts'
import { responseHeaders, readRequest, redirected, type FetchRequest } from './fetch-request.ts'
import { allowsHost, portOf } from './http-hosts.ts'

export interface FetchDeps {
  /** All addresses of a name. */
  resolve: (hostname: string) => Promise<string[]>
  /** Whether anything beyond the networks of this machine can be reached. */
  hasWayOut: () => Promise<boolean>
  /** Private networks that functions may reach all the same. */
  reachable: Networks
}

const maxRedirects = 5

/** @returns a line of JSON, `{"status":…,"headers":{…}}`, and the body. @throws CallError */
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
      throw codeOf(error) === 'ENETUNREACH' && !(await deps.hasWayOut()) ? noWayOut(error) : failed(error)
    })
    try {
      const next = redirected(request, response.statusCode ?? 0, response.headers.location)
      if (next === undefined) return await receive(response)
      if (redirects === maxRedirects)
        throw new CallError('TOO_MANY_REDIRECTS', `http_fetch: more than ${maxRedirects} redirects`)
      request = next
    } catch (error) {
      throw failed(error)
    } finally {
      response.destroy()
    }
  }
}

/** The one to connect to. @throws CallError for a host that is not of the list, or has an address that may not be reached, or none */
async function addressOf(deps: FetchDeps, hosts: readonly string[], url: URL, signal: AbortSignal): Promise<string> {
  if (!allowsHost(hosts, url))
    throw new CallError(
      'HOST_NOT_ALLOWED',
      `http_fetch: the function may not fetch from ${JSON.stringify(url.host.slice(0, 300))}; its "http_hosts" names those it may`,
    )
  const bare = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const addresses = isIP(bare) === 0 ? await resolved(deps, bare, signal) : [bare]
  const [first] = addresses
  if (first === undefined) throw new CallError('FETCH_FAILED', "http_fetch: the host's name has no address")
  // One of several that leads inside is a mistake at best.
  if (!addresses.every((address) => isReachable(address, deps.reachable))) {
    throw new CallError('ADDRESS_REFUSED', 'http_fetch: the host has an address that functions may not reach')
  }
  return first
}

async function resolved(
  { resolve, reachable, hasWayOut }: FetchDeps,
  hostname: string,
  signal: AbortSignal,
): Promise<string[]> {
  signal.throwIfAborted()
  // A resolver without a way out takes seconds to give up. Names in networks that the operator named it may know all the same.
  if (reachable.rules.length === 0 && !(await hasWayOut())) throw noWayOut()
  const over = Promise.withResolvers<never>()
  const abort = () => over.reject(new Error('the run is over'))
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([resolve(hostname), over.promise])
  } catch (cause) {
    if (signal.aborted)
      throw new CallError('FETCH_FAILED', 'http_fetch: the run ended while the host name was looked up', { cause })
    const [code, shown] = [codeOf(cause), JSON.stringify(hostname.slice(0, 100))]
    // The resolver reports that there is no such name, or no address of it.
    const isAbsent = ['ENOTFOUND', 'ENODATA', 'EAI_NODATA'].includes(code)
    if (isAbsent) throw new CallError('FETCH_FAILED', `http_fetch: the host name ${shown} does not exist`, { cause })
    if (!(await hasWayOut())) throw noWayOut(cause)
    throw new CallError(
      'FETCH_FAILED',
      `http_fetch: the host name ${shown} could not be looked up (${code}); try again later`,
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
      // A connection of its own, to the very address that was looked at.
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
    // Nobody asked to speak another protocol.
    request.once('upgrade', (_response, socket) => {
      socket.destroy()
      reject(new CallError('FETCH_FAILED', 'http_fetch: the host wanted to speak another protocol'))
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
      throw new CallError('ANSWER_TOO_LARGE', `http_fetch: the answer has more than ${callLimit} bytes`)
    chunks.push(chunk)
  }
  if (!response.complete) throw new CallError('FETCH_FAILED', 'http_fetch: the answer ended too early')
  return Buffer.concat(chunks)
}

/** This is the installation's doing, and no other host would be reached either. */
function noWayOut(cause?: unknown): CallError {
  const why = 'functions of this installation run on a network without internet access'
  return new CallError('NO_OUTBOUND_NETWORK', `http_fetch: outbound connections are not possible here: ${why}`, {
    cause,
  })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown'
}

/** What went wrong on the way, by its code alone: messages hold addresses. */
function failed(error: unknown): CallError {
  if (error instanceof CallError) return error
  return new CallError('FETCH_FAILED', `http_fetch: the request failed (${codeOf(error)})`, { cause: error })
}
