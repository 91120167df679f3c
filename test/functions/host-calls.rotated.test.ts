// Host calls of deployed functions: which files they reach, with which rights, and how that is configured.
import t from 'tap'
import { compileSource } from '#examples/functions/compile.ts'
import { until } from '#test/support/until.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { callHost } from './support/host-caller.ts'
import { deployFunction } from './support/deployed.ts'
import { setUp } from './support/notes-tenant.ts'

t.test('Storage', { timeout: 180_000 }, async (t) => {
  const { tenant } = await setUp(t, {}, { file_bytes: 20_000_000 })
  for (const [caller, name, policy] of [
    ['ada', 'hers', 'private'],
    ['ben', 'his', 'private'],
    ['ben', 'shown', 'public'],
    ['ben', 'shared', 'authenticated'],
  ] as const) {
    t.equal((await tenant.request('POST', '/storage/v1/bucket', { as: caller, body: { name, policy } })).status, 201)
    t.equal(
      (
        await tenant.request('POST', `/storage/v1/object/${name}/there.txt`, {
          as: caller,
          headers: { 'content-type': 'text/plain' },
          body: `of ${caller}`,
        })
      ).status,
      200,
    )
  }
  const host = (as: string, what: string, ...parts: string[]) => callHost(tenant, 'host-caller', as, what, ...parts)
  const objects = async () =>
    (
      await tenant.rows(
        'select b.name, o.path, o.owner_id from storage_objects o join storage_buckets b on b.id = o.bucket_id order by 1, 2',
      )
    ).map((row) => Object.values(row).join(' '))
  const before = await objects()

  t.test("A function with the role of its caller has the caller's rights", async (t) => {
    t.equal((await host('ada', 'get', 'hers/there.txt')).text, 'of ada')
    t.equal((await host('ada', 'get', 'shown/there.txt')).text, 'of ben')
    t.equal((await host('ada', 'get', 'shared/there.txt')).text, 'of ben')
    t.equal((await host('ada', 'get', 'his/there.txt')).code, 'NoSuchBucket')
    t.equal((await host('ada', 'put', 'his/new.txt', 'text/plain', 'x')).code, 'NoSuchBucket')
    t.equal((await host('ada', 'remove', 'his/there.txt')).code, 'NoSuchBucket')
    t.equal((await host('ada', 'put', 'shown/new.txt', 'text/plain', 'x')).code, 'ACCESS_DENIED')
    t.equal(
      (await host('ada', 'put', 'shared/there.txt', 'text/plain', 'x')).code,
      'ACCESS_DENIED',
      'over an object of another user',
    )
    t.equal((await host('ada', 'remove', 'shown/there.txt')).code, 'ACCESS_DENIED')
    t.equal((await host('ada', 'remove', 'shared/there.txt')).code, 'ACCESS_DENIED')
    t.same(await objects(), before)
  })

  t.test('An object that a function stores has its row, its bytes and its event', async (t) => {
    const put = await host('ada', 'put', 'hers/a b/ä.txt', 'text/plain', 'hello')
    t.match(put.json(), { bucket: 'hers', path: 'a b/ä.txt', size: 5, content_type: 'text/plain', owner_id: 'ada' })
    t.equal(
      (
        await tenant.request(
          'GET',
          `/storage/v1/object/hers/${encodeURIComponent('a b')}/${encodeURIComponent('ä.txt')}`,
          {
            as: 'ada',
          },
        )
      ).text,
      'hello',
    )
    t.equal(
      (await host('ada', 'put', 'hers/a b/ä.txt', 'text/plain', 'again')).ok,
      true,
      'over an object of the caller',
    )
    t.equal((await host('ada', 'get', 'hers/a b/ä.txt')).text, 'again')
    t.equal((await host('ada', 'put', 'hers/empty', 'text/plain', '')).ok, true)
    t.equal((await host('ada', 'get', 'hers/empty')).text, '')
    t.equal((await host('ada', 'remove', 'hers/empty')).ok, true)
    const [event] = await tenant.rows(
      "select type, payload from event_log where type like 'storage.%' order by seq desc limit 1",
    )
    t.match(event, { type: 'storage.object.deleted', payload: { bucket: 'hers', path: 'empty', owner_id: 'ada' } })
    t.equal((await host('ada', 'get', 'hers/empty')).code, 'NoSuchKey')
  })

  t.test('Host calls follow the rules and limits of HTTP requests', async (t) => {
    for (const path of [
      'hers',
      '/a',
      'hers/',
      'hers/../his/there.txt',
      'hers//a',
      'hers/a\\b',
      `hers/${'x'.repeat(1025)}`,
    ])
      t.equal((await host('ada', 'get', path)).code, 'INVALID_PATH', path)
    t.equal((await host('ada', 'put', 'hers/a', 'no type', 'x')).code, 'BAD_REQUEST')
    t.equal((await host('ada', 'put much', 'hers/large', 'text/plain', '6291000')).ok, true)
    t.equal((await host('ada', 'get', 'hers/large')).text, '6291000')
    t.equal(
      (
        await tenant.request('POST', '/storage/v1/object/hers/larger', {
          as: 'ada',
          headers: { 'content-type': 'text/plain' },
          body: Buffer.alloc(6_291_457),
        })
      ).status,
      200,
    )
    t.equal((await host('ada', 'get', 'hers/larger')).code, 'ANSWER_TOO_LARGE')
    t.equal((await host('ada', 'put much', 'hers/second', 'text/plain', '6291000')).ok, true)
    t.equal((await host('ada', 'put much', 'hers/third', 'text/plain', '6291000')).code, 'QUOTA_EXCEEDED')
    t.equal(
      (await tenant.request('PUT', '/storage/v1/bucket/hers', { as: 'ada', body: { allowed_mime_types: ['image/*'] } }))
        .status,
      200,
    )
    t.equal((await host('ada', 'put', 'hers/b', 'text/plain', 'x')).code, 'MIME_NOT_ALLOWED')
  })

  t.test('A function with the service role reaches all objects', async (t) => {
    t.equal((await callHost(tenant, 'master', 'ada', 'get', 'his/there.txt')).text, 'of ben')
    t.equal((await callHost(tenant, 'master', 'ada', 'put', 'his/new.txt', 'text/plain', 'x')).ok, true)
    t.equal((await callHost(tenant, 'master', 'ada', 'remove', 'his/there.txt')).ok, true)
    t.same(
      (await objects()).filter((line) => line.startsWith('his')),
      ['his new.txt '],
    )
  })
})

