// Schemas, reloads and checks of errors for the tests of the generated interface.
import type { Test } from 'tap'
import type { ApiResponse, TestTenant } from '#test/support/runtime.ts'

export const rest = '/rest/v1'

/** An ID that no record has. */
export const absent = '00000000-0000-4000-8000-000000000000'
export const service = { type: 'service' }
export const id = { name: 'id', type: 'uuid', primary: true }
export const schema = (name: string, ...fields: object[]) => ({ name, fields: [id, ...fields], rls_policy: service })

/** A collection whose records belong to the user who creates them. */
export const notes = {
  name: 'notes',
  fields: [
    { name: 'id', type: 'uuid', primary: true },
    { name: 'owner', type: 'string' },
    { name: 'title', type: 'string', required: true },
    { name: 'rank', type: 'number' },
  ],
  rls_policy: { type: 'ownership', owner_field: 'owner' },
}

export function same(t: Test, response: ApiResponse, status: number, code: string, message: RegExp = /./): void {
  t.equal(response.status, status, response.text)
  t.match(response.json(), { statusCode: String(status), error: String, message, code })
}

export const addSchema = (tenant: TestTenant, schema: object) =>
  tenant.request('POST', `${rest}/schemas`, { as: 'service', body: schema })

export const reload = (tenant: TestTenant, confirm?: unknown) =>
  tenant.request('POST', '/admin/reload-schemas', {
    as: 'service',
    ...(confirm === undefined ? {} : { body: { confirm } }),
  })

export async function publish(tenant: TestTenant, ...schemas: object[]): Promise<Record<string, unknown>> {
  for (const schema of schemas) {
    const response = await addSchema(tenant, schema)
    if (response.status !== 201) throw new Error(response.text)
  }
  return reloaded(tenant)
}

export async function reloaded(tenant: TestTenant, confirm?: string[]): Promise<Record<string, unknown>> {
  const response = await reload(tenant, confirm)
  if (response.status !== 200) throw new Error(response.text)
  return response.json()
}

/** Changes a stored schema, which takes effect at the next reload. */
export async function alter(tenant: TestTenant, name: string, changes: object): Promise<void> {
  const response = await tenant.request('PATCH', `${rest}/schemas?name=eq.${name}`, { as: 'service', body: changes })
  if (response.status !== 204) throw new Error(response.text)
}

export async function remove(tenant: TestTenant, name: string): Promise<void> {
  const response = await tenant.request('DELETE', `${rest}/schemas?name=eq.${name}`, { as: 'service' })
  if (response.status !== 204) throw new Error(response.text)
}

export async function insert(tenant: TestTenant, collection: string, record: object): Promise<Record<string, unknown>> {
  const response = await tenant.request('POST', `${rest}/${collection}`, { as: 'service', body: record })
  if (response.status !== 201) throw new Error(response.text)
  return response.json()
}
