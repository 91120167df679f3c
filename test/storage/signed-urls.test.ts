// Signed URLs (specification, section 5.5): good for exactly what they were signed for, until they expire or are revoked.
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { RuntimeError } from '#tenant-runtime/errors.ts'
import { readToken, requireBucket, signClaims } from '#tenant-runtime/storage/signing/token.ts'
import { effort } from '#test/support/effort.ts'
import { migrateHome } from '#test/support/home.ts'
import { ask, signToken, startRuntime, type Answer, type TestTenant } from '#test/support/runtime.ts'

const objects = '/storage/v1/object'
const text = { 'content-type': 'text/plain' }
const year = 365 * 86_400

const claims = {
  v: 1,
  scope: 'read',
  tenant: 't_1',
  bucket: 'b1',
  version: 1,
  path: 'a/b c.txt',
  expires: 1_800_000_000,
  upsert: false,
  owner: null,
} as const
type Claims = Parameters<typeof signClaims>[0]
const secret = 'k'.repeat(32)
const use = { scope: 'read', tenant: 't_1', path: 'a/b c.txt', now: 1_799_999_999, expires: '1800000000' } as const

/** Every text that has one bit of `text` changed. */
function* flipped(text: string): Generator<string> {
  for (let at = 0; at < text.length; at++) {
    for (let bit = 0; bit < 8; bit++)
      yield text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << bit)) + text.slice(at + 1)
  }
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Texts that are not the token, but that a lenient reader would take for it or for a part of it. */
function disguises(token: string): Record<string, string> {
  const [payload = '', signature = ''] = token.split('.')
  const spare = (part: string) => alphabet[alphabet.indexOf(part.at(-1) ?? '') ^ 1] ?? ''
  const standard = (part: string) => Buffer.from(part, 'base64url').toString('base64')
  return {
    nothing: '',
    'a dot': '.',
    'two dots': '..',
    'no signature': payload,
    'an empty signature': `${payload}.`,
    'no payload': `.${signature}`,
    'the halves swapped': `${signature}.${payload}`,
    'a letter less': token.slice(0, -1),
    'a letter more': `${token}A`,
    'a third part': `${token}.`,
    'a third part with text': `${token}.${signature}`,
    'an empty first part': `.${token}`,
    'the signature twice': `${token}${signature}`,
    'half a signature': token.slice(0, -22),
    padding: `${token}=`,
    'a blank behind': `${token} `,
    'a blank before': ` ${token}`,
    'a line end': `${token}\n`,
    'a NUL': `${token}\0`,
    'a NUL within': `${payload}.\0${signature}`,
    'a spare bit of the signature': token.slice(0, -1) + spare(token),
    'a spare bit of the payload': `${payload.slice(0, -1)}${spare(payload)}.${signature}`,
    'the signature in standard base64': `${payload}.${standard(signature)}`,
    'the payload in standard base64': `${standard(payload)}=.${signature}`,
    'the signature in hex': `${payload}.${Buffer.from(signature, 'base64url').toString('hex')}`,
    capitals: token.toUpperCase(),
    'a colon': token.replace('.', ':'),
    'a wide dot': token.replace('.', '\u3002'),
    long: 'A'.repeat(20_000),
    'long with dots': 'A.'.repeat(5_000),
  }
}

/** Tokens that name an algorithm of their own, or are signed by another one or with another key. */
function forgeries(token: string, secrets: Record<string, string>): Record<string, string> {
  const [payload = ''] = token.split('.')
  const jwt = (header: object) => `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${payload}`
  const mac = (algorithm: string, key: string, over: string) =>
    createHmac(algorithm, key).update(over).digest('base64url')
  const made: Record<string, string> = {
    'alg none': `${jwt({ alg: 'none' })}.`,
    'alg None without a dot': jwt({ alg: 'None' }),
    'alg none with the signature': `${jwt({ alg: 'none' })}.${token.split('.')[1] ?? ''}`,
  }
  for (const [whose, key] of Object.entries({ 'no key': '', ...secrets })) {
    for (const algorithm of ['sha256', 'sha512', 'sha1', 'md5']) {
      made[`${algorithm} with ${whose}`] = `${payload}.${mac(algorithm, key, payload)}`
      made[`${algorithm} with ${whose}, as ours`] = `${payload}.${mac(algorithm, key, `storage-url-v1:${payload}`)}`
      made[`JWT by ${algorithm} with ${whose}`] =
        `${jwt({ alg: 'HS256' })}.${mac(algorithm, key, jwt({ alg: 'HS256' }))}`
    }
  }
  return made
}