t.test('Role and hosts are checked, and change without a deployment', { timeout: 180_000 }, async (t) => {
  const { tenant } = await setUp(t)
  const patch = (config: object) =>
    tenant.request('PATCH', '/functions/v1/host-caller', { as: 'service', body: { config } })
  for (const bad of [
    { role: 'owner' },
    { role: null },
    { http_hosts: 'a.example' },
    { http_hosts: [1] },
    { http_hosts: ['https://a.example'] },
    { http_hosts: ['*'] },
    { http_hosts: ['a.example/x'] },
    { http_hosts: ['a.example:0'] },
    { http_hosts: ['a.example:65536'] },
    { http_hosts: ['u@a.example'] },
    { http_hosts: ['*.10.0.0.1'] },
    { http_hosts: Array<string>(33).fill('a.example') },
  ]) {
    const response = await patch(bad)
    t.equal(response.status, 400, JSON.stringify(bad))
    t.match(response.json(), { code: 'INVALID_FUNCTION', message: /config\.(role|http_hosts)/ })
  }
  const count = async () =>
    (await callHost(tenant, 'host-caller', 'ada', 'query', 'select count(*) as n from notes')).json()
  t.same(await count(), { rows: [{ n: 1 }], count: 1 })
  t.match(
    (await patch({ role: 'service_role', http_hosts: ['API.example.com', '*.Example.org:8443', '[::1]:80'] })).json(),
    {
      config: { role: 'service_role', http_hosts: ['api.example.com', '*.example.org:8443', '[::1]:80'], timeout: 5 },
    },
  )
  t.same(await count(), { rows: [{ n: 2 }], count: 1 })
  await patch({ role: 'caller' })
  t.same(await count(), { rows: [{ n: 1 }], count: 1 })
})

t.test(
  "A triggered function has no user's rights, and its writes trigger other functions",
  { timeout: 180_000 },
  async (t) => {
    // The dispatcher does not poll in this test; only notifications start functions.
    const runtime = await startRuntime(t, { dispatch: { poll: 600_000 } })
    const tenant = await runtime.addTenant()
    const fields = [
      { name: 'id', type: 'uuid', primary: true },
      { name: 'owner_id', type: 'string' },
      { name: 'text', type: 'string', required: true },
    ]
    for (const name of ['notes', 'copies'])
      t.equal(
        (
          await tenant.request('POST', '/rest/v1/schemas', {
            as: 'service',
            body: { name, fields, rls_policy: { type: 'ownership', owner_field: 'owner_id' } },
          })
        ).status,
        201,
      )
    t.equal((await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })).status, 200)
    t.equal((await tenant.request('POST', '/storage/v1/bucket', { as: 'service', body: { name: 'seen' } })).status, 201)
    const copies = await compileSource(`import { query } from './tenantry.as'
    process.stdout.write(query('insert into copies (owner_id, text) select owner_id, text from notes returning text'))`)
    const counter = await compileSource(`import { env, put, query, tryPut } from './tenantry.as'
    put('seen/' + env('TENANTRY_FUNCTION'), 'application/json', String.UTF8.encode(query('select count(*) as n from copies')))`)
    const on = (table: string) => ({ Database: { table, operation: 'Insert' } })
    await deployFunction(tenant, { name: 'plain', wasm: copies, trigger: on('notes') })
    await deployFunction(tenant, {
      name: 'copier',
      wasm: copies,
      trigger: on('notes'),
      config: { role: 'service_role' },
    })
    await deployFunction(tenant, {
      name: 'reporter',
      wasm: counter,
      trigger: on('copies'),
      config: { role: 'service_role' },
    })
    t.equal(
      (
        await tenant.request('POST', '/rest/v1/notes', {
          as: 'ada',
          body: { owner_id: 'ada', text: 'the lamp is lit' },
        })
      ).status,
      201,
    )
    const ended = () =>
      tenant.rows(
        `select f.name, i.status from function_invocations i join functions f on f.id = i.function_id
          where i.error_message is distinct from 'interrupted' order by 1`,
      )
    await until(async () => (await ended()).length === 3, 'three functions were to run')
    t.same((await tenant.request('GET', '/storage/v1/object/seen/reporter', { as: 'service' })).json(), {
      rows: [{ n: 1 }],
      count: 1,
    })
    t.same(await ended(), [
      { name: 'copier', status: 'success' },
      { name: 'plain', status: 'success' },
      { name: 'reporter', status: 'success' },
    ])
    t.same(
      await tenant.rows('select owner_id, text from copies'),
      [{ owner_id: 'ada', text: 'the lamp is lit' }],
      'the function without a caller saw no note',
    )
  },
)
