// Calls of an installation's operators' API.
import type { Installation } from './installation.ts'

/**
 * Calls the API with the platform key, and waits until the change that the call begins has ended.
 * @returns the body of the response
 * @throws Error with the response if its status is not one of success
 */
export async function controlCall<Body = Record<string, unknown>>(
  { controlUrl, platformKey }: Pick<Installation, 'controlUrl' | 'platformKey'>,
  method: string,
  path: string,
  body?: object,
): Promise<Body> {
  const response = await fetch(`${controlUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${platformKey}`,
      prefer: 'wait=30',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as Body
}
