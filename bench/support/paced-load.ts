// Sends requests at a fixed rate, whether or not the earlier ones have ended, so that a slow server is not asked less often.
import { Agent, request as send } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Location } from './transfer.ts'

export interface PacedRequest {
  method: 'GET' | 'POST'
  location: Location
  body?: Buffer
}

/**
 * Sends the requests in turn, until the time is over.
 * @returns the milliseconds of each request, from the time for which it was planned to the end of its response
 * @throws Error for any status but 200
 */
export async function pacedLoad(
  requests: readonly PacedRequest[],
  { perSecond, seconds }: { perSecond: number; seconds: number },
): Promise<number[]> {
  const agent = new Agent({ keepAlive: true })
  const begin = performance.now()
  try {
    return await Promise.all(
      Array.from({ length: perSecond * seconds }, async (_, n) => {
        const planned = begin + (n * 1_000) / perSecond
        await sleep(Math.max(0, planned - performance.now()))
        const request = requests[n % requests.length]
        if (request !== undefined) await once(agent, request)
        return performance.now() - planned
      }),
    )
  } finally {
    agent.destroy()
  }
}

function once(agent: Agent, { method, location: { port, path, headers }, body }: PacedRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': body.length }
    const request = send({ agent, host: '127.0.0.1', port, method, path, headers: { ...headers, ...length } })
    request.on('error', reject)
    request.on('response', (response) => {
      if (response.statusCode !== 200) reject(new Error(`${method} ${path}: ${response.statusCode}`))
      response.resume().on('error', reject).on('end', resolve)
    })
    request.end(body)
  })
}
