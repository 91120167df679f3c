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

interface EngineAnswer {
  status: number
  /** Parsed; undefined where there is none. */
  body: unknown
}

export interface EngineSocket {
  /** @throws Error when the Engine can't be reached, or its answer is too long or no JSON */
  ask(call: EngineRequest, signal: AbortSignal): Promise<EngineAnswer>
  open(call: EngineRequest, signal: AbortSignal): Promise<IncomingMessage>
  /** The connection itself, or the answer in its place. */
  upgrade(call: EngineRequest, signal: AbortSignal): Promise<{ connection: Duplex } | { answer: IncomingMessage }>
}

/** Lists of a thousand containers have a few megabytes. */
const longestAnswer = 64 * 1024 * 1024

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
    const [answer] = (await once(send(call, {}, signal), 'response')) as [IncomingMessage]
    return answer
  }

  return {
    open,
    async ask(call, signal) {
      const answer = await open(call, signal)
      return { status: answer.statusCode ?? 502, body: await readJson(answer) }
    },
    upgrade(call, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<{ connection: Duplex } | { answer: IncomingMessage }>()
      send(call, { connection: 'Upgrade', upgrade: 'tcp' }, signal)
        .on('upgrade', (_answer, connection: Duplex, head: Buffer) => {
          if (head.length > 0) connection.unshift(head)
          resolve({ connection })
        })
        .on('response', (answer) => resolve({ answer }))
        .on('error', reject)
      return promise
    },
  }
}

/** @throws Error for more than 64 MiB, and for what is no JSON */
export async function readJson(answer: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > longestAnswer) throw new Error('the Engine gave too long an answer')
    chunks.push(chunk)
  }
  return length === 0 ? undefined : (JSON.parse(Buffer.concat(chunks).toString()) as unknown)
}
