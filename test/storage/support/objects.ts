// Buckets and objects over HTTP, as their users make, write and read them, and how refusals look.
import type { Test } from 'tap'
import type { Answer, TestTenant } from '#test/support/runtime.ts'

export const objects = '/storage/v1/object'
export const text = { 'content-type': 'text/plain' }
export const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
export const iso = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

export function same(t: Test, answer: Answer, status: number, code: string, message: RegExp = /./): void {
  t.equal(answer.status, status, answer.text)
  t.match(answer.json(), { statusCode: String(status), error: String, message, code })
}

export async function bucket(tenant: TestTenant, name: string, more: object = {}, who = 'u1'): Promise<void> {
  const answer = await tenant.ask('POST', '/storage/v1/bucket', { as: who, body: { name, ...more } })
  if (answer.status !== 201) throw new Error(answer.text)
}

/** `nobody` has no token. */
export const put = (
  tenant: TestTenant,
  target: string,
  body: Buffer | string | Buffer[],
  who = 'u1',
  headers: Record<string, string> = text,
) => tenant.ask('POST', `${objects}/${target}`, { as: who === 'nobody' ? undefined : who, body, headers })
export const get = (tenant: TestTenant, target: string, who = 'u1') =>
  tenant.ask('GET', `${objects}/${target}`, { as: who === 'nobody' ? undefined : who })
