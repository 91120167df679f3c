// Schemas, reloads and refusals, as the tests of the generated interface ask for them.
import type { Test } from 'tap'
import type { Answer, TestTenant } from '#test/support/runtime.ts'

export const rest = '/rest/v1'

/** The id of no record. */
export const absent = '00000000-0000-4000-8000-000000000000'
export const service = { type: 'service' }
export const id = { name: 'id', type: 'uuid', primary: true }
export const schema = (name: string, ...fields: object[]) => ({ name, fields: [id, ...fields], rls_policy: service })

/** Of records that belong to whoever makes them. */
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

export function same(t: Test, answer: Answer, status: number, code: string, message: RegExp = /./): void {
  t.equal(answer.status, status, answer.text)
  t.match(answer.json(), { statusCode: String(status), error: String, message, code })
}

export const addSchema = (tenant: TestTenant, schema: object) =>
  tenant.ask('POST', `${rest}/schemas`, { as: 'service', body: schema })

export const reload = (tenant: TestTenant, confirm?: unknown) =>
  tenant.ask('POST', '/admin/reload-schemas', {
    as: 'service',
    ...(confirm === undefined ? {} : { body: { confirm } }),
  })

export async function publish(tenant: TestTenant, ...schemas: object[]): Promise<Record<string, unknown>> {
  for (const schema of schemas) {
    const answer = await addSchema(tenant, schema)
    if (answer.status !== 201) throw new Error(answer.text)
  }
  return reloaded(tenant)
}

export async function reloaded(tenant: TestTenant, confirm?: string[]): Promise<Record<string, unknown>> {
  const answer = await reload(tenant, confirm)
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.json()
}

/** Changes a stored schema; nothing takes effect before a reload. */
export async function alter(tenant: TestTenant, name: string, changes: object): Promise<void> {
  const answer = await tenant.ask('PATCH', `${rest}/schemas?name=eq.${name}`, { as: 'service', body: changes })
  if (answer.status !== 204) throw new Error(answer.text)
}

export async function remove(tenant: TestTenant, name: string): Promise<void> {
  const answer = await tenant.ask('DELETE', `${rest}/schemas?name=eq.${name}`, { as: 'service' })
  if (answer.status !== 204) throw new Error(answer.text)
}

export async function insert(tenant: TestTenant, collection: string, record: object): Promise<Record<string, unknown>> {
  const answer = await tenant.ask('POST', `${rest}/${collection}`, { as: 'service', body: record })
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.json()
}
