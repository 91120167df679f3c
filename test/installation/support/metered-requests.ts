// Requests to one tenant that a test compares with the tenant's usage: each response, and each request whose response was lost.
import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'

/** Results of one kind of request. */
export interface Tally {
  responses: number
  bytes: number
  /** Requests that were sent and got no complete response. */
  lost: number
  /** Requests that nothing accepted. */
  unreachable: number
}

export function emptyTally(): Tally {
  return { responses: 0, bytes: 0, lost: 0, unreachable: 0 }
}

interface Target {
  gatewayUrl: string
  /** Name and secret key of the tenant. */
  name: string
  key: string
}

interface Payload {
  body: Buffer | string
  type?: string
}

/** Sends requests of a number of clients at once. */
export class MeteredRequests {
  readonly #agent: Agent
  readonly #target: Target
  readonly #connections: number
  #isOver = false
  #running: Promise<unknown> = Promise.resolve()

  /** @param keepAlive whether connections are used for more than one request */
  constructor(target: Target, { connections, keepAlive }: { connections: number; keepAlive: boolean }) {
    this.#target = target
    this.#connections = connections
    this.#agent = new Agent({ keepAlive, maxSockets: connections })
  }

  /** Sends a request. @returns the status; undefined without a complete response */
  async send(tally: Tally, method: string, path: string, payload?: Payload): Promise<number | undefined> {
    const { gatewayUrl, name, key } = this.#target
    const { body, type = 'application/octet-stream' } = payload ?? {}
    const request = httpRequest(`${gatewayUrl}/t/${name}${path}`, {
      agent: this.#agent,
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': type, 'content-length': body?.length ?? 0 },
    })
    try {
      request.end(body)
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      let bytes = 0
      for await (const chunk of response) bytes += (chunk as Buffer).length
      tally.responses++
      tally.bytes += bytes
      return response.statusCode
    } catch (cause) {
      const isUnreachable = cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED'
      if (isUnreachable) tally.unreachable++
      else tally.lost++
      return undefined
    }
  }

  /** Runs the clients. Each sends one request after the other, and pauses after one that was lost. */
  start(send: (client: number) => Promise<number | undefined>): void {
    const client = async (_: unknown, number: number) => {
      while (!this.#isOver) if ((await send(number)) === undefined) await wait(20)
    }
    this.#running = Promise.all(Array.from({ length: this.#connections }, client))
  }

  /** Ends the clients after their requests in progress. */
  async end(): Promise<void> {
    this.#isOver = true
    await this.#running
    this.#agent.destroy()
  }
}

/** Asserts bounds of a count. */
export function isBetween(t: Test, what: string, [min, count, max]: [number, number, number]): void {
  t.ok(min <= count && count <= max, `${what}: ${min} ≤ ${count} ≤ ${max}`)
}

/** Reads until a sufficient reading repeats, or for 15 seconds. @returns the last reading */
export async function settled<T>(read: () => Promise<T>, isEnough: (reading: T) => boolean): Promise<T> {
  const deadline = Date.now() + 15_000
  let last = await read()
  for (;;) {
    // Counts are pushed each second.
    await wait(1_100)
    const next = await read()
    if ((isEnough(next) && JSON.stringify(next) === JSON.stringify(last)) || Date.now() > deadline) return next
    last = next
  }
}
