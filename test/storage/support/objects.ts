// Creates, writes and reads buckets and objects over HTTP as users do, and checks the form of errors.
import type { Test } from 'tap'
import type { ApiResponse, TestTenant } from '#test/support/runtime.ts'

export const objects = '/storage/v1/object'
export const text = { 'content-type': 'text/plain' }
export const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
export const iso = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

export function same(t: Test, response: ApiResponse, status: number, code: string, message: RegExp = /./): void {
  t.equal(response.status, status, response.text)
  t.match(response.json(), { statusCode: String(status), error: String, message, code })
}

export async function bucket(tenant: TestTenant, name: string, more: object = {}, caller = 'u1'): Promise<void> {
  const response = await tenant.request('POST', '/storage/v1/bucket', { as: caller, body: { name, ...more } })
  if (response.status !== 201) throw new Error(response.text)
}

/** The caller `anonymous` has no token. */
export const put = (
  tenant: TestTenant,
  target: string,
  body: Buffer | string | Buffer[],
  caller = 'u1',
  headers: Record<string, string> = text,
) => tenant.request('POST', `${objects}/${target}`, { as: caller === 'anonymous' ? undefined : caller, body, headers })
export const get = (tenant: TestTenant, target: string, caller = 'u1') =>
  tenant.request('GET', `${objects}/${target}`, { as: caller === 'anonymous' ? undefined : caller })
