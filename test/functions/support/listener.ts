// A tenant with notes, and a function that receives their changes.
import { compileSource } from '#examples/functions/compile.ts'
import { startRuntime, type RuntimeOptions, type TestTenant } from '#test/support/runtime.ts'
import { readAll } from './assemblyscript.ts'

/** A function that fails for a change with the text `broken`, and returns 422 for the text `rejected`. */
export const listener = await compileSource(`${readAll}
const input = readAll()
const isBroken = input.includes('"broken"') && !process.env.has('REPAIRED')
if (input.includes('"rejected"')) process.stdout.write('Status: 422\\n\\nno')
else process.stdout.write('ok')
if (isBroken) { process.stderr.write('it can not take this'); process.exit(1) }
`)

export const quick = { poll: 50, lease: 2_000, again: 100 }

export async function open(t: Parameters<typeof startRuntime>[0], options: RuntimeOptions = {}) {
  const runtime = await startRuntime(t, { dispatch: quick, ...options })
  const tenant = await runtime.addTenant()
  return { runtime, tenant, clock: runtime.clock }
}

export const fields = [
  { name: 'id', type: 'uuid', primary: true },
  { name: 'text', type: 'string', required: true },
  { name: 'owner_id', type: 'string' },
]

export async function makeNotes(tenant: TestTenant, more: object[] = []): Promise<void> {
  const made = await tenant.request('POST', '/rest/v1/schemas', {
    as: 'service',
    body: { name: 'notes', fields: [...fields, ...more], rls_policy: { type: 'ownership', owner_field: 'owner_id' } },
  })
  if (made.status !== 201) throw new Error(made.text)
  await reload(tenant)
}

export async function reload(tenant: TestTenant): Promise<void> {
  const reloaded = await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
  if (reloaded.status !== 200) throw new Error(reloaded.text)
}

export const onNotes = (operation: string) => ({ Database: { table: 'notes', operation } })
export const waiting = async (tenant: TestTenant) =>
  tenant.rows(
    'select d.*, f.name from function_deliveries d left join functions f on f.id = d.function_id order by d.seq',
  )
export const runs = async (tenant: TestTenant, status = 'success') =>
  Number(
    (
      await tenant.rows(
        "select count(*)::int as n from function_invocations where trigger = 'database' and status = $1",
        [status],
      )
    )[0]?.['n'],
  )
export const status = async (tenant: TestTenant, name: string) => {
  const { trigger_status, trigger_reason } = (
    await tenant.request('GET', `/functions/v1/${name}`, { as: 'service' })
  ).json()
  return { trigger_status, ...(trigger_reason === undefined ? {} : { trigger_reason }) }
}
