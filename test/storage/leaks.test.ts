// Responses disclose nothing: a hidden resource has the same response as an absent one, and users cannot write headers
// of ours.
import t from 'tap'
import { startRuntime, type ApiResponse, type TestTenant } from '#test/support/runtime.ts'

const objects = '/storage/v1/object'
const text = { 'content-type': 'text/plain' }

/** Returns all that a caller can see of a response, except values that change with each request. */
function seen({ status, headers, bytes }: ApiResponse, path: string, hide: RegExp): unknown {
  const { date: _, 'x-request-id': __, 'content-location': location, ...rest } = headers
  return {
    status,
    headers: {
      ...rest,
      'content-length': undefined,
      'content-location': location !== undefined && sameUrl(location, path) ? 'as requested' : location,
    },
    body: bytes.toString('utf8').replaceAll(hide, '…'),
  }
}

/** Whether two URLs differ at most in the order of their parameters. */
function sameUrl(...paths: [string, string]): boolean {
  const [one, other] = paths.map((path) => {
    const url = new URL(path, 'http://tenant')
    url.searchParams.sort()
    return url.href
  })
  return one === other
}

async function bucket(tenant: TestTenant, name: string, policy = 'private'): Promise<void> {
  await tenant.request('POST', '/storage/v1/bucket', { as: 'u1', body: { name, policy } })
  const { status } = await tenant.request('POST', `${objects}/${name}/a`, { as: 'u1', body: 'secret', headers: text })
  if (status !== 200) throw new Error(String(status))
}

