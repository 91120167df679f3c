// The tenant reads of a function's failure in the response, the record and the function's log. The operator's log has no
// warning and no error.
import t from 'tap'
import { compileSource } from '#examples/functions/compile.ts'
import { query } from '#test/support/postgres.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { deployFunction, invoke } from './support/deployed.ts'
import { command, forever, unreachable } from './support/wasm.ts'

interface LogLine {
  level: number
  msg: string
  err?: unknown
}

t.test("A failure of a tenant's code is not an error in the operator's log", { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t, { logLevel: 'trace' })
  const tenant = await runtime.addTenant()
  await deployFunction(tenant, {
    name: 'exits',
    wasm: await compileSource("process.stderr.write('canary-of-the-log'); process.exit(3)"),
  })
  await deployFunction(tenant, { name: 'traps', wasm: command({ code: [unreachable] }) })
  await deployFunction(tenant, { name: 'hangs', wasm: command({ code: forever }), config: { timeout: 1 } })
  await query(
    tenant.home.adminUrl,
    `create function fails() returns void language plpgsql as
    $$ begin raise exception using errcode = 'PT500', message = 'it is mine'; end $$`,
  )
  t.equal((await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })).status, 200)

  t.match((await invoke(tenant, 'exits')).json(), {
    statusCode: '500',
    code: 'HOST_FUNCTION_ERROR',
    message: /canary-of-the-log/,
  })
  t.match((await invoke(tenant, 'traps')).json(), { statusCode: '500', code: 'HOST_FUNCTION_ERROR' })
  t.match((await invoke(tenant, 'hangs')).json(), { statusCode: '504', code: 'FUNCTION_TIMEOUT' })
  const raised = await tenant.request('POST', '/rest/v1/rpc/fails', { as: 'service', body: {} })
  t.match(raised.json(), { statusCode: '500', message: 'it is mine' })

  const lines = runtime.errors.map((line) => JSON.parse(line) as LogLine)
  t.same(
    lines.filter(({ level, err }) => level > 30 || err !== undefined),
    [],
    'nothing above "info", and no stack',
  )
  t.equal(lines.filter(({ msg }) => msg === "A tenant's code failed.").length, 4, 'the failures are logged at "debug"')
  t.notMatch(runtime.errors.join(''), /canary-of-the-log|it is mine/, 'the log omits what the tenant wrote')

  const { logs } = (await tenant.request('GET', '/functions/v1/exits/logs', { as: 'service' })).json()
  t.match(JSON.stringify(logs), /canary-of-the-log/)
  t.match(await tenant.rows('select status, error_message from function_invocations order by timestamp'), [
    { status: 'error', error_message: /canary-of-the-log/ },
    { status: 'error', error_message: /unreachable/ },
    { status: 'timeout', error_message: /1 s/ },
  ])
})
