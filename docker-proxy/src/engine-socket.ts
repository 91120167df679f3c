// The Engine behind the door: HTTP over its socket, one connection a call.
import { request, type ClientRequest, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'

export interface EngineRequest {
  method: string
  /** With query, encoded. */
  path: string
  body?: Buffer
  contentType?: string
}

interface EngineResponse {
  status: number
  /** Parsed; undefined where there is none. */
  body: unknown
}

export interface EngineSocket {
  /** @throws Error when the Engine can't be reached, or its answer is too long or no JSON */
  request(call: EngineRequest, signal: AbortSignal): Promise<EngineResponse>
  open(call: EngineRequest, signal: AbortSignal): Promise<IncomingMessage>
  /** The connection itself, or the answer in its place. */
  upgrade(call: EngineRequest, signal: AbortSignal): Promise<{ connection: Duplex } | { response: IncomingMessage }>
}

/** Lists of a thousand containers have a few megabytes. */
const maxResponseLength = 64 * 1024 * 1024

export function engineSocket(socketPath: string): EngineSocket {
  function send(
    { method, path, body, contentType }: EngineRequest,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): ClientRequest {
    const described =
      body === undefined
        ? {}
        : { 'content-type': contentType ?? 'application/json', 'content-length': String(body.length) }
    const call = request({
      socketPath,
      method,
      path,
      headers: { host: 'docker', ...described, ...headers },
      agent: false,
      signal,
    })
    // Errors after the answer's head reach whoever reads the answer; here nobody listens any more.
    call.on('error', () => undefined).end(body)
    return call
  }

  async function open(call: EngineRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const [response] = (await once(send(call, {}, signal), 'response')) as [IncomingMessage]
    return response
  }

  return {
    open,
    async request(call, signal) {
      const response = await open(call, signal)
      return { status: response.statusCode ?? 502, body: await readJson(response) }
    },
    upgrade(call, signal) {
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

/** @throws Error for more than 64 MiB, and for what is no JSON */
export async function readJson(response: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxResponseLength) throw new Error('the Engine gave too long an answer')
    chunks.push(chunk)
  }
  return length === 0 ? undefined : (JSON.parse(Buffer.concat(chunks).toString()) as unknown)
}
