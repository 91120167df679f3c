// A tenant with notes of two users, and functions that make host calls for their callers.
import type { Test } from 'tap'
import { startRuntime, type RuntimeOptions, type TestRuntime, type TestTenant } from '#test/support/runtime.ts'
import { compileHostCaller } from './host-caller.ts'
import { deployFunction } from './deployed.ts'

export const canary = 'canary-7d1f20'
const hostCaller = compileHostCaller()

/**
 * Starts a tenant with a note of each owner, a function with its caller's role (`host-caller`) and one with the service
 * role (`master`).
 */
export async function setUp(
  t: Test,
  options: RuntimeOptions = {},
  limits: { file_bytes?: number } = {},
): Promise<{ runtime: TestRuntime; tenant: TestTenant }> {
  const runtime = await startRuntime(t, options)
  const tenant = await runtime.addTenant({ limits })
  const schema = {
    name: 'notes',
    fields: [
      { name: 'id', type: 'uuid', primary: true },
      { name: 'owner_id', type: 'string' },
      { name: 'text', type: 'string', required: true },
    ],
    rls_policy: { type: 'ownership', owner_field: 'owner_id' },
  }
  t.equal((await tenant.request('POST', '/rest/v1/schemas', { as: 'service', body: schema })).status, 201)
  t.equal((await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })).status, 200)
  for (const [caller, text] of [
    ['ada', 'the lamp is lit'],
    ['ben', 'the window is shut'],
  ] as const) {
    t.equal(
      (await tenant.request('POST', '/rest/v1/notes', { as: caller, body: { owner_id: caller, text } })).status,
      201,
    )
  }
  await deployFunction(tenant, {
    name: 'host-caller',
    wasm: await hostCaller,
    config: { timeout: 5, environment: { SECRET: canary } },
  })
  await deployFunction(tenant, { name: 'master', wasm: await hostCaller, config: { timeout: 5, role: 'service_role' } })
  return { runtime, tenant }
}

export const notes = (tenant: TestTenant) => tenant.rows('select owner_id, text from notes order by owner_id, text')
