// Functions over HTTP: deployed, read, changed, invoked and deleted as the specification describes (2.4, 2.5, 3, 4.3, 7),
// by plain HTTP and by the unmodified client.
import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { compileSource } from '#examples/functions/compile.ts'
import { effort } from '#test/support/effort.ts'
import { startRuntime, type ApiResponse, type TestTenant } from '#test/support/runtime.ts'
import { readAll } from './support/assemblyscript.ts'
import { executorsOf, killAll, sendForm } from './support/deployed.ts'
import { command, constant, drop, forever, unreachable } from './support/wasm.ts'

const canary = 'canary-3f9c1b'

/** A module with several modes, which standard input selects. */
const source = `${readAll}
function variable(name: string): string {
  return process.env.has(name) ? process.env.get(name) : ''
}
const wish = readAll()
if (wish == 'caller') {
  process.stdout.write('{"user":"' + variable('TENANTRY_USER_ID') + '","role":"' + variable('TENANTRY_ROLE'))
  process.stdout.write('","function":"' + variable('TENANTRY_FUNCTION') + '","trigger":"' + variable('TENANTRY_TRIGGER'))
  process.stdout.write('","method":"' + variable('TENANTRY_METHOD') + '"}')
} else if (wish == 'fail') { process.stderr.write('it broke with ' + variable('SECRET')); process.exit(3) }
else if (wish == 'forever') while (true) {}
else if (wish == 'created') process.stdout.write('Status: 201\\nContent-Type: text/csv\\nX-Rows: 1\\n\\na,b')
else process.stdout.write(wish)
`

interface Deployment {
  name?: string
  wasm?: Uint8Array<ArrayBuffer>
  trigger?: string
  config?: unknown
  description?: string
  as?: string | undefined
  method?: string
}

function deploy(
  tenant: TestTenant,
  { name = 'modes', wasm, trigger = '"Http"', config, description = 'has modes', as = 'service' }: Deployment,
): Promise<ApiResponse> {
  return sendForm(
    tenant,
    'POST',
    '/functions/v1/deploy',
    {
      name,
      trigger,
      description,
      ...(wasm === undefined ? {} : { wasm }),
      ...(config === undefined ? {} : { config: typeof config === 'string' ? config : JSON.stringify(config) }),
    },
    { as },
  )
}

const invoke = (tenant: TestTenant, body: string, as = 'ada', name = 'modes') =>
  tenant.request('POST', `/functions/v1/invoke/${name}`, {
    as: as === 'anonymous' ? undefined : as,
    body,
    headers: { 'content-type': 'text/plain' },
  })

const records = (tenant: TestTenant, where = 'true') =>
  tenant.rows(`select i.id, f.name, i.trigger, i.status, i.duration_ms, i.memory_peak, i.error_message, i.user_id, i.timestamp
    from "${tenant.id}".function_invocations i join "${tenant.id}".functions f on f.id = i.function_id
    where ${where} order by i.timestamp, i.id`)

function fails(t: Test, response: ApiResponse, status: number, code: string, message: RegExp): void {
  const body = response.json()
  t.equal(response.status, status, response.text)
  t.equal(body['code'], code)
  t.match(body['message'], message)
  t.type(body['error'], 'string')
}