/** Codes of what the token is refused with. */
function refusal(work: () => unknown): string {
  try {
    work()
    return 'accepted'
  } catch (error) {
    return error instanceof RuntimeError ? error.code : String(error)
  }
}

t.test('a token', async (t) => {
  const token = signClaims(claims, secret)

  t.test('is good for what it says, to the second', async (t) => {
    t.same(readToken(token, secret, use), claims)
    t.same(readToken(token, secret, { ...use, expires: undefined }), claims)
    for (const [now, code] of [
      [1_799_999_999, 'accepted'],
      [1_799_999_999.999, 'accepted'],
      [1_800_000_000, 'ExpiredToken'],
      [1_800_000_001, 'ExpiredToken'],
    ] as const) {
      t.equal(
        refusal(() => readToken(token, secret, { ...use, now })),
        code,
        String(now),
      )
    }
  })

  t.test('is refused with any bit of its text or of its bytes changed', async (t) => {
    const codes = new Map<string, number>()
    const count = (code: string) => codes.set(code, (codes.get(code) ?? 0) + 1)
    for (const other of flipped(token)) count(refusal(() => readToken(other, secret, use)))
    const parts = token.split('.').map((part) => Buffer.from(part, 'base64url'))
    for (const [nth, bytes] of parts.entries()) {
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const changed = Buffer.from(bytes)
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        count(
          refusal(() =>
            readToken(
              parts.map((part, index) => (index === nth ? changed : part).toString('base64url')).join('.'),
              secret,
              use,
            ),
          ),
        )
      }
    }
    t.same(Object.fromEntries(codes), {
      InvalidSignature: token.length * 8 + parts.reduce((sum, part) => sum + part.length * 8, 0),
    })
    for (const other of flipped(use.expires))
      t.equal(
        refusal(() => readToken(token, secret, { ...use, expires: other })),
        'InvalidSignature',
        other,
      )
  })

  t.test('is refused in any other writing, and by any other key or algorithm', async (t) => {
    for (const [what, other] of Object.entries({
      ...disguises(token),
      ...forgeries(token, { 'another key': 'x'.repeat(32) }),
    })) {
      t.equal(
        refusal(() => readToken(other, secret, use)),
        'InvalidSignature',
        what,
      )
    }
  })

  t.test('lends no field to another one', async (t) => {
    const others: Claims[] = [
      { ...claims, scope: 'upload' },
      { ...claims, tenant: 't_2' },
      { ...claims, bucket: 'b2' },
      { ...claims, version: 2 },
      { ...claims, path: 'other' },
      { ...claims, expires: 1_900_000_000 },
      { ...claims, upsert: true },
      { ...claims, owner: 'u2' },
    ]
    const fields = Object.keys(claims) as (keyof Claims)[]
    t.same(
      fields.filter((field) => others.every((other) => other[field] === claims[field])),
      ['v'],
      'each field has another valid value',
    )
    let mixed = 0
    for (const other of others) {
      for (const field of fields) {
        const payload = Buffer.from(JSON.stringify({ ...claims, [field]: other[field] })).toString('base64url')
        for (const signed of [token, signClaims(other, secret)]) {
          const [own = '', signature = ''] = signed.split('.')
          if (own === payload) continue
          mixed++
          t.equal(
            refusal(() => readToken(`${payload}.${signature}`, secret, use)),
            'InvalidSignature',
            `${field} of another`,
          )
        }
      }
    }
    t.equal(mixed, others.length * fields.length)
  })

  t.test('that is signed, but not for this use, or is no token of ours, is refused all the same', async (t) => {
    for (const [field, value] of [
      ['scope', 'upload'],
      ['tenant', 't_2'],
      ['path', 'a/b c.txt/'],
      ['path', 'A/b c.txt'],
      ['path', 'a/b c.tx'],
      ['expires', '1800000001'],
      ['expires', ''],
    ] as const) {
      t.equal(
        refusal(() => readToken(token, secret, { ...use, [field]: value })),
        'InvalidSignature',
        `${field} ${value}`,
      )
    }
    const [pair, decomposed] = ['ä', 'a\u0308']
    t.equal(
      refusal(() => readToken(signClaims({ ...claims, path: pair }, secret), secret, { ...use, path: decomposed })),
      'InvalidSignature',
      'Unicode forms are two paths',
    )
    const sign = (payload: string) =>
      `${payload}.${createHmac('sha256', secret).update(`storage-url-v1:${payload}`).digest('base64url')}`
    for (const content of [
      '',
      'x',
      'null',
      '[]',
      '{}',
      '"a"',
      '\xff',
      JSON.stringify({ ...claims, v: 2 }),
      JSON.stringify({ ...claims, admin: true }),
      JSON.stringify({ ...claims, expires: '1900000000' }),
    ]) {
      t.equal(
        refusal(() => readToken(sign(Buffer.from(content, 'latin1').toString('base64url')), secret, use)),
        'InvalidSignature',
        content,
      )
    }
    const { version: _, ...early } = claims
    const first = readToken(sign(Buffer.from(JSON.stringify(early)).toString('base64url')), secret, use)
    t.equal(
      refusal(() => requireBucket(first, { id: 'b1', signingVersion: 1 })),
      'accepted',
      'without a version it is of the first',
    )
    t.equal(
      refusal(() => requireBucket(first, { id: 'b1', signingVersion: 2 })),
      'InvalidSignature',
    )
    for (const [id, signingVersion, code] of [
      ['b1', 1, 'accepted'],
      ['b2', 1, 'InvalidSignature'],
      ['b1', 2, 'InvalidSignature'],
      ['b1', 0, 'InvalidSignature'],
    ] as const) {
      t.equal(
        refusal(() => requireBucket(claims, { id, signingVersion })),
        code,
        `${id} ${signingVersion}`,
      )
    }
  })
})

