// Sends one request with a JSON body, for what a benchmark prepares and checks.
import type { Location } from './transfer.ts'

/**
 * Sends the request.
 * @param body undefined for none
 * @returns the response's JSON; undefined for an empty response
 * @throws Error for any other status
 */
export async function sendJson(
  { port, path, headers }: Location,
  method: string,
  status: number,
  body?: unknown,
): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (response.status !== status) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 500)}`)
  return text === '' ? undefined : (JSON.parse(text) as unknown)
}
