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
    const asked = request({
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
    asked.on('error', () => undefined)
    asked.once('close', resolve)
    const when = chance.below(3)
    if (when === 0 && text !== undefined) {
      asked.write(text.slice(0, Math.floor(text.length / 2)), () => asked.destroy())
      return
    }
    if (when <= 1) asked.end(text, () => setImmediate(() => asked.destroy()))
    else asked.end(text)
    asked.once('response', () => asked.destroy())
  })
}
