// The Engine's socket: HTTP with one connection per call.
import { request, type ClientRequest, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'

export interface EngineRequest {
  method: string
  /** Encoded path with its query. */
  path: string
  body?: Buffer
  contentType?: string
}

interface EngineResponse {
  status: number
  /** Parsed JSON; undefined for an empty body. */
  body: unknown
}

/** Maximum size of a response. Lists of a thousand containers have a few megabytes. */
const maxResponseBytes = 64 * 1024 * 1024

/** Calls of the Engine over its socket. */
export type EngineSocket = ReturnType<typeof engineSocket>

export function engineSocket(socketPath: string) {
  function send(
    { method, path, body, contentType }: EngineRequest,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): ClientRequest {
    const contentHeaders =
      body === undefined
        ? {}
        : { 'content-type': contentType ?? 'application/json', 'content-length': String(body.length) }
    const call = request({
      socketPath,
      method,
      path,
      headers: { host: 'docker', ...contentHeaders, ...headers },
      agent: false,
      signal,
    })
    // Errors after the response's head reach its reader. No other listener exists then.
    call.on('error', () => undefined).end(body)
    return call
  }

  async function open(call: EngineRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const [response] = (await once(send(call, {}, signal), 'response')) as [IncomingMessage]
    return response
  }

  return {
    open,
    /** Calls the Engine. @throws Error if it is unreachable, or its response is too long or not valid JSON */
    async request(call: EngineRequest, signal: AbortSignal): Promise<EngineResponse> {
      const response = await open(call, signal)
      return { status: response.statusCode ?? 502, body: await readJson(response) }
    },
    /** Upgrades a call. @returns the connection, or the response if the Engine does not upgrade */
    upgrade(call: EngineRequest, signal: AbortSignal): Promise<{ connection: Duplex } | { response: IncomingMessage }> {
      const { promise, resolve, reject } = Promise.withResolvers<
        { connection: Duplex } | { response: IncomingMessage }
      >()
      send(call, { connection: 'Upgrade', upgrade: 'tcp' }, signal)
        .on('upgrade', (_response, connection: Duplex, head: Buffer) => {
          if (head.length > 0) connection.unshift(head)
          resolve({ connection })
        })
        .on('response', (response) => resolve({ response }))
        .on('error', reject)
      return promise
    },
  }
}

/** Reads a JSON body. @throws Error for more than 64 MiB, and for invalid JSON */
export async function readJson(response: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxResponseBytes) throw new Error('The response of the Docker Engine exceeds 64 MiB.')
    chunks.push(chunk)
  }
  return length === 0 ? undefined : (JSON.parse(Buffer.concat(chunks).toString()) as unknown)
}
