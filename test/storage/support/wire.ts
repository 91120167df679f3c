// Helpers to send requests with the published storage clients and to read their responses.
import type { TestRuntime, TestTenant } from '#test/support/runtime.ts'
import { storageOf, versions, type Files, type Reply } from './storage-clients.ts'

export async function bucket(tenant: TestTenant, name: string, more: object = {}): Promise<Record<string, unknown>> {
  const response = await tenant.request('POST', '/storage/v1/bucket', {
    as: 'olga',
    body: { name, policy: 'public', ...more },
  })
  if (response.status !== 201) throw new Error(response.text)
  return response.json()
}

export function data(reply: Reply): Record<string, unknown> {
  if (reply.error !== null) throw new Error(reply.error.message)
  return reply.data as Record<string, unknown>
}

export async function names(files: Files, path?: string, options?: object): Promise<unknown[]> {
  return (data(await files.list(path, options)) as unknown as { name: string }[]).map(({ name }) => name)
}

export const headersOf = async (url: string, init: RequestInit = {}) => {
  const response = await fetch(url, init)
  return { status: response.status, text: await response.text(), ...Object.fromEntries(response.headers) }
}

/** Adds a tenant, and clients of a version for it: a user's and the service's. */
export async function openSetting(runtime: TestRuntime, version: (typeof versions)[number]) {
  const tenant = await runtime.addTenant({ name: `acme-${version}` })
  const storage = storageOf(tenant, 'olga', version)
  return { tenant, storage, service: storageOf(tenant, 'service', version), files: storage.from('docs') }
}
