// Callers that disconnect at any time.
import { request } from 'node:http'
import type { Chance } from '#test/simulation/chance.ts'

/**
 * Sends a request and disconnects: before the end of its body, before the response, or in the middle of the response.
 */
export function abandon(
  port: number,
  method: string,
  path: string,
  headers: Record<string, string>,
  body: object | string | undefined,
  chance: Chance,
): Promise<void> {
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  return new Promise((resolve) => {
    const outgoing = request({
      host: '127.0.0.1',
      port,
      agent: false,
      method,
      path,
      headers: {
        ...headers,
        ...(text === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
    })
    outgoing.on('error', () => undefined)
    outgoing.once('close', resolve)
    const when = chance.below(3)
    if (when === 0 && text !== undefined) {
      outgoing.write(text.slice(0, Math.floor(text.length / 2)), () => outgoing.destroy())
      return
    }
    if (when <= 1) outgoing.end(text, () => setImmediate(() => outgoing.destroy()))
    else outgoing.end(text)
    outgoing.once('response', () => outgoing.destroy())
  })
}
