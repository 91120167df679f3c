// The plan's limits of functions: their number, and the bytes of their modules.
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { deploy, invoke, sendForm } from './support/deployed.ts'
import { command, section } from './support/wasm.ts'

const small = command()
/** The small module with a custom section, which has no effect. */
const large = new Uint8Array([...small, ...section(0, [1, 0x61, ...Array.from({ length: 1_000 }, () => 0)])])

t.test('A plan limits the number of functions and the bytes of their modules', { timeout: 60_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant({ limits: { functions: 3, function_bytes: 3 * small.length } })
  const change = (name: string, wasm: Uint8Array<ArrayBuffer>) =>
    sendForm(tenant, 'PATCH', `/functions/v1/${name}`, { wasm })
  t.equal((await deploy(tenant, { name: 'one', wasm: small })).status, 201)
  const tooLarge = await deploy(tenant, { name: 'large', wasm: large })
  t.equal(tooLarge.status, 413)
  t.match(tooLarge.json(), {
    code: 'QUOTA_EXCEEDED',
    message:
      `The module has ${large.length} bytes, and the tenant's other functions have ${small.length}.` +
      ` Its plan allows ${3 * small.length}.`,
    limit: 3 * small.length,
    used: small.length,
  })
  for (const name of ['two', 'three']) t.equal((await deploy(tenant, { name, wasm: small })).status, 201)
  const fourth = await deploy(tenant, { name: 'four', wasm: small })
  t.equal(fourth.status, 413)
  t.match(fourth.json(), { message: 'The tenant has 3 functions. Its plan allows 3.', limit: 3, used: 3 })
  t.equal((await change('two', small)).status, 200, 'a module may replace another one')
  t.equal((await change('two', large)).status, 413)
  t.equal((await tenant.rows('select 1 from functions')).length, 3)

  tenant.change({ limits: { ...tenant.manifest.limits, functions: 1, function_bytes: small.length } })
  t.equal((await invoke(tenant, 'three')).status, 200, 'functions of a larger plan continue to run')
  t.equal((await deploy(tenant, { name: 'four', wasm: small })).status, 413)
  await tenant.request('DELETE', '/functions/v1/one', { as: 'service' })
  tenant.change({ limits: { ...tenant.manifest.limits, functions: null, function_bytes: null } })
  for (const name of ['four', 'five']) t.equal((await deploy(tenant, { name, wasm: large })).status, 201)
})
