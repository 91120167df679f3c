// Features of the settings with which functions read the request and make the response.
import { call, response } from './functions.ts'
import { json, rejected, rows, type Feature, type Request, type Scene } from './scene.ts'
import { changed } from './writing.ts'

const setting = async ({ request }: Scene, name: string, headers: Record<string, string> = {}) =>
  JSON.parse((await request('GET', `/rpc/request_setting?name=${name}`, { headers })).text) as string
const set = (headers: unknown, status = ''): Request =>
  call('set_response', { headers: typeof headers === 'string' ? headers : JSON.stringify(headers), status })
const done = { done: true }

export const requestSettings: Feature[] = [
  {
    feature: '`request.method`, `request.path`, `request.headers`, `request.cookies`',
    here: 'same',
    note: 'without `authorization` and `apikey`, which Postgres could log',
    check: async (scene) => {
      const { t, expect } = scene
      t.equal(await setting(scene, 'method'), 'GET')
      t.equal(await setting(scene, 'path'), '/rpc/request_setting')
      await expect(call('request_setting', { name: 'method' }), response('POST'))
      const headers = JSON.parse(
        await setting(scene, 'headers', { 'X-Mine': 'é"\\', cookie: 'a=1; b="x y"', apikey: 'none' }),
      ) as Record<string, string>
      t.match(headers, { 'x-mine': String })
      for (const name of ['authorization', 'apikey', 'cookie']) t.notOk(name in headers, name)
      t.notOk(Object.keys(headers).some((name) => name.startsWith('x-tenantry-')))
      t.same(JSON.parse(await setting(scene, 'cookies', { cookie: 'a=1; b="x y"' })), { a: '1', b: '"x y"' })
      t.equal(await setting(scene, 'cookies'), '{}')
    },
  },
  {
    feature: 'headers and status by `response.headers`, `response.status`',
    here: 'same',
    note: 'not those of framing, CORS and browser security; cookies are limited to the tenant',
    check: async ({ t, expect, request }) => {
      await expect(set([], '418'), response(done, { status: 418 }))
      const cached = await request('POST', '/rpc/set_response', {
        body: {
          headers: JSON.stringify([
            { 'Cache-Control': 'public' },
            { 'cache-control': 'max-age=60' },
            { 'Set-Cookie': 'a=1; Domain=example.org; Path=/x; HttpOnly' },
            { 'set-cookie': 'b=2' },
            { 'Content-Length': '3' },
            { 'Transfer-Encoding': 'chunked' },
            { Connection: 'close' },
            { 'Access-Control-Allow-Origin': 'https://evil.example' },
            { 'Content-Security-Policy': 'none' },
            { 'X-Tenantry-Rejected': '1' },
            { 'Content-Type': 'text/html' },
          ]),
          status: '',
        },
        headers: { origin: 'https://app.example' },
      })
      t.same(cached.json(), done, 'the body is whole')
      t.match(cached.headers, {
        'cache-control': 'public, max-age=60',
        'set-cookie': ['a=1; Path=/x; HttpOnly', 'b=2'],
        'access-control-allow-origin': '*',
        'content-type': 'text/html',
        'content-security-policy': "sandbox; default-src 'none'",
        'x-content-type-options': 'nosniff',
      })
      await expect(set('', '204'), { status: 204, headers: { 'content-range': '0-0/*' }, body: '' })
      t.equal((await request('GET', '/rpc/add?a=1')).headers['cache-control'], undefined, 'only for that response')
    },
  },
  {
    feature: 'settings of the response that are invalid',
    here: 'differs',
    note: '400, because only errors of the service are a 500; PostgREST returns 500',
    check: async ({ expect }) => {
      const message =
        'response.headers guc must be a JSON array composed of objects with a single key and a string value'
      const tooLong = JSON.stringify([{ 'X-Long': 'x'.repeat(9_000) }])
      for (const headers of [
        '{}',
        '[{"a":1}]',
        '[{"a":"1","b":"2"}]',
        '[{"a":"1\\r\\nb: 2"}]',
        '[{"a b":"1"}]',
        'x',
        tooLong,
      ])
        await expect(set(headers), rejected(400, 'PGRST111', message, { error: 'raised' }))
      for (const status of ['abc', '99', '101', '600'])
        await expect(
          set('', status),
          rejected(400, 'PGRST112', 'response.status guc must be a valid status code', { error: 'raised' }),
        )
    },
  },
  {
    feature: 'a setting that a function makes for its session',
    here: 'differs',
    note: 'no other request has it, because tenants share connections',
    check: async ({ t, request }) => {
      for (let n = 0; n < 3; n++) await request('GET', '/rpc/set_for_session')
      for (let n = 0; n < 5; n++) t.notOk((await request('GET', '/rpc/caller')).headers['x-of'])
    },
  },
  {
    feature: 'headers and status that a trigger sets',
    here: 'same',
    check: async ({ t, request, expect }) => {
      const sent = await request('POST', '/lines', {
        body: { entry: 'touched by a trigger' },
        headers: { prefer: 'return=minimal' },
      })
      t.match(sent, { status: 202, headers: { 'x-entry': 'touched' } })
      await expect(
        { method: 'POST', path: '/lines', body: { entry: 'untouched' }, headers: { prefer: 'return=minimal' } },
        changed(201, '*/*', 'return=minimal'),
      )
    },
  },
  {
    feature: "`raise sqlstate 'PGRST'` with JSON",
    here: 'same',
    check: async ({ t, request, expect }) => {
      const respond = (message: unknown, detail: unknown) =>
        request('POST', '/rpc/raise_whole', {
          body: { message: JSON.stringify(message), detail: JSON.stringify(detail) },
        })
      const body = { code: '123', message: 'no more', details: 'a detail', hint: 'a hint' }
      const sent = await respond(body, { status: 402, headers: { 'X-Powered-By': 'ada', 'Content-Length': '1' } })
      t.match(sent, { status: 402, headers: { 'content-type': json, 'x-powered-by': 'ada' } })
      t.match(sent.json(), body)
      t.match((await respond({ code: '1', message: 'x' }, { status: 419, status_text: 'x', headers: {} })).json(), {
        code: '1',
        details: null,
        hint: null,
      })
      for (const [message, detail] of [
        [
          { code: 1, message: 'x' },
          { status: 402, headers: {} },
        ],
        [body, { status: 99, headers: {} }],
        [body, { status: 402 }],
        [body, { status: 402, headers: { a: 'b\r\nc: d' } }],
        [body, null],
      ])
        t.match((await respond(message, detail)).json(), { code: 'PGRST121', statusCode: '400' })
      await expect(
        call('raise_short', {}),
        rejected(400, 'PGRST121', 'Could not parse JSON in the "RAISE SQLSTATE \'PGRST\'" error', {
          details: "Invalid JSON value for MESSAGE: '{}'",
          hint: "MESSAGE must be a JSON object with obligatory keys: 'code', 'message' and optional keys: 'details', 'hint'.",
          error: 'raised',
        }),
      )
    },
  },
  {
    feature: '`timezone`',
    here: 'same',
    check: async ({ expect }) => {
      const path = '/books?id=eq.1&select=added'
      const utc = [{ added: '2026-01-01T00:00:00+00:00' }]
      await expect(
        { path, headers: { prefer: 'timezone=America/Lima' } },
        rows([{ added: '2025-12-31T19:00:00-05:00' }], { 'preference-applied': 'timezone=America/Lima' }),
      )
      await expect(
        { path: '/rpc/local_time', headers: { prefer: 'handling=strict, timezone=America/Lima' } },
        response('2025-12-31 19:00:00-05', { 'preference-applied': 'handling=strict, timezone=America/Lima' }),
      )
      await expect({ path }, rows(utc))
      for (const zone of ['Jupiter/Red_Spot', '+05:00', "UTC';--"])
        await expect({ path, headers: { prefer: `timezone=${zone}` } }, rows(utc))
      await expect(
        { path, headers: { prefer: 'handling=strict, timezone=Jupiter/Red_Spot' } },
        rejected(400, 'PGRST122', 'Invalid preferences given with handling=strict', {
          details: 'Invalid preferences: timezone=Jupiter/Red_Spot',
        }),
      )
    },
  },
  {
    feature: '`Content-Location` of lists, `Proxy-Status` of errors',
    here: 'same',
    check: async ({ t, request }) => {
      const at = async (path: string) => (await request('GET', path)).headers['content-location']
      t.equal(await at('/shelves'), '/rest/v1/shelves')
      t.equal(await at('/shelves?select=id&id=eq.1&order=id'), '/rest/v1/shelves?id=eq.1&order=id&select=id')
      t.equal(await at(`/shelves?id=in.(${'1,'.repeat(3_000)}1)`), undefined, 'not a very long one')
      for (const method of ['GET', 'HEAD'])
        t.match(await request(method, '/nowhere'), {
          status: 404,
          headers: { 'proxy-status': 'PostgREST; error=PGRST205' },
        })
      t.match((await request('POST', '/rpc/fail', { body: { code: 'PT402', what: 'x' } })).headers, {
        'proxy-status': 'PostgREST; error=PT402',
      })
    },
  },
]