t.test('Responses disclose nothing', { timeout: 90_000 }, async (t) => {
  const runtime = await startRuntime(t)

  t.test('A hidden resource has the same bytes and headers as an absent one', async (t) => {
    const tenant = await runtime.addTenant()
    const other = await runtime.addTenant({ name: 'other' })
    await bucket(tenant, 'hidden')
    await bucket(tenant, 'open', 'public')
    await bucket(other, 'theirs', 'public')
    const [row] = await tenant.rows("select id::text from storage_buckets where name = 'hidden'")
    const none = '00000000-0000-4000-8000-000000000000'
    const calls = (
      name: string,
      path: string,
    ): [string, string, object | string | undefined, Record<string, string>?][] => [
      ...['', 'public/', 'authenticated/', 'info/', 'info/public/', 'info/authenticated/'].map(
        (at): [string, string, undefined] => ['GET', `${objects}/${at}${name}/${path}`, undefined],
      ),
      ['HEAD', `${objects}/${name}/${path}`, undefined],
      ['GET', `${objects}/${name}/${path}?download=x`, undefined],
      ['GET', `${objects}/${name}/${path}`, undefined, { range: 'bytes=0-0' }],
      ['GET', `${objects}/${name}/${path}`, undefined, { range: 'bytes=99-' }],
      ['GET', `${objects}/${name}/${path}`, undefined, { 'if-none-match': '*' }],
      ['GET', `${objects}/${name}/${path}`, undefined, { 'if-match': '"x"' }],
      ['GET', `${objects}/${name}/${path}?token=x`, undefined],
      ['GET', `${objects}/sign/${name}/${path}?token=x`, undefined],
      ['POST', `${objects}/${name}/${path}`, 'x', text],
      ['PUT', `${objects}/${name}/${path}`, 'x', text],
      ['POST', `${objects}/${name}/${path}`, 'x', { ...text, 'x-upsert': 'false' }],
      ['DELETE', `${objects}/${name}/${path}`, undefined],
      ['DELETE', `${objects}/${name}`, { prefixes: [path] }],
      ['POST', `${objects}/sign/${name}/${path}`, {}],
      ['POST', `${objects}/sign/${name}`, { paths: [path] }],
      ['POST', `${objects}/upload/sign/${name}/${path}`, {}],
      ['POST', `${objects}/list/${name}`, {}],
      ['POST', `${objects}/list-v2/${name}`, {}],
      ['POST', `${objects}/move`, { bucketId: name, sourceKey: path, destinationKey: 'b' }],
      ['POST', `${objects}/copy`, { bucketId: name, sourceKey: path, destinationKey: 'b' }],
      ['POST', `${objects}/copy`, { bucketId: 'open', sourceKey: 'a', destinationKey: path, destinationBucket: name }],
      ['GET', `/storage/v1/bucket/${name}`, undefined],
      ['PATCH', `/storage/v1/bucket/${name}`, { policy: 'public' }],
      ['PUT', `/storage/v1/bucket/${name}`, { public: true }],
      ['DELETE', `/storage/v1/bucket/${name}`, undefined],
      ['POST', `/storage/v1/bucket/${name}/empty`, {}],
      ['POST', `/storage/v1/bucket/${name}/revoke-signed-urls`, {}],
      [
        'GET',
        `/rest/v1/storage_objects?path=eq.${path}&bucket_id=eq.${name === 'absent' ? none : (row?.['id'] as string)}`,
        undefined,
      ],
      ['GET', `/rest/v1/storage_buckets?name=eq.${name}`, undefined],
    ]
    const id = String(row?.['id'])
    let compared = 0
    for (const caller of ['u2', undefined]) {
      // The resources: in a hidden bucket, absent from it, in an absent bucket (by name and by ID), and of another
      // tenant.
      for (const [hidden, hiddenPath, absent, absentPath] of [
        ['hidden', 'a', 'absent', 'a'],
        ['hidden', 'a', 'hidden', 'nothing'],
        [id, 'a', none, 'a'],
        ['system', 'a', 'absent', 'a'],
        ['theirs', 'a', 'absent', 'a'],
      ] as const) {
        const [these, those] = [calls(hidden, hiddenPath), calls(absent, absentPath)]
        for (const [nth, [method, path, body, headers = {}]] of these.entries()) {
          const [, path2 = ''] = those[nth] ?? []
          const body2 = those[nth]?.[2]
          const hide = new RegExp(
            `\\b(?:${hidden}|${absent}|${absentPath === 'nothing' ? 'nothing|(?<=")a(?=")' : 'nothing'})\\b`,
            'g',
          )
          const one = await tenant.request(method, path, {
            as: caller,
            headers,
            ...(body === undefined ? {} : { body }),
          })
          const two = await tenant.request(method, path2, {
            as: caller,
            headers,
            ...(body2 === undefined ? {} : { body: body2 }),
          })
          t.same(
            seen(one, path, hide),
            seen(two, path2, hide),
            `${method} ${path.replace(id, '<id>')} by ${caller ?? 'anonymous'}`,
          )
          t.notMatch(one.text, /secret/)
          compared++
        }
      }
    }
    t.ok(compared > 250, String(compared))
    t.equal(
      (await tenant.request('GET', `${objects}/hidden/a`, { as: 'u1' })).text,
      'secret',
      'and the requests changed nothing',
    )
    t.equal((await tenant.request('GET', '/storage/v1/bucket/hidden', { as: 'u1' })).json()['policy'], 'private')
  })

  t.test('Text of users appears in headers only as a value', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'open', 'public')
    const hostile = [
      'a"b',
      'a\\b',
      "a'b",
      'a;b',
      'a; filename=evil.html',
      '"; filename="evil.html',
      'a\r\nset-cookie: a=b',
      '\r\n\r\n<script>',
      '\n',
      '\0',
      'a\tb',
      '\x7f',
      '\x85',
      '\u2028',
      'ä',
      '日本語',
      '💩',
      '%0d%0a',
      '%',
      '',
      ' ',
      '../../x',
      `${'x'.repeat(900)}.txt`,
      '\u202egnp.exe',
      '*',
      '(a)',
      '=?utf-8?Q?a?=',
    ]
    const honest = Object.keys((await tenant.request('GET', `${objects}/open/a?download=a.txt`)).headers).sort()
    for (const name of hostile) {
      const { status, headers } = await tenant.request('GET', `${objects}/open/a?download=${encodeURIComponent(name)}`)
      t.same([status, Object.keys(headers).sort()], [200, honest], encodeURIComponent(name.slice(0, 20)))
      const disposition = /^attachment; filename="([ !#-[\]-~]*)"; filename\*=UTF-8''([\w.!#$&+^`|~%-]*)$/.exec(
        headers['content-disposition'] ?? '',
      )
      t.equal(decodeURIComponent(disposition?.[2] ?? 'none'), name === '' ? 'a' : name, 'and is the name, encoded')
    }
    t.equal((await tenant.request('GET', `${objects}/open/a?download=${'x'.repeat(1_025)}`)).status, 400)
    t.equal((await tenant.request('GET', `${objects}/open/a?download=a&download=b`)).status, 400)

    const form = (type: string, cacheControl: string) => ({
      as: 'u1',
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
      body:
        `--x\r\ncontent-disposition: form-data; name="cacheControl"\r\n\r\n${cacheControl}\r\n` +
        `--x\r\ncontent-disposition: form-data; name=""; filename="f"\r\ncontent-type: ${type}\r\n\r\nx\r\n--x--\r\n`,
    })
    for (const value of [
      'a\r\nset-cookie: a=b',
      'no-store\nset-cookie: a=b',
      'no-store\r\n\r\n<script>',
      'a\0b',
      'a;b',
      'é',
      'max-age=1\u2028',
      'no-store\r\nx',
      'no-store\nx',
      'no-store\rx',
      'a\tb',
      'x'.repeat(201),
      '<script>',
    ]) {
      const response = await tenant.request('POST', `${objects}/open/b`, form('text/plain', value))
      t.match(
        [response.status, response.json()],
        [400, { message: /Cache-Control/ }],
        `cacheControl ${encodeURIComponent(value.slice(0, 20))}`,
      )
    }
    for (const type of [
      'text/plain\u0001',
      'text/plain; a="b\u0007"',
      'text/pläin',
      'text/plain; charset="\\"',
      'text/plain;;',
      'text/html, text/plain',
      'text/<b>',
      'a/b c',
      `text/${'x'.repeat(300)}`,
    ]) {
      const { status: ofForm, text: stored } = await tenant.request('POST', `${objects}/open/d`, form(type, '60'))
      // Parts of a form lose the parameters of their type.
      t.ok(
        ofForm === 400 || stored.includes('"content_type":"text/plain"'),
        `type ${encodeURIComponent(type.slice(0, 30))}: ${ofForm}`,
      )
      if (/^[\x20-\x7e]*$/.test(type)) {
        const { status } = await tenant.request('POST', `${objects}/open/b`, {
          as: 'u1',
          body: 'x',
          headers: { 'content-type': type },
        })
        t.equal(status, 400, `header ${type.slice(0, 30)}`)
      }
    }
    for (const value of ['no-store; x', '<script>', 'x'.repeat(201)]) {
      t.equal(
        (
          await tenant.request('POST', `${objects}/open/b`, {
            as: 'u1',
            body: 'x',
            headers: { ...text, 'cache-control': value },
          })
        ).status,
        400,
        `header ${value.slice(0, 20)}`,
      )
    }
    t.match(
      (await tenant.request('GET', `${objects}/open/b`, { as: 'u1' })).json(),
      { code: 'NoSuchKey' },
      'no rejected upload is stored',
    )

    const metadata = { 'set-cookie': 'a=b', 'x\r\ny': 'z', location: 'http://evil' }
    const stored = await tenant.request('POST', `${objects}/open/c`, {
      as: 'u1',
      body: 'x',
      headers: { ...text, 'x-metadata': Buffer.from(JSON.stringify(metadata)).toString('base64') },
    })
    t.equal(stored.status, 200, stored.text)
    t.same(
      Object.keys((await tenant.request('GET', `${objects}/open/c?download=a.txt`)).headers).sort(),
      honest,
      'metadata is not a header',
    )
    t.same(
      (await tenant.request('GET', `${objects}/info/open/c`)).json()['metadata'],
      metadata,
      'and is returned unchanged',
    )
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
