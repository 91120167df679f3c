// Sends requests at a fixed rate until it is stopped, whether or not the earlier ones have ended, and records each of them.
import { Agent, request as send } from 'node:http'
import type { PacedRequest } from './paced-load.ts'

export interface Sample {
  /** The time for which the request was planned, as `performance.now()` has it. */
  at: number
  /** Milliseconds from then to the end of the response. */
  milliseconds: number
  /** The status; 0 for a broken connection. */
  status: number
}

/** Starts the load. Its requests are sent in turn. */
export function startSteadyLoad(requests: readonly PacedRequest[], perSecond: number) {
  const agent = new Agent({ keepAlive: true })
  const samples: Sample[] = []
  const open = new Set<Promise<void>>()
  const begin = performance.now()
  let sent = 0
  const timer = setInterval(() => {
    for (; begin + (sent * 1_000) / perSecond <= performance.now(); sent++) {
      const request = requests[sent % requests.length]
      if (request === undefined) return
      const at = begin + (sent * 1_000) / perSecond
      const ended = once(agent, request).then((status) => {
        samples.push({ at, milliseconds: performance.now() - at, status })
        open.delete(ended)
      })
      open.add(ended)
    }
  }, 2)
  return {
    samples,
    /** Stops, and waits for the responses. */
    async stop(): Promise<void> {
      clearInterval(timer)
      await Promise.all(open)
      agent.destroy()
    },
  }
}

function once(agent: Agent, { method, location: { port, path, headers }, body }: PacedRequest): Promise<number> {
  return new Promise((resolve) => {
    const length = body === undefined ? {} : { 'content-length': body.length }
    const request = send({ agent, host: '127.0.0.1', port, method, path, headers: { ...headers, ...length } })
    request.on('error', () => resolve(0))
    request.on('response', (response) => {
      response
        .resume()
        .on('error', () => resolve(0))
        .on('end', () => resolve(response.statusCode ?? 0))
    })
    request.end(body)
  })
}
