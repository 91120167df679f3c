// Callers that go away at any time.
import { request } from 'node:http'
import type { Chance } from '#test/simulation/chance.ts'

/** A caller that goes away: before its body has ended, before the answer, or in the middle of it. */
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
    const requested = request({
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
    requested.on('error', () => undefined)
    requested.once('close', resolve)
    const when = chance.below(3)
    if (when === 0 && text !== undefined) {
      requested.write(text.slice(0, Math.floor(text.length / 2)), () => requested.destroy())
      return
    }
    if (when <= 1) requested.end(text, () => setImmediate(() => requested.destroy()))
    else requested.end(text)
    requested.once('response', () => requested.destroy())
  })
}
