// Signed URLs (specification, section 5.5): valid for exactly what they were signed for, until they expire.
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { effort } from '#test/support/effort.ts'
import { send, signToken, startRuntime } from '#test/support/runtime.ts'
import { bucket, objects, text } from './support/objects.ts'
import { disguises, flipped, forgeries, put, rejected, signRead, signUpload, start } from './support/signed-urls.ts'

const year = 365 * 86_400

/** Encodes each byte as a percent form, so that no proxy or client changes what the runtime receives. */
function percent(text: string): string {
  return [...Buffer.from(text, 'utf8')].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
}

async function allOf<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  const iterator = items[Symbol.iterator]()
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let next = iterator.next(); next.done !== true; next = iterator.next()) await work(next.value)
    }),
  )
}

t.test('Signed URLs', async (t) => {
  const runtime = await startRuntime(t)

  t.test('A signed URL gives any holder the one object, on every path that serves it', async (t) => {
    const { tenant, read, upload } = await start(runtime)
    const plain = `${objects}/docs/a/b%20c.txt?token=${read.token}`
    for (const [url, headers] of [
      [read.url, {}],
      [read.url, tenant.as('u2')],
      [read.url, { authorization: 'Bearer nonsense' }],
      [plain, {}],
      [`${plain}&expires=${read.expires}`, tenant.as('u2')],
      [`${read.url}&download=x.txt`, {}],
      [read.url.replace(read.token, percent(read.token)), {}],
    ] as const)
      t.same(
        [(await send(tenant.port, 'GET', url, headers)).text, (await send(tenant.port, 'HEAD', url, headers)).status],
        ['secret', 200],
        url.slice(0, 60),
      )
    t.equal((await send(tenant.port, 'PUT', upload.url, text, 'new')).status, 200)
    t.equal((await send(tenant.port, 'GET', read.url)).text, 'new', 'a URL is for a path, not for a version')
    t.equal(
      (await send(tenant.port, 'PUT', upload.url, { ...text, authorization: 'Bearer nonsense' }, 'again')).status,
      200,
    )
    const once = await signUpload(tenant, 'docs/a/b%20c.txt', 'u1', {})
    t.match(
      (await send(tenant.port, 'PUT', once.url, { ...text, 'x-upsert': 'true' }, 'no')).json(),
      { code: 'KeyAlreadyExists' },
      'overwriting is signed as well',
    )
  })

  t.test(
    'A signed URL is rejected with any bit, field, encoding, key or algorithm changed, and changes nothing',
    async (t) => {
      const { tenant, other, read, upload } = await start(runtime)
      const second = await signRead(tenant, 'docs/second')
      const secrets = {
        'the key of tokens': tenant.manifest.jwt_secrets[0] ?? '',
        "another tenant's key": other.manifest.signing_secret,
        'the tenant id': tenant.id,
        'the service key': tenant.secretKey,
      }
      const changed = new Map<string, string>(
        Object.entries(secrets).map(([whose, key]) => [
          `a token of ${whose}`,
          signToken({ sub: 'u1', role: 'service_role' }, key),
        ]),
      )
      const add = (whose: string, token: string) => {
        // Changes one bit of each character; the full run changes each bit.
        let nth = 0
        for (const text of flipped(token))
          if (effort({ small: (nth >> 3) % 8 === nth % 8 ? 1 : 0, full: 1 }) === 1)
            changed.set(`${whose}, bit ${nth++}`, text)
          else nth++
        for (const [what, text] of Object.entries({ ...disguises(token), ...forgeries(token, secrets) }))
          changed.set(`${whose}, ${what}`, text)
      }
      add('read', read.token)
      add('upload', upload.token)
      await allOf(changed, async ([what, token]) => {
        if (!what.startsWith('upload'))
          rejected(
            t,
            await send(
              tenant.port,
              'GET',
              `${objects}/sign/docs/a/b%20c.txt?token=${percent(token)}&expires=${read.expires}`,
            ),
            what,
          )
        if (!what.startsWith('read'))
          rejected(
            t,
            await send(
              tenant.port,
              'PUT',
              `${objects}/upload/sign/docs/a/b%20c.txt?token=${percent(token)}`,
              text,
              'changed',
            ),
            what,
          )
      })
      for (const text of flipped(read.expires))
        rejected(
          t,
          await send(
            tenant.port,
            'GET',
            `${objects}/sign/docs/a/b%20c.txt?token=${read.token}&expires=${percent(text)}`,
          ),
          `expires ${text}`,
        )

      const reads: Record<string, string> = {
        'another path': read.url.replace('b%20c.txt', 'b%20d.txt'),
        'a path above': read.url.replace('a/b%20c.txt', 'a'),
        'a path below': read.url.replace('c.txt?', 'c.txt/x?'),
        'other letters': read.url.replace('docs/a/', 'docs/A/'),
        'another bucket': read.url.replace('docs/', 'system/'),
        "another one's token": read.url.replace(read.token, second.token),
        "another one's time": `${objects}/sign/docs/second?token=${second.token}&expires=${Number(second.expires) + 1}`,
        'no token': `${objects}/sign/docs/a/b%20c.txt`,
        'an upload token': `${objects}/sign/docs/a/b%20c.txt?token=${upload.token}`,
        'an upload token, plainly': `${objects}/docs/a/b%20c.txt?token=${upload.token}`,
      }
      for (const [why, url] of Object.entries(reads)) rejected(t, await send(tenant.port, 'GET', url), why)
      for (const url of [read.url, read.url.replace('/sign/', '/')])
        rejected(t, await send(other.port, 'GET', url), "another tenant's runtime")
      for (const [why, url] of Object.entries({
        'another path': upload.url.replace('b%20c.txt', 'b%20d.txt'),
        'another bucket': upload.url.replace('docs/', 'system/'),
        'a read token': upload.url.replace(upload.token, read.token),
        'no token': `${objects}/upload/sign/docs/a/b%20c.txt`,
      }))
        rejected(t, await send(tenant.port, 'PUT', url, text, 'changed'), why)
      rejected(t, await send(other.port, 'PUT', upload.url, text, 'changed'), "another tenant's runtime")

      const twice = [
        `token=${read.token}&token=${read.token}`,
        `token=x&token=${read.token}`,
        `token=${read.token}&token=`,
        `token=${read.token}&expires=${read.expires}&expires=${read.expires}`,
        `token=${read.token}&expires=1&expires=${read.expires}`,
        `token[]=${read.token}`,
        `token[0]=${read.token}`,
        `%00token=${read.token}`,
        `Token=${read.token}`,
        `token;=${read.token}`,
      ]
      for (const requested of twice) {
        for (const [method, at] of [
          ['GET', 'sign/docs'],
          ['GET', 'docs'],
          ['PUT', 'upload/sign/docs'],
        ] as const) {
          const { status } = await send(
            tenant.port,
            method,
            `${objects}/${at}/a/b%20c.txt?${method === 'PUT' ? requested.replaceAll(read.token, upload.token) : requested}`,
            text,
            method === 'PUT' ? 'changed' : undefined,
          )
          const harmless = method === 'PUT' && requested.includes('expires')
          t.ok(
            harmless ? status === 200 : status === 400 || status === 404,
            `${method} ${at} ${requested.replaceAll(read.token, '…')}: ${status}`,
          )
          if (harmless) await put(tenant, 'docs/a/b%20c.txt', 'secret')
        }
      }
      for (const [method, url] of [
        ...['POST', 'PUT', 'PATCH', 'DELETE'].flatMap((method) =>
          [read.url, read.url.replace('/sign/', '/')].map((url) => [method, url] as const),
        ),
        ...['POST', 'PATCH', 'DELETE', 'GET', 'HEAD'].flatMap((method) =>
          [upload.url, upload.url.replace('/upload/sign/', '/')].map((url) => [method, url] as const),
        ),
        ['GET', read.url.replace('/sign/', '/info/')],
        ['GET', read.url.replace('/sign/', '/authenticated/')],
        ['GET', read.url.replace('/sign/', '/public/')],
        ['POST', `${objects}/list/docs?token=${read.token}`],
        ['POST', `${objects}/sign/docs/second?token=${read.token}`],
        ['DELETE', `${objects}/docs?token=${upload.token}`],
      ] as const) {
        const { status } = await send(
          tenant.port,
          method,
          url,
          method === 'GET' || method === 'HEAD' ? {} : text,
          method === 'GET' || method === 'HEAD' ? undefined : 'changed',
        )
        t.ok(status >= 400 && status < 500, `${method} ${url.slice(0, 60)}: ${status}`)
      }
      for (const at of [tenant, other]) {
        t.same(await at.rows('select path, size::int from storage_objects order by path'), [
          { path: 'a/b c.txt', size: 6 },
          { path: 'second', size: 6 },
        ])
        t.equal((await at.request('GET', `${objects}/docs/a/b%20c.txt`, { as: 'u1' })).text, 'secret')
      }
    },
  )

  t.test('Signed URLs expire at their second, by default after an hour and at most after a year', async (t) => {
    const { tenant } = await start(runtime)
    t.teardown(() => (runtime.clock.stopped = undefined))
    const begin = Math.floor(Date.now() / 1000) * 1000 + 400
    const signed = async (how: string, body?: object) =>
      await tenant.request('POST', `${objects}/sign/docs/second${how}`, {
        as: 'u1',
        ...(body === undefined ? {} : { body }),
      })
    for (const [seconds, how, body] of [
      [3600, ''],
      [3600, '', {}],
      [1, '?expires_in=1'],
      [60, '', { expiresIn: 60 }],
      [year, `?expires_in=${year}`],
      [year, '', { expiresIn: year }],
      [5, '?expires_in=5', { expiresIn: 60 }],
    ] as const) {
      runtime.clock.stopped = begin
      const { url, expires_at } = (await signed(how, body)).json() as { url: string; expires_at: string }
      const end = Math.floor(begin / 1000) + seconds
      t.same(
        [new URL(url, tenant.url).searchParams.get('expires'), expires_at],
        [String(end), new Date(end * 1000).toISOString()],
        `${seconds} s`,
      )
      for (const [at, status] of [
        [end - 1, 200],
        [end - 0.001, 200],
        [end, 400],
        [end + 1, 400],
      ] as const) {
        runtime.clock.stopped = Math.round(at * 1000)
        const response = await send(tenant.port, 'GET', url)
        t.equal(response.status, status, `${seconds} s, at ${at - end}`)
        if (status === 400) t.match(response.json(), { code: 'ExpiredToken' })
      }
    }
    runtime.clock.stopped = begin
    for (const wrong of [
      '0',
      '-1',
      '1.5',
      'x',
      '1e400',
      '',
      '%20',
      'NaN',
      'Infinity',
      String(year + 1),
      '99999999999',
      '1&expires_in=2',
    ]) {
      t.equal((await signed(`?expires_in=${wrong}`)).status, 400, `expires_in=${wrong}`)
    }
    for (const expiresIn of [0, -1, 1.5, '60', null, year + 1, 1e300, [60]]) {
      t.equal((await signed('', { expiresIn })).status, 400, `expiresIn ${JSON.stringify(expiresIn)}`)
      t.equal(
        (await tenant.request('POST', `${objects}/sign/docs`, { as: 'u1', body: { expiresIn, paths: ['second'] } }))
          .status,
        400,
        `many, expiresIn ${JSON.stringify(expiresIn)}`,
      )
    }
    const upload = await signUpload(tenant, 'docs/second')
    const end = Math.floor(begin / 1000) + 7200
    for (const [at, status] of [
      [end - 1, 200],
      [end, 400],
      [end + 1, 400],
    ] as const) {
      runtime.clock.stopped = at * 1000
      t.equal((await send(tenant.port, 'PUT', upload.url, text, 'changed')).status, status, `an upload at ${at - end}`)
    }
  })

  t.test('A signed upload URL that expires during the upload still accepts the whole file', async (t) => {
    const { tenant } = await start(runtime)
    t.teardown(() => (runtime.clock.ahead = 0))
    const { url } = await signUpload(tenant, 'docs/slow')
    const before = (await tenant.files()).length
    const socket = connect(tenant.port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.write(
      `PUT ${url} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nhalf`,
    )
    for (let tries = 0; (await tenant.files()).length === before && tries < 2000; tries++)
      await new Promise((resolve) => setTimeout(resolve, 5))
    t.equal((await tenant.files()).length, before + 1, 'the upload has begun')
    runtime.clock.ahead = 3 * 3_600_000
    t.match(
      (await send(tenant.port, 'PUT', url, text, 'too late')).json(),
      { code: 'ExpiredToken' },
      'an upload that begins now is rejected',
    )
    socket.write('half')
    const [response] = (await once(socket, 'data')) as [Buffer]
    t.match(response.toString(), /^HTTP\/1\.1 200 /)
    t.equal((await tenant.request('GET', `${objects}/docs/slow`, { as: 'u1' })).text, 'halfhalf')
  })

  t.test('A signed URL acts for its signer, with the rights that the signer has when the URL is used', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'shared', { policy: 'authenticated' })
    const { url } = await signUpload(tenant, 'shared/mine', 'u2')
    t.equal((await send(tenant.port, 'PUT', url, text, 'one')).json()['owner_id'], 'u2')
    await tenant.request('PATCH', '/storage/v1/bucket/shared', { as: 'u1', body: { policy: 'private' } })
    const { status } = await send(tenant.port, 'PUT', url, text, 'two')
    t.ok(status === 403 || status === 404, String(status))
    t.equal((await tenant.request('GET', `${objects}/shared/mine`, { as: 'u1' })).text, 'one')
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