async function bucket(tenant: TestTenant, name: string, more: object = {}, who = 'u1'): Promise<void> {
  const answer = await tenant.ask('POST', '/storage/v1/bucket', { as: who, body: { name, ...more } })
  if (answer.status !== 201) throw new Error(answer.text)
}

async function put(tenant: TestTenant, target: string, body: string, who = 'u1'): Promise<void> {
  const answer = await tenant.ask('POST', `${objects}/${target}`, { as: who, body, headers: text })
  if (answer.status !== 200) throw new Error(answer.text)
}

async function signRead(
  tenant: TestTenant,
  target: string,
  who = 'u1',
  how = '',
): Promise<{ url: string; token: string; expires: string }> {
  const { url } = (await tenant.ask('POST', `${objects}/sign/${target}${how}`, { as: who })).json() as { url: string }
  const { searchParams } = new URL(url, tenant.url)
  return { url, token: searchParams.get('token') ?? '', expires: searchParams.get('expires') ?? '' }
}

async function signUpload(
  tenant: TestTenant,
  target: string,
  who = 'u1',
  headers: Record<string, string> = { 'x-upsert': 'true' },
): Promise<{ url: string; token: string }> {
  const { token } = (await tenant.ask('POST', `${objects}/upload/sign/${target}`, { as: who, headers })).json() as {
    token: string
  }
  return { url: `${objects}/upload/sign/${target}?token=${token}`, token }
}

/** Each byte as a percent form, so that nothing on the way changes what the runtime gets. */
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

