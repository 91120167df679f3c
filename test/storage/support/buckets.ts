// Buckets and what lies in them, as users make them.
import type { TestTenant } from '#test/support/runtime.ts'

export const buckets = '/storage/v1/bucket'

export async function create(tenant: TestTenant, who: string, body: object): Promise<Record<string, unknown>> {
  const answer = await tenant.ask('POST', buckets, { as: who, body })
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.json()
}

export async function put(tenant: TestTenant, who: string, target: string): Promise<void> {
  const answer = await tenant.ask('POST', `/storage/v1/object/${target}`, {
    as: who,
    body: 'hello',
    headers: { 'content-type': 'text/plain' },
  })
  if (answer.status !== 200) throw new Error(answer.text)
}
