// An installation with one tenant, and the console of its developers.
import t from 'tap'
import { openBrowser } from '#test/console/support/open-console.ts'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'

/** A tenant of the installation. */
export interface ServedTenant {
  id: string
  /** The tenant's URL on the host that all tenants share. */
  url: string
  secretKey: string
  /** Calls the tenant's API with its secret key. @throws Error for a response that reports an error */
  api<Body>(method: string, path: string, body?: unknown): Promise<Body>
  /** Sends a broadcast to the clients of a topic. */
  broadcast(topic: string, event: string, payload: unknown): Promise<void>
}

/** Starts an installation with a browser. Both end with the test file. */
export async function startTenants() {
  const installation = await startInstallation({})
  t.teardown(() => removeInstallation(installation))
  const { controlUrl, platformKey } = installation

  const create = async (name: string): Promise<ServedTenant> => {
    const created = await send<{ tenant_id: string; path_url: string; keys: { secret_key: string } }>(
      `${controlUrl}/v1/tenants`,
      'POST',
      platformKey,
      { name, plan: 'Pro', region: 'local' },
    )
    const { tenant_id: id, path_url: url, keys } = created
    const secretKey = keys.secret_key
    return {
      id,
      url,
      secretKey,
      api: (method, path, body) => send(`${url}${path}`, method, secretKey, body),
      async broadcast(topic, event, payload) {
        await fetch(`${url}/realtime/v1/api/broadcast/${topic}/events/${event}`, {
          method: 'POST',
          headers: { apikey: secretKey, 'content-type': 'application/json' },
          body: JSON.stringify(payload),
        })
      },
    }
  }
  return { create, installation, browser: await openBrowser(t) }
}

async function send<Body>(url: string, method: string, key: string, body?: unknown): Promise<Body> {
  const response = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      prefer: 'wait=30',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url} responded with ${response.status}: ${text}`)
  return (text === '' ? undefined : JSON.parse(text)) as Body
}