t.test('Functions', { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const wasm = await compileSource(source)

  t.test('A deployment returns the function with its hash, and records an event', async (t) => {
    const response = await deploy(tenant, {
      wasm,
      config: { timeout: 2, max_memory: 16_777_216, environment: { SECRET: canary } },
    })
    t.equal(response.status, 201, response.text)
    t.same(Object.keys(response.json()).sort(), ['created_at', 'id', 'name', 'wasm_hash'])
    t.equal(response.json()['wasm_hash'], createHash('sha256').update(wasm).digest('hex'))
    const [event] = await tenant.rows(`select type, payload from "${tenant.id}".event_log order by seq desc limit 1`)
    t.match(event, { type: 'functions.deployed', payload: { name: 'modes' } })
  })

  t.test('The API returns a function with all of its fields but the bytes', async (t) => {
    const one = (await tenant.request('GET', '/functions/v1/modes', { as: 'service' })).json()
    t.match(one, {
      name: 'modes',
      description: 'has modes',
      trigger: 'Http',
      enabled: true,
      invocation_count: 0,
      last_invocation: null,
      config: { timeout: 2, max_memory: 16_777_216, environment: { SECRET: canary } },
    })
    t.notOk(Object.keys(one).some((key) => /wasm_(bytes|data)/.test(key)))
    t.match((await tenant.request('GET', '/functions/v1', { as: 'service' })).list(), [
      { name: 'modes', enabled: true },
    ])
    const shown = await tenant.request('GET', '/rest/v1/functions?select=*', { as: 'service' })
    t.notMatch(shown.text, canary, 'the collection shows no configuration')
    t.notMatch(shown.text, /wasm_data/)
  })

  t.test('An invalid deployment is rejected with its error, and nothing is created', async (t) => {
    const bad: [Deployment, number, string, RegExp][] = [
      [{ name: 'Bad Name', wasm }, 400, 'INVALID_FUNCTION', /"name"/],
      [{ name: 'x'.repeat(65), wasm }, 400, 'INVALID_FUNCTION', /1 to 64/],
      [{ name: 'next' }, 400, 'INVALID_FUNCTION', /Part "wasm" is required/],
      [{ name: 'next', wasm, trigger: '"Nothing"' }, 400, 'INVALID_FUNCTION', /"trigger"/],
      [{ name: 'next', wasm, trigger: 'Http' }, 400, 'INVALID_FUNCTION', /"trigger" must be valid JSON/],
      [{ name: 'next', wasm, config: { timeout: 301 } }, 400, 'INVALID_FUNCTION', /"config.timeout"/],
      [{ name: 'next', wasm, config: { max_memory: 1 } }, 400, 'INVALID_FUNCTION', /"config.max_memory"/],
      [{ name: 'next', wasm, config: '{' }, 400, 'INVALID_FUNCTION', /"config" must be valid JSON/],
      [{ name: 'next', wasm: Uint8Array.of(1, 2, 3) }, 400, 'INVALID_WASM', /not WebAssembly/],
      [{ name: 'next', wasm: command({ code: [0x6a] }) }, 400, 'INVALID_WASM', /not valid/],
      [
        { name: 'next', wasm: command({ memory: [0, 0x80, 0x04] }), config: { max_memory: 16_777_216 } },
        400,
        'INVALID_FUNCTION',
        /starts with 33554432 bytes/,
      ],
      [{ name: 'next', wasm: new Uint8Array(10 * 1024 * 1024 + 1) }, 413, 'WASM_TOO_LARGE', /10485760/],
      [{ name: 'modes', wasm }, 409, 'FUNCTION_EXISTS', /exists/],
      [{ name: 'next', wasm, as: 'ada' }, 403, 'FORBIDDEN', /service role/],
    ]
    for (const [deployment, status, code, message] of bad)
      fails(t, await deploy(tenant, deployment), status, code, message)
    fails(
      t,
      await sendForm(tenant, 'POST', '/functions/v1/deploy', { name: 'next', surprise: '1' }),
      400,
      'INVALID_FUNCTION',
      /Unknown part "surprise"/,
    )
    fails(
      t,
      await tenant.request('POST', '/functions/v1/deploy', { as: 'service', body: { name: 'next' } }),
      400,
      'INVALID_FUNCTION',
      /multipart/,
    )
    fails(
      t,
      await tenant.request('POST', '/functions/v1/deploy', {
        as: 'service',
        body: 'x',
        headers: { 'content-type': 'multipart/form-data; boundary=a' },
      }),
      400,
      'INVALID_FUNCTION',
      /malformed/,
    )
    const cut = '--a\r\nContent-Disposition: form-data; name="wasm"; filename="x.wasm"\r\n\r\nabc'
    fails(
      t,
      await tenant.request('POST', '/functions/v1/deploy', {
        as: 'service',
        body: cut,
        headers: { 'content-type': 'multipart/form-data; boundary=a' },
      }),
      400,
      'INVALID_FUNCTION',
      /ends too early/,
    )
    t.equal((await sendForm(tenant, 'POST', '/functions/v1/deploy', { name: 'next' }, { as: undefined })).status, 401)
    t.same(
      (await tenant.rows(`select name from "${tenant.id}".functions`)).map((row) => row['name']),
      ['modes'],
    )
  })

  t.test("An invocation passes the body to the function and returns the function's output", async (t) => {
    const echo = await invoke(tenant, '{"a":[1]}')
    t.equal(echo.status, 200, echo.text)
    t.equal(echo.text, '{"a":[1]}')
    t.match(echo.headers['content-type'], /application\/json/)
    t.match(echo.headers['x-invocation-id'], /^[0-9a-f-]{36}$/)
    t.match((await invoke(tenant, 'plain words')).headers['content-type'], /text\/plain/)
    t.same((await invoke(tenant, 'caller')).json(), {
      user: 'ada',
      role: 'authenticated',
      function: 'modes',
      trigger: 'http',
      method: 'POST',
    })
    t.same((await invoke(tenant, 'caller', 'service')).json(), {
      user: '',
      role: 'service_role',
      function: 'modes',
      trigger: 'http',
      method: 'POST',
    })
    const created = await invoke(tenant, 'created')
    t.match(
      [created.status, created.headers['content-type'], created.headers['x-rows'], created.text],
      [201, 'text/csv', '1', 'a,b'],
    )
    t.equal(
      (await tenant.request('POST', '/functions/v1/modes', { as: 'ada', body: 'alias' })).text,
      'alias',
      'the path of functions clients',
    )
    t.equal((await tenant.request('PUT', '/functions/v1/invoke/modes', { as: 'ada', body: 'put' })).text, 'put')
    fails(t, await invoke(tenant, 'x', 'anonymous'), 401, 'UNAUTHORIZED', /signed-in/)
    fails(t, await invoke(tenant, 'x', 'ada', 'missing'), 404, 'NO_SUCH_FUNCTION', /does not exist or is disabled/)
  })

  t.test('The unmodified client invokes a function and receives its error', async (t) => {
    const response = await tenant.client('ada').functions.invoke<unknown>('modes', { body: { hello: 'there' } })
    t.match(response, { error: null, data: { hello: 'there' } })
    const failed = await tenant.client('ada').functions.invoke('modes', { body: 'fail' })
    t.equal(failed.data, null)
    t.equal((failed.error as { name: string }).name, 'FunctionsHttpError')
  })

  t.test('A failure returns 500 without secrets, and every invocation has exactly one record', async (t) => {
    const failed = await invoke(tenant, 'fail', 'ben')
    fails(t, failed, 500, 'HOST_FUNCTION_ERROR', /exited with code 3: it broke with \[redacted\]/)
    t.notMatch(failed.text, canary)
    const [record, ...more] = await records(tenant, "i.user_id = 'ben'")
    t.equal(more.length, 0)
    t.match(record, { name: 'modes', trigger: 'http', status: 'error', error_message: /redacted/, user_id: 'ben' })
    t.ok(Number(record?.['memory_peak']) >= 65_536)
    t.ok(Number(record?.['duration_ms']) >= 0)
    const all = await records(tenant)
    t.notMatch(JSON.stringify(all), canary)
    t.notMatch(runtime.errors.join('\n'), canary)
    const one = (await tenant.request('GET', '/functions/v1/modes', { as: 'service' })).json()
    t.equal(one['invocation_count'], all.length)
    t.equal(one['last_invocation'], (all.at(-1) as { timestamp: Date }).timestamp.toISOString())
    const own = (await tenant.request('GET', '/rest/v1/function_invocations', { as: 'ben' })).list()
    t.match(own, [{ user_id: 'ben', status: 'error' }], 'the caller sees the record')
    t.equal(own.length, 1, 'the caller sees no other record')
  })

  t.test('The runtime kills a run at its deadline and serves the next one', async (t) => {
    const [late, next] = await Promise.all([invoke(tenant, 'forever', 'late'), invoke(tenant, 'meanwhile')])
    fails(t, late, 504, 'FUNCTION_TIMEOUT', /within its timeout of 2 s/)
    t.equal(next.text, 'meanwhile')
    t.equal((await invoke(tenant, 'after')).text, 'after')
    const [record] = await records(tenant, "i.user_id = 'late'")
    t.match(record, { status: 'timeout' })
    t.ok(Number(record?.['memory_peak']) > 0)
    t.ok(Number(record?.['duration_ms']) >= 2_000)
  })

  t.test('A change of configuration, state or module applies to the next invocation', async (t) => {
    const patch = (body: object) => tenant.request('PATCH', '/functions/v1/modes', { as: 'service', body })
    const changed = await patch({ config: { timeout: 3, environment: { SECRET: null, COLOUR: 'blue' } } })
    t.equal(changed.status, 200, changed.text)
    t.match(changed.json(), { config: { timeout: 3, max_memory: 16_777_216, environment: { COLOUR: 'blue' } } })
    t.ok(['id', 'config', 'updated_at'].every((key) => key in changed.json()))
    fails(t, await patch({ config: { timeout: 0 } }), 400, 'INVALID_FUNCTION', /config.timeout/)
    fails(t, await patch({ wasm: 'x' }), 400, 'UNKNOWN_FIELD', /"wasm"/)
    fails(t, await patch({ enabled: 'no' }), 400, 'INVALID_FUNCTION', /"enabled"/)
    t.equal((await patch({ enabled: false })).status, 200)
    fails(t, await invoke(tenant, 'x'), 404, 'NO_SUCH_FUNCTION', /disabled/)
    t.equal((await patch({ enabled: true })).status, 200)
    t.equal((await invoke(tenant, 'again')).text, 'again')
    const other = command({ code: [unreachable] })
    const updated = await sendForm(tenant, 'PATCH', '/functions/v1/modes', { wasm: other })
    t.equal(updated.status, 200, updated.text)
    t.equal(updated.json()['wasm_hash'], createHash('sha256').update(other).digest('hex'))
    fails(t, await invoke(tenant, 'x'), 500, 'HOST_FUNCTION_ERROR', /trapped: unreachable/)
    t.equal((await sendForm(tenant, 'PATCH', '/functions/v1/modes', { wasm })).status, 200)
    t.equal((await invoke(tenant, 'back')).text, 'back')
  })

  t.test('The runtime does not run a module that was changed in the database', async (t) => {
    const spoiled = command({ code: [...constant(1), drop] })
    t.equal((await deploy(tenant, { name: 'spoiled', wasm: command({ code: [...constant(2), drop] }) })).status, 201)
    await tenant.rows(`update "${tenant.id}".functions set wasm_data = $1 where name = 'spoiled'`, [
      Buffer.from(spoiled),
    ])
    fails(t, await invoke(tenant, '', 'ada', 'spoiled'), 500, 'HOST_FUNCTION_ERROR', /does not match its hash/)
  })

  t.test('Only the service role deletes a function', async (t) => {
    t.equal((await tenant.request('DELETE', '/functions/v1/spoiled', { as: 'ada' })).status, 403)
    t.equal((await tenant.request('DELETE', '/functions/v1/spoiled', { as: 'service' })).status, 204)
    fails(
      t,
      await tenant.request('DELETE', '/functions/v1/spoiled', { as: 'service' }),
      404,
      'NO_SUCH_FUNCTION',
      /does not exist/,
    )
    fails(t, await invoke(tenant, '', 'ada', 'spoiled'), 404, 'NO_SUCH_FUNCTION', /does not exist/)
  })
})

