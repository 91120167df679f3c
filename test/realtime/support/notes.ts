// A collection whose changes are events, in a tenant of a test.
import type { TestTenant } from '#test/support/runtime.ts'

interface SchemaOptions {
  name?: string
  policy?: 'ownership' | 'public_read' | 'authenticated'
  events?: boolean
}

/** Creates a collection with the fields `text`, `n` and `data`, and its owner. */
export async function createNotes(
  tenant: TestTenant,
  { name = 'notes', policy = 'public_read', events = true }: SchemaOptions = {},
): Promise<void> {
  const schema = {
    name,
    fields: [
      { name: 'id', type: 'uuid', primary: true },
      { name: 'owner_id', type: 'string' },
      { name: 'text', type: 'string' },
      { name: 'n', type: 'number' },
      { name: 'at', type: 'datetime' },
      { name: 'data', type: 'json' },
    ],
    rls_policy: { type: policy, ...(policy === 'authenticated' ? {} : { owner_field: 'owner_id' }) },
    events,
  }
  await expectStatus(tenant.request('POST', '/rest/v1/schemas', { as: 'service', body: schema }), 201)
  await expectStatus(tenant.request('POST', '/admin/reload-schemas', { as: 'service' }), 200)
}

/** Inserts a record, and returns its ID. */
export async function insertNote(tenant: TestTenant, caller: string, note: Record<string, unknown>): Promise<string> {
  const owner = caller === 'service' ? {} : { owner_id: caller }
  const response = await tenant.request('POST', '/rest/v1/notes', {
    as: caller,
    headers: { prefer: 'return=representation' },
    body: { ...owner, ...note },
  })
  if (response.status !== 201) throw new Error(response.text)
  const parsed = JSON.parse(response.text) as { id: string } | { id: string }[]
  const [record] = [parsed].flat()
  return record?.id ?? ''
}

async function expectStatus(response: Promise<{ status: number; text: string }>, status: number): Promise<void> {
  const { status: found, text } = await response
  if (found !== status) throw new Error(`${found}: ${text}`)
}
