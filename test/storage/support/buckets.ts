// Creates buckets and objects as users do.
import type { TestTenant } from '#test/support/runtime.ts'

export const buckets = '/storage/v1/bucket'

export async function create(tenant: TestTenant, caller: string, body: object): Promise<Record<string, unknown>> {
  const response = await tenant.request('POST', buckets, { as: caller, body })
  if (response.status !== 201) throw new Error(response.text)
  return response.json()
}

export async function put(tenant: TestTenant, caller: string, target: string): Promise<void> {
  const response = await tenant.request('POST', `/storage/v1/object/${target}`, {
    as: caller,
    body: 'hello',
    headers: { 'content-type': 'text/plain' },
  })
  if (response.status !== 200) throw new Error(response.text)
}