t.test('Under load, every invocation runs wholly on one version of the function', { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const versions = await Promise.all(
    ['one', 'two'].map((version) =>
      compileSource(`process.stdout.write('${version}'); process.stdout.write('${version}')`),
    ),
  )
  const [first, second] = versions
  if (first === undefined || second === undefined) throw new Error('two versions were wanted')
  t.equal((await deploy(tenant, { wasm: first })).status, 201)
  const seen = new Map<string, number>()
  let isOver = false
  const load = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (!isOver) {
        const { status, text } = await invoke(tenant, '')
        seen.set(`${status} ${text}`, (seen.get(`${status} ${text}`) ?? 0) + 1)
      }
    }),
  )
  for (let round = 0; round < effort({ small: 6, full: 50 }); round++) {
    const response = await sendForm(tenant, 'PATCH', '/functions/v1/modes', {
      wasm: round % 2 === 0 ? second : first,
    })
    t.equal(response.status, 200, response.text)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  isOver = true
  await load
  t.same([...seen.keys()].sort(), ['200 oneone', '200 twotwo'], JSON.stringify([...seen]))
})

t.test(
  'Executors that are killed under load leave one record for each invocation, and the runtime continues',
  { timeout: 120_000 },
  async (t) => {
    const runtime = await startRuntime(t)
    const tenant = await runtime.addTenant()
    t.equal(
      (
        await deploy(tenant, {
          wasm: await compileSource(
            'let n: u32 = 0; for (let i: u32 = 0; i < 10000000; i++) n ^= i * n + 7; process.stdout.write(n.toString())',
          ),
        })
      ).status,
      201,
    )
    const ids = new Set<string>()
    let responses = 0
    let isOver = false
    const load = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (!isOver) {
          const { status, headers, text } = await invoke(tenant, '')
          responses++
          if (status === 200) ids.add(String(headers['x-invocation-id']))
          // The kill reached a running or a starting executor.
          else t.match(text, /HOST_FUNCTION_ERROR|FUNCTIONS_BUSY/)
        }
      }),
    )
    for (let round = 0; round < effort({ small: 8, full: 100 }); round++) {
      // A round waits until an invocation has succeeded, however slow the machine is.
      for (const before = ids.size; ids.size === before;) await new Promise((resolve) => setTimeout(resolve, 10))
      killAll(await executorsOf(process.pid))
    }
    isOver = true
    await load
    const stored = await records(tenant)
    t.equal(stored.length, responses, `${responses} responses`)
    t.equal(stored.filter(({ status }) => status === 'success').length, ids.size)
    t.ok(
      stored.some(({ status }) => status === 'error'),
      'some were killed',
    )
  },
)

t.test("A flood of one function's invocations delays only that function", { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t, { functions: { total: 2, perTenant: 1, waitingPerFunction: 2 } })
  const loud = await runtime.addTenant({ name: 'loud' })
  const quiet = await runtime.addTenant({ name: 'quiet' })
  const stuck = command({ code: forever })
  t.equal((await deploy(loud, { wasm: stuck, config: { timeout: 1 } })).status, 201)
  t.equal((await deploy(quiet, { wasm: command() })).status, 201)
  const flood = Promise.all(Array.from({ length: 6 }, () => invoke(loud, '')))
  const calm = await invoke(quiet, '')
  t.equal(calm.status, 200, 'the other tenant is served')
  const statuses = (await flood).map(({ status }) => status).sort()
  t.same(statuses, [503, 503, 503, 504, 504, 504], 'one runs, two wait, the rest is rejected')
})
