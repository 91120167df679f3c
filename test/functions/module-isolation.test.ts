// Only the tenant that deployed a module runs it. Another tenant that writes the module's hash into its own home does not
// reach the module.
import t from 'tap'
import { compileSource } from '#examples/functions/compile.ts'
import { query } from '#test/support/postgres.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { deploy, invoke } from './support/deployed.ts'

const compilePrinter = (text: string) => compileSource(`process.stdout.write(${JSON.stringify(text)})`)

/** Runs SQL as a tenant's developer does, with the home's own login. */
const withSql = ({ id, home }: TestTenant, sql: string) =>
  query(
    home.adminUrl,
    `select set_config('app.tenant_id', '${id}', false), set_config('app.role', 'service_role', false); ${sql}`,
  )

/** Runs SQL as a superuser, to create states that only a fault of the database could cause. */
const asSuperuser = (tenant: TestTenant, sql: string) =>
  tenant.rows(`select set_config('app.tenant_id', '${tenant.id}', false); ${sql}`)

t.test("A tenant that writes the hash of another tenant's module does not run it", { timeout: 240_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const owner = await runtime.addTenant({ name: 'owner' })
  const thief = await runtime.addTenant({ name: 'thief' })
  const [prices, wasm] = [await compilePrinter("the owner's prices"), await compilePrinter('my own')]
  const deployed = await deploy(owner, { name: 'prices', wasm: prices })
  t.equal(deployed.status, 201, deployed.text)
  const hash = String(deployed.json()['wasm_hash'])
  for (const name of ['fresh', 'used', 'copied']) t.equal((await deploy(thief, { name, wasm })).status, 201)
  t.equal((await invoke(thief, 'used')).text, 'my own')
  t.equal((await invoke(owner, 'prices')).text, "the owner's prices", 'the runtime holds the module')

  await t.rejects(
    withSql(thief, `update functions set wasm_hash = '${hash}'`),
    { code: '42501' },
    "the tenant's own SQL may not write functions",
  )
  await asSuperuser(
    thief,
    `
    update functions set wasm_hash = '${hash}', updated_at = updated_at + interval '1 second' where name in ('fresh', 'used');
    insert into functions (name, description, trigger_type, wasm_hash, wasm_data, config)
      select 'inserted', '', trigger_type, '${hash}', wasm_data, config from functions where name = 'copied'`,
  )
  t.equal((await thief.rows('select 1 from functions where wasm_hash = $1', [hash])).length, 3, 'the hash is stored')
  for (const name of ['fresh', 'used', 'inserted']) {
    for (const attempt of ['first', 'second']) {
      const response = await invoke(thief, name)
      t.equal(response.status, 500, response.text)
      t.match(
        response.json(),
        { code: 'HOST_FUNCTION_ERROR', message: /does not match its hash/ },
        `${name}: ${attempt}`,
      )
      t.notMatch(response.text, /prices/)
    }
  }
  t.equal((await invoke(thief, 'copied')).text, 'my own')
  t.equal((await invoke(owner, 'prices')).text, "the owner's prices")

  t.test('A module whose bytes do not match its hash does not run, even if another tenant has the bytes', async (t) => {
    const same = await deploy(thief, { name: 'same', wasm: prices })
    t.equal(same.json()['wasm_hash'], hash)
    t.equal((await invoke(thief, 'same')).text, "the owner's prices")
    await asSuperuser(
      thief,
      `update functions set wasm_data = (select wasm_data from functions where name = 'copied'),
      updated_at = updated_at + interval '1 second' where name = 'same'`,
    )
    thief.change({})
    t.match(
      (await invoke(thief, 'same')).json(),
      { code: 'HOST_FUNCTION_ERROR' },
      'the runtime compares again when it loads again',
    )
    t.equal((await invoke(owner, 'prices')).text, "the owner's prices")
  })
  t.same(runtime.errors, [])
})
