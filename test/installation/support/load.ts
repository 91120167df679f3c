// Clients of a tenant that send requests all the time, while something else happens to the platform.
import type { Test } from 'tap'
import { effort } from '#test/support/effort.ts'
import type { Platform } from '#test/support/platform.ts'

const clients = 2
const shared = { plan: 'Pro', region: 'local', rate_limit: { per_second: 10_000, burst: 10_000 } }

export interface Tenant {
  id: string
  name: string
  databaseUrl: string
  secretKey: string
}

export async function create(platform: Pick<Platform, 'call'>, name: string): Promise<Tenant> {
  const { body } = await platform.call('POST', '/v1/tenants', { ...shared, name }, { prefer: 'wait=60' })
  if (body['status'] !== 'ready') throw new Error(JSON.stringify(body))
  const { secret_key: secretKey } = body['keys'] as { secret_key: string }
  return { id: String(body['tenant_id']), name, databaseUrl: String(body['database_url']), secretKey }
}

export async function fill(platform: Pick<Platform, 'tenantCall'>, { name, secretKey: key }: Tenant): Promise<void> {
  const fields = [{ name: 'id', type: 'uuid', primary: true }]
  const schema = { name: 'notes', fields, rls_policy: { type: 'service' } }
  const type = 'application/json'
  for (const [path, body] of [
    ['/rest/v1/schemas', schema],
    ['/admin/reload-schemas', {}],
  ] as const) {
    const response = await platform.tenantCall(name, 'POST', path, { key, type, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  }
}

/** A client pauses between two requests. Small runs leave most of the machine to the other tests. */
const pauseMilliseconds = effort({ small: 25, full: 5 })
const pause = () => new Promise((resolve) => setTimeout(resolve, pauseMilliseconds))

/** Sends requests of several clients in a row until it is stopped. */
export function startLoad(send: (n: number) => Promise<Response>) {
  const failures: string[] = []
  const load = { sent: 0, failures, isRunning: true }
  const client = async () => {
    while (load.isRunning) {
      await pause()
      const response = await send(load.sent++)
      const text = await response.text()
      if (!response.ok) failures.push(`${response.status} ${text}`)
    }
  }
  const ended = Promise.all(Array.from({ length: clients }, client))
  return {
    load,
    async stop(t: Test) {
      load.isRunning = false
      await ended
      t.same(failures, [], 'no request failed')
      t.comment(`${load.sent} requests`)
    },
  }
}

/** Reads and writes rows in turn, with the tenant's secret key. */
export const rowsOf =
  (platform: Pick<Platform, 'tenantCall'>, { name, secretKey: key }: Tenant) =>
  (n: number) =>
    n % 2 === 0
      ? platform.tenantCall(name, 'GET', '/rest/v1/notes?limit=5', { key })
      : platform.tenantCall(name, 'POST', '/rest/v1/notes', { key, type: 'application/json', body: '{}' })
