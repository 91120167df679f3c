// Tenants of the suite: a neighbour with data, a file and a function, and tenants of the attackers.
import { command } from '#test/functions/support/wasm.ts'
import type { AttackedPlatform } from './platform.ts'

export interface Tenant {
  id: string
  name: string
  /** URL of the tenant at the gateway. */
  url: string
  secretKey: string
  jwtSecret: string
  databaseUrl: string
}

export type Attacker = Tenant

export const neighbourFileBytes = 65_536

/** Calls the operators' API. */
export async function callControl(
  { controlUrl, platformKey }: Pick<AttackedPlatform, 'controlUrl' | 'platformKey'>,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; text: string }> {
  const response = await fetch(`${controlUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${platformKey}`,
      prefer: 'wait=60',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: response.status, text: await response.text() }
}

/** Creates a tenant and waits until it is ready. */
export async function createTenant(platform: AttackedPlatform, name: string, plan: string): Promise<Tenant> {
  const isolation = platform.target === 'own Postgres' ? 'database-per-tenant' : 'schema-per-tenant'
  const wanted = { name, plan, region: 'local', isolation }
  const { status, text } = await callControl(platform, 'POST', '/v1/tenants', wanted)
  if (status !== 201 || !text.includes('"status":"ready"')) throw new Error(`${name}: ${status} ${text}`)
  const body = JSON.parse(text) as {
    tenant_id: string
    database_url: string
    keys: { secret_key: string; jwt_secret: string }
  }
  return {
    id: body.tenant_id,
    name,
    url: `${platform.gatewayUrl}/t/${name}`,
    secretKey: body.keys.secret_key,
    jwtSecret: body.keys.jwt_secret,
    databaseUrl: body.database_url,
  }
}

/** Deletes a tenant with its data. @returns the response, which contains the state of the operation */
export async function deleteTenant(platform: AttackedPlatform, { id }: Tenant): Promise<string> {
  const { status, text } = await callControl(platform, 'DELETE', `/v1/tenants/${id}?purge=true`)
  return `${status} ${text}`
}

/** Sends a request with the tenant's secret key. @throws Error for a status other than 2xx */
export async function callTenant(
  { url, secretKey }: Tenant,
  method: string,
  path: string,
  body: NonNullable<RequestInit['body']>,
  type = 'application/json',
): Promise<string> {
  // A form sets its own type, with the boundary of its parts.
  const headers = {
    authorization: `Bearer ${secretKey}`,
    ...(body instanceof FormData ? {} : { 'content-type': type }),
  }
  const response = await fetch(`${url}${path}`, { method, headers, body })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text
}

/** Creates a collection `notes` with the field `text`, which all clients may read. */
export async function addNotes(tenant: Tenant): Promise<void> {
  const fields = [
    { name: 'id', type: 'uuid', primary: true },
    { name: 'owner_id', type: 'string' },
    { name: 'text', type: 'string' },
  ]
  const schema = { name: 'notes', fields, rls_policy: { type: 'public_read', owner_field: 'owner_id' }, events: true }
  await callTenant(tenant, 'POST', '/rest/v1/schemas', JSON.stringify(schema))
  await callTenant(tenant, 'POST', '/admin/reload-schemas', '{}')
}

/** Deploys a function. */
export async function deploy(
  tenant: Tenant,
  name: string,
  wasm: Uint8Array<ArrayBuffer>,
  options: { trigger?: unknown; config?: unknown } = {},
): Promise<void> {
  const form = new FormData()
  form.set('name', name)
  form.set('trigger', JSON.stringify(options.trigger ?? 'Http'))
  form.set('config', JSON.stringify(options.config ?? {}))
  form.set('wasm', new Blob([wasm]), `${name}.wasm`)
  await callTenant(tenant, 'POST', '/functions/v1/deploy', form)
}

/** Creates the neighbour: 100 records, a file, a function that does nothing. */
export async function createNeighbour(platform: AttackedPlatform, name: string): Promise<Tenant> {
  const neighbour = await createTenant(platform, name, 'Pro')
  await addNotes(neighbour)
  const records = Array.from({ length: 100 }, (_, n) => ({ text: `note ${n}` }))
  await callTenant(neighbour, 'POST', '/rest/v1/notes', JSON.stringify(records))
  await callTenant(neighbour, 'POST', '/storage/v1/bucket', '{"name":"papers"}')
  const file = new Uint8Array(neighbourFileBytes).fill(97)
  await callTenant(neighbour, 'POST', '/storage/v1/object/papers/letter.bin', file, 'application/octet-stream')
  await deploy(neighbour, 'empty', command())
  return neighbour
}
