// A function deployed over HTTP, for tests that are about something else.
import { roomy, type Answer, type TestTenant } from '../../tenancy/support/runtime.ts'
import { Connections, defaultConnectionLimits } from '../../../tenant-runtime/src/database/connections.ts'
import { ScopedDatabase } from '../../../tenant-runtime/src/database/scoped-database.ts'
import type { Tenant } from '../../../tenant-runtime/src/tenancy/tenant.ts'

export interface Deployment {
  name: string
  wasm: Uint8Array<ArrayBuffer>
  config?: object
  /** `"Http"` without. */
  trigger?: object
}

/** @throws Error when it is not taken */
export async function deployFunction(tenant: TestTenant, { name, wasm, config = {}, trigger }: Deployment): Promise<string> {
  const form = new FormData()
  form.set('name', name)
  form.set('config', JSON.stringify(config))
  if (trigger !== undefined) form.set('trigger', JSON.stringify(trigger))
  form.set('wasm', new Blob([wasm]), 'module.wasm')
  const request = new Request(tenant.url, { method: 'POST', body: form })
  const answer = await tenant.ask('POST', '/functions/v1/deploy', {
    as: 'service', headers: { 'content-type': request.headers.get('content-type') ?? '' }, body: Buffer.from(await request.arrayBuffer()),
  })
  if (answer.status !== 201) throw new Error(`the function was not deployed: ${answer.text}`)
  return String(answer.json()['id'])
}

export function invokeFunction(tenant: TestTenant, name: string, body = '', as: string | undefined = 'ada'): Promise<Answer> {
  return tenant.ask('POST', `/functions/v1/invoke/${name}`, { as, body, headers: { 'content-type': 'text/plain' } })
}

/** The tenant as the runtime has it, with connections of its own; to be closed. */
export function openTenant({ id, home, manifest }: TestTenant): { tenant: Tenant; close: () => Promise<void> } {
  const connections = new Connections({ ...defaultConnectionLimits, total: 10, perTenant: 10 })
  const database = new ScopedDatabase(connections, { tenantId: id, url: home.url, ddlUrl: home.ddl_url })
  return { tenant: { id, name: manifest.name, generation: 1, limits: roomy, manifest, database }, close: () => connections.close() }
}
