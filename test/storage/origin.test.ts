// Storage as an HTTP origin: conditional requests on every path to an object, headers for caches and browsers, and
// CORS.
import t from 'tap'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'

const objects = '/storage/v1/object'
const content = '0123456789'
const before = 'Thu, 01 Jan 2026 00:00:00 GMT'
const later = 'Fri, 01 Jan 2999 00:00:00 GMT'

t.test('HTTP origin', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  await tenant.request('POST', '/storage/v1/bucket', { as: 'olga', body: { name: 'docs', policy: 'public' } })
  const put = (target: string, body: string, headers: Record<string, string> = {}) =>
    tenant.request('POST', `${objects}/docs/${target}`, {
      as: 'olga',
      body,
      headers: { 'content-type': 'text/plain', ...headers },
    })
  await put('a.txt', content)
  const signed = (await tenant.request('POST', `${objects}/sign/docs/a.txt`, { as: 'olga' })).json()
  const { etag = '', 'last-modified': modified = '' } = (await tenant.request('GET', `${objects}/docs/a.txt`)).headers
  const ways: [name: string, path: string][] = [
    ['plain', `${objects}/docs/a.txt`],
    ['public', `${objects}/public/docs/a.txt`],
    ['authenticated', `${objects}/authenticated/docs/a.txt`],
    ['signed', String(signed['url'])],
    ['plain with a token', String(signed['url']).replace('/sign/', '/')],
  ]

  t.test('Conditions have the same result on every path, by GET and by HEAD', async (t) => {
    const cases: [headers: Record<string, string>, status: number][] = [
      [{}, 200],
      [{ 'if-match': etag }, 200],
      [{ 'if-match': '*' }, 200],
      [{ 'if-match': `"x", ${etag}` }, 200],
      [{ 'if-match': '"x"' }, 412],
      [{ 'if-match': `W/${etag}` }, 412],
      [{ 'if-none-match': etag }, 304],
      [{ 'if-none-match': `W/${etag}` }, 304],
      [{ 'if-none-match': '*' }, 304],
      [{ 'if-none-match': `"x" ,${etag}` }, 304],
      [{ 'if-none-match': '"x", W/"y"' }, 200],
      [{ 'if-modified-since': modified }, 304],
      [{ 'if-modified-since': later }, 304],
      [{ 'if-modified-since': before }, 200],
      [{ 'if-modified-since': 'Sunday, 06-Nov-94 08:49:37 GMT' }, 200],
      [{ 'if-modified-since': 'Fri Jan  1 00:00:00 2999' }, 304],
      [{ 'if-modified-since': '2999' }, 200],
      [{ 'if-modified-since': 'soon' }, 200],
      [{ 'if-unmodified-since': modified }, 200],
      [{ 'if-unmodified-since': later }, 200],
      [{ 'if-unmodified-since': before }, 412],
      [{ 'if-unmodified-since': 'x' }, 200],
      // The ETag takes precedence over the date.
      [{ 'if-none-match': '"x"', 'if-modified-since': later }, 200],
      [{ 'if-none-match': etag, 'if-modified-since': before }, 304],
      [{ 'if-match': etag, 'if-unmodified-since': before }, 200],
      [{ 'if-match': '"x"', 'if-unmodified-since': later }, 412],
      [{ 'if-match': etag, 'if-none-match': etag }, 304],
      [{ 'if-match': '"x"', 'if-none-match': etag }, 412],
      [{ 'if-match': etag, 'if-modified-since': later }, 304],
    ]
    for (const [name, path] of ways) {
      for (const [headers, status] of cases) {
        for (const method of ['GET', 'HEAD']) {
          const response = await tenant.request(method, path, { headers })
          const what = `${method} ${name} ${JSON.stringify(headers)}`
          t.equal(response.status, status, what)
          if (status !== 412)
            t.match(response.headers, { etag, 'last-modified': modified, 'cache-control': 'max-age=3600' }, what)
          else t.notOk('cache-control' in response.headers, `${what}: an error must not be cached`)
          t.equal(
            response.text,
            method === 'HEAD' || status === 304 ? '' : status === 200 ? content : response.text,
            what,
          )
          if (status === 200)
            t.match(
              response.headers,
              {
                'content-length': '10',
                'content-type': 'text/plain',
                'accept-ranges': 'bytes',
                'x-content-type-options': 'nosniff',
              },
              what,
            )
        }
      }
    }
  })

  t.test('Conditional ranges have the same result on every path; HEAD ignores ranges', async (t) => {
    const cases: [headers: Record<string, string>, status: number, body: string][] = [
      [{ range: 'bytes=2-4' }, 206, '234'],
      [{ range: 'bytes=-2' }, 206, '89'],
      [{ range: 'bytes=10-' }, 416, ''],
      [{ range: 'bytes=2-4', 'if-range': etag }, 206, '234'],
      [{ range: 'bytes=2-4', 'if-range': `W/${etag}` }, 200, content],
      [{ range: 'bytes=2-4', 'if-range': '"x"' }, 200, content],
      [{ range: 'bytes=2-4', 'if-range': modified }, 200, content],
      [{ range: 'bytes=2-4', 'if-range': before }, 200, content],
      [{ range: 'bytes=10-', 'if-range': '"x"' }, 200, content],
      [{ range: 'bytes=2-4', 'if-match': etag }, 206, '234'],
      [{ range: 'bytes=2-4', 'if-match': '"x"' }, 412, ''],
      [{ range: 'bytes=2-4', 'if-none-match': etag }, 304, ''],
      [{ range: 'bytes=2-4', 'if-modified-since': later }, 304, ''],
      [{ range: 'bytes=2-4', 'if-unmodified-since': before }, 412, ''],
      [{ range: 'bytes=10-', 'if-match': '"x"' }, 412, ''],
    ]
    for (const [name, path] of ways) {
      for (const [headers, status, body] of cases) {
        const what = `${name} ${JSON.stringify(headers)}`
        const response = await tenant.request('GET', path, { headers })
        t.equal(response.status, status, what)
        if (status < 400) t.equal(response.text, body, what)
        if (status === 206) t.match(response.headers, { 'content-range': /^bytes \d-\d\/10$/, etag }, what)
        if (status === 416)
          t.match(
            response.headers,
            { 'content-range': 'bytes */10', 'cache-control': undefined, etag: undefined },
            what,
          )
        const head = await tenant.request('HEAD', path, { headers })
        t.equal(head.status, status === 206 || status === 416 ? 200 : status, `HEAD ${what}`)
        if (head.status === 200)
          t.match(head.headers, { 'content-length': '10', 'content-range': undefined }, `HEAD ${what}`)
      }
    }
  })

  t.test(
    'A download has its name in any language, and types that a browser might run are sent as downloads',
    async (t) => {
      const shown = async (path: string, type: string, query = '') => {
        await put(encodeURIComponent(path), 'x', { 'content-type': type })
        return (await tenant.request('GET', `${objects}/public/docs/${encodeURIComponent(path)}${query}`)).headers[
          'content-disposition'
        ]
      }
      t.equal(await shown('a.png', 'image/png'), undefined)
      t.equal(
        await shown('ä "x".html', 'text/html'),
        `attachment; filename="_ _x_.html"; filename*=UTF-8''%C3%A4%20%22x%22.html`,
      )
      t.equal(
        await shown('💩.svg', 'image/svg+xml'),
        `attachment; filename="__.svg"; filename*=UTF-8''%F0%9F%92%A9.svg`,
      )
      t.equal(await shown('a.png', 'image/png', '?download'), `attachment; filename="a.png"; filename*=UTF-8''a.png`)
      t.equal(
        await shown('a.png', 'image/png', `?download=${encodeURIComponent("it's (1)*\r\nx: y;.png")}`),
        `attachment; filename="it's (1)*__x: y;.png"; filename*=UTF-8''it%27s%20%281%29%2A%0D%0Ax%3A%20y%3B.png`,
      )
    },
  )

  t.test('Cache-Control states whether a response is private', async (t) => {
    const vary = async (path: string, headers: Record<string, string> = {}) =>
      (await tenant.request('GET', path, { headers })).headers.vary
    t.equal(
      await vary(ways[0]?.[1] ?? ''),
      'Authorization, apikey, Origin',
      'a cache must not serve it to a caller without the right to read',
    )
    t.equal(await vary(ways[2]?.[1] ?? '', { origin: 'https://page.example' }), 'Authorization, apikey, Origin')
    t.equal(await vary(ways[1]?.[1] ?? ''), 'Origin', 'the same for all callers, except for the sandbox')
    t.equal(await vary(ways[3]?.[1] ?? ''), 'Origin')
    await put('b.txt', 'x', { 'cache-control': 'public, max-age=31536000, immutable' })
    t.equal(
      (await tenant.request('GET', `${objects}/public/docs/b.txt`)).headers['cache-control'],
      'public, max-age=31536000, immutable',
    )
    t.notOk('cache-control' in (await tenant.request('GET', `${objects}/public/docs/absent`)).headers)
  })

  t.test('Scripts of any page may send every request and read the response', async (t) => {
    const origin = 'https://page.example'
    const requested =
      'authorization,apikey,range,if-match,if-none-match,if-modified-since,if-range,x-upsert,x-metadata,cache-control,content-type'
    for (const [name, path] of [
      ...ways,
      ['malformed', `${objects}/docs/100%.txt`],
      ['list', `${objects}/list/docs`],
      ['none', '/storage/v1/nowhere'],
    ] as const) {
      if (name !== 'malformed') {
        const preflight = await tenant.request('OPTIONS', path, {
          headers: { origin, 'access-control-request-method': 'PUT', 'access-control-request-headers': requested },
        })
        t.match(
          [preflight.status, preflight.headers],
          [
            204,
            {
              'access-control-allow-origin': '*',
              'access-control-allow-headers': requested,
              'access-control-allow-methods': /GET, HEAD, POST, PUT, PATCH, DELETE/,
            },
          ],
          name,
        )
      }
      const { headers } = await tenant.request('GET', path, { headers: { origin } })
      t.equal(headers['access-control-allow-origin'], '*', name)
      const exposed = String(headers['access-control-expose-headers']).toLowerCase().split(', ')
      for (const wanted of [
        'etag',
        'content-range',
        'content-length',
        'accept-ranges',
        'content-disposition',
        'last-modified',
        'retry-after',
      ])
        t.ok(exposed.includes(wanted), `${name}: ${wanted}`)
    }
    t.match(
      (await tenant.request('GET', `${objects}/docs/100%.txt`)).json(),
      { statusCode: '400', code: 'BAD_REQUEST', message: /percent sign/ },
      'an invalid URL',
    )
  })

  t.test('Metadata of an object is served without reading its file', async (t) => {
    await unreadable(tenant, 'a.txt')
    for (const [name, path] of ways) {
      const head = await tenant.request('HEAD', path)
      t.match([head.status, head.headers.etag, head.headers['content-length']], [200, etag, '10'], `HEAD ${name}`)
      t.equal((await tenant.request('GET', path, { headers: { 'if-none-match': etag } })).status, 304, `GET ${name}`)
      const missing = await tenant.request('GET', path)
      t.match([missing.status, missing.json()['code']], [404, 'FILE_MISSING'], `the file is absent: ${name}`)
      t.notOk('cache-control' in missing.headers || 'etag' in missing.headers, 'and the response may not be cached')
    }
  })
})

/** Changes the object's row so that it refers to an absent file. */
async function unreadable(tenant: TestTenant, path: string): Promise<void> {
  await tenant.rows('update storage_objects set blob_id = gen_random_uuid() where path = $1', [path])
}