t.test('signed URLs', async (t) => {
  const runtime = await startRuntime(t)

  /** Two tenants alike, with an object at `docs/a/b c.txt` and another one. */
  async function start(): Promise<{
    tenant: TestTenant
    other: TestTenant
    read: Awaited<ReturnType<typeof signRead>>
    upload: Awaited<ReturnType<typeof signUpload>>
  }> {
    const [tenant, other] = [await runtime.addTenant(), await runtime.addTenant({ name: 'other' })]
    for (const at of [tenant, other]) {
      await bucket(at, 'docs')
      await put(at, 'docs/a/b%20c.txt', 'secret')
      await put(at, 'docs/second', 'second')
    }
    return {
      tenant,
      other,
      read: await signRead(tenant, 'docs/a/b%20c.txt'),
      upload: await signUpload(tenant, 'docs/a/b%20c.txt'),
    }
  }

  /** All refusals are one: which part was wrong is nobody's business. */
  function refused(t: Test, { status, text, headers }: Answer, why: string) {
    const { 'x-request-id': _, date: __, ...rest } = headers
    t.same(
      [status, text, Object.keys(rest).sort()],
      [
        400,
        '{"statusCode":"400","error":"InvalidSignature","message":"the signature of the URL is not valid","code":"InvalidSignature"}',
        ['connection', 'content-length', 'content-type', 'vary', 'x-tenantry-rejected'],
      ],
      why,
    )
  }

  t.test('give the holder the one object, by any of its doors, whoever they are', async (t) => {
    const { tenant, read, upload } = await start()
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
        [(await ask(tenant.port, 'GET', url, headers)).text, (await ask(tenant.port, 'HEAD', url, headers)).status],
        ['secret', 200],
        url.slice(0, 60),
      )
    t.equal((await ask(tenant.port, 'PUT', upload.url, text, 'new')).status, 200)
    t.equal((await ask(tenant.port, 'GET', read.url)).text, 'new', 'a URL is for a path, not for a version')
    t.equal(
      (await ask(tenant.port, 'PUT', upload.url, { ...text, authorization: 'Bearer nonsense' }, 'again')).status,
      200,
    )
    const once = await signUpload(tenant, 'docs/a/b%20c.txt', 'u1', {})
    t.match(
      (await ask(tenant.port, 'PUT', once.url, { ...text, 'x-upsert': 'true' }, 'no')).json(),
      { code: 'KeyAlreadyExists' },
      'overwriting is signed as well',
    )
  })

  t.test('are refused with any bit, field, writing, key or algorithm changed, and change nothing', async (t) => {
    const { tenant, other, read, upload } = await start()
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
      // Each letter with one of its bits; the full run takes each bit.
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
        refused(
          t,
          await ask(
            tenant.port,
            'GET',
            `${objects}/sign/docs/a/b%20c.txt?token=${percent(token)}&expires=${read.expires}`,
          ),
          what,
        )
      if (!what.startsWith('read'))
        refused(
          t,
          await ask(
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
      refused(
        t,
        await ask(tenant.port, 'GET', `${objects}/sign/docs/a/b%20c.txt?token=${read.token}&expires=${percent(text)}`),
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
    for (const [why, url] of Object.entries(reads)) refused(t, await ask(tenant.port, 'GET', url), why)
    for (const url of [read.url, read.url.replace('/sign/', '/')])
      refused(t, await ask(other.port, 'GET', url), "another tenant's runtime")
    for (const [why, url] of Object.entries({
      'another path': upload.url.replace('b%20c.txt', 'b%20d.txt'),
      'another bucket': upload.url.replace('docs/', 'system/'),
      'a read token': upload.url.replace(upload.token, read.token),
      'no token': `${objects}/upload/sign/docs/a/b%20c.txt`,
    }))
      refused(t, await ask(tenant.port, 'PUT', url, text, 'changed'), why)
    refused(t, await ask(other.port, 'PUT', upload.url, text, 'changed'), "another tenant's runtime")

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
    for (const asked of twice) {
      for (const [method, at] of [
        ['GET', 'sign/docs'],
        ['GET', 'docs'],
        ['PUT', 'upload/sign/docs'],
      ] as const) {
        const { status } = await ask(
          tenant.port,
          method,
          `${objects}/${at}/a/b%20c.txt?${method === 'PUT' ? asked.replaceAll(read.token, upload.token) : asked}`,
          text,
          method === 'PUT' ? 'changed' : undefined,
        )
        const harmless = method === 'PUT' && asked.includes('expires')
        t.ok(
          harmless ? status === 200 : status === 400 || status === 404,
          `${method} ${at} ${asked.replaceAll(read.token, '…')}: ${status}`,
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
      const { status } = await ask(
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
      t.equal((await at.ask('GET', `${objects}/docs/a/b%20c.txt`, { as: 'u1' })).text, 'secret')
    }
  })

  t.test('end at their second, and hold for an hour when nobody says, a year at most', async (t) => {
    const { tenant } = await start()
    t.teardown(() => (runtime.clock.stopped = undefined))
    const begin = Math.floor(Date.now() / 1000) * 1000 + 400
    const signed = async (how: string, body?: object) =>
      await tenant.ask('POST', `${objects}/sign/docs/second${how}`, {
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
        const answer = await ask(tenant.port, 'GET', url)
        t.equal(answer.status, status, `${seconds} s, at ${at - end}`)
        if (status === 400) t.match(answer.json(), { code: 'ExpiredToken' })
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
        (await tenant.ask('POST', `${objects}/sign/docs`, { as: 'u1', body: { expiresIn, paths: ['second'] } })).status,
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
      t.equal((await ask(tenant.port, 'PUT', upload.url, text, 'changed')).status, status, `an upload at ${at - end}`)
    }
  })

  t.test('for an upload that expire while it is under way still take it whole', async (t) => {
    const { tenant } = await start()
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
    t.equal((await tenant.files()).length, before + 1, 'it has begun')
    runtime.clock.ahead = 3 * 3_600_000
    t.match(
      (await ask(tenant.port, 'PUT', url, text, 'too late')).json(),
      { code: 'ExpiredToken' },
      'one that begins now is refused',
    )
    socket.write('half')
    const [answer] = (await once(socket, 'data')) as [Buffer]
    t.match(answer.toString(), /^HTTP\/1\.1 200 /)
    t.equal((await tenant.ask('GET', `${objects}/docs/slow`, { as: 'u1' })).text, 'halfhalf')
  })

  t.test('are revoked for a bucket by its owner or the service, at once and for good', async (t) => {
    const { tenant, read, upload } = await start()
    await bucket(tenant, 'others')
    await bucket(tenant, 'open', { policy: 'public' })
    await put(tenant, 'others/x', 'x')
    const elsewhere = await signRead(tenant, 'others/x')
    const revoke = (name: string, who: string | undefined) =>
      tenant.ask('POST', `/storage/v1/bucket/${name}/revoke-signed-urls`, { as: who })
    for (const [who, name, status, code] of [
      ['u2', 'docs', 404, 'NoSuchBucket'],
      ['u2', 'open', 403, 'ACCESS_DENIED'],
      [undefined, 'open', 401, 'UNAUTHORIZED'],
      [undefined, 'docs', 401, 'UNAUTHORIZED'],
      ['u1', 'nowhere', 404, 'NoSuchBucket'],
      ['u1', '%00', 400, 'BAD_REQUEST'],
    ] as const) {
      const answer = await revoke(name, who)
      t.equal(answer.status, status, `${name} by ${who ?? 'nobody'}: ${answer.text}`)
      if (status !== 400) t.match(answer.json(), { code })
    }
    t.equal((await ask(tenant.port, 'GET', read.url)).text, 'secret', 'what was refused revoked nothing')

    t.match((await revoke('docs', 'u1')).json(), {
      message: String,
      id: String,
      signing_version: 2,
      updated_at: String,
    })
    refused(t, await ask(tenant.port, 'GET', read.url), 'a read URL of before')
    refused(t, await ask(tenant.port, 'GET', read.url.replace('/sign/', '/')), 'on its plain path')
    refused(t, await ask(tenant.port, 'PUT', upload.url, text, 'changed'), 'an upload URL of before')
    t.equal((await ask(tenant.port, 'GET', elsewhere.url)).text, 'x', 'another bucket keeps its own')
    const again = await signRead(tenant, 'docs/a/b%20c.txt')
    t.equal((await ask(tenant.port, 'GET', again.url)).text, 'secret', 'what is signed from now on is good')
    t.match((await revoke('docs', 'service')).json(), { signing_version: 3 })
    refused(t, await ask(tenant.port, 'GET', again.url), 'until the next time')
    const versions = await Promise.all(Array.from({ length: 8 }, () => revoke('docs', 'u1')))
    t.same(
      versions.map((answer) => Number(answer.json()['signing_version'])).sort((a, b) => a - b),
      [4, 5, 6, 7, 8, 9, 10, 11],
      'each one counts',
    )
    t.same(
      await tenant.rows(
        `select type, owner_id, payload - 'timestamp' as payload from event_log
          where type = 'storage.bucket.urls_revoked' order by seq limit 1`,
      ),
      [
        {
          type: 'storage.bucket.urls_revoked',
          owner_id: 'u1',
          payload: { type: 'storage.bucket.urls_revoked', bucket: 'docs', owner_id: 'u1' },
        },
      ],
    )
    t.equal(
      (await tenant.rows("select count(*)::int as n from event_log where type = 'storage.bucket.urls_revoked'"))[0]?.[
        'n'
      ],
      10,
      'as many events',
    )
    const bulk = (
      await tenant.ask('POST', `${objects}/sign/docs`, { as: 'u1', body: { expiresIn: 60, paths: ['second'] } })
    ).list()
    t.equal((await ask(tenant.port, 'GET', `/storage/v1${String(bulk[0]?.['signedURL'])}`)).text, 'second')
  })

  t.test('come back with no bucket that takes the name of theirs', async (t) => {
    const { tenant, read, upload } = await start()
    await tenant.ask('DELETE', `${objects}/docs`, { as: 'u1', body: { prefixes: ['a/b c.txt', 'second'] } })
    t.match((await ask(tenant.port, 'GET', read.url)).json(), { code: 'NoSuchKey' }, 'the object is gone')
    t.equal((await tenant.ask('DELETE', '/storage/v1/bucket/docs', { as: 'u1' })).status, 200)
    t.match((await ask(tenant.port, 'GET', read.url)).json(), { code: 'NoSuchBucket' }, 'the bucket is gone')
    await bucket(tenant, 'docs', {}, 'u2')
    await put(tenant, 'docs/a/b%20c.txt', 'of another', 'u2')
    refused(t, await ask(tenant.port, 'GET', read.url), 'reading')
    refused(t, await ask(tenant.port, 'PUT', upload.url, text, 'changed'), 'uploading')
    t.equal(
      (await tenant.ask('POST', `${objects}/sign/docs/a/b%20c.txt`, { as: 'u1' })).status,
      404,
      "one who may not read can't sign",
    )
    t.equal((await tenant.ask('POST', `${objects}/upload/sign/docs/a`, { as: 'u1' })).status, 404, 'nor for an upload')
  })

  t.test('act for whoever signed, with the rights they have when the URL is used', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'shared', { policy: 'authenticated' })
    const { url } = await signUpload(tenant, 'shared/mine', 'u2')
    t.equal((await ask(tenant.port, 'PUT', url, text, 'one')).json()['owner_id'], 'u2')
    await tenant.ask('PATCH', '/storage/v1/bucket/shared', { as: 'u1', body: { policy: 'private' } })
    const { status } = await ask(tenant.port, 'PUT', url, text, 'two')
    t.ok(status === 403 || status === 404, String(status))
    t.equal((await tenant.ask('GET', `${objects}/shared/mine`, { as: 'u1' })).text, 'one')
  })

  t.test('of a home that was made before buckets had a version are good until the first revocation', async (t) => {
    const { tenant, read } = await start()
    await tenant.rows('alter table storage_buckets drop column signing_version')
    await tenant.rows('delete from home_migrations where version = 4')
    await migrateHome(runtime.postgres.url('postgres'), tenant.id)
    t.equal((await ask(tenant.port, 'GET', read.url)).text, 'secret')
    t.match((await tenant.ask('POST', '/storage/v1/bucket/docs/revoke-signed-urls', { as: 'u1' })).json(), {
      signing_version: 2,
    })
    refused(t, await ask(tenant.port, 'GET', read.url), 'after it')
  })

  t.same(runtime.problems, [], 'none of it was an error of ours')
})
