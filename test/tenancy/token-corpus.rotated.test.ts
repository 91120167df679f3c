// Forged tokens at each kind of route: all are rejected, and none causes a statement.
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import t from 'tap'
import { effort } from '#test/support/effort.ts'
import { send, signToken } from '#test/support/runtime.ts'
import { hmac, hs256, openForger, part, routes, signed, withStrayBits } from './support/forged-tokens.ts'

t.test('Forged tokens are rejected', async (t) => {
  const { runtime, secret, former, tenant, other, now, good, wellSigned, all, rejection, rejected } =
    await openForger(t)

  t.test('Every route of this corpus accepts valid tokens', async (t) => {
    for (const [method, path, body] of routes.filter(([method]) => method === 'GET')) {
      for (const token of [wellSigned(good()), wellSigned({ role: 'service_role', exp: now() + 60 })]) {
        const before = tenant.statements()
        const outgoing = request({
          host: '127.0.0.1',
          port: tenant.port,
          agent: false,
          method,
          path,
          headers: { authorization: `Bearer ${token}` },
        })
        outgoing.on('error', () => undefined)
        outgoing.end(body)
        const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
        response.destroy()
        t.not(response.statusCode, 401, `${method} ${path}`)
        if (response.statusCode === 200) t.ok(tenant.statements() > before, `${method} ${path}: queries the database`)
      }
    }
  })

  t.test('Tokens with a wrong algorithm are rejected', async (t) => {
    const tokens: Record<string, string> = {}
    for (const alg of [
      'none',
      'None',
      'NONE',
      'nOnE',
      '',
      null,
      0,
      false,
      [],
      {},
      ['HS256'],
      'hs256',
      'HS256 ',
      'HS1',
      'MD5',
      'A128KW',
      'dir',
    ]) {
      const [header, payload] = [part({ alg, typ: 'JWT' }), part(good())]
      tokens[`alg ${JSON.stringify(alg)}, no signature`] = `${header}.${payload}.`
      tokens[`alg ${JSON.stringify(alg)}, signed as HS256`] = signed(header, payload, secret)
      tokens[`alg ${JSON.stringify(alg)}, two parts`] = `${header}.${payload}`
    }
    tokens['no alg'] = signed(part({ typ: 'JWT' }), part(good()), secret)
    for (const alg of ['HS384', 'HS512']) tokens[`${alg} with the right secret`] = wellSigned(good(), { alg })
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const ed = generateKeyPairSync('ed25519')
    const keys: [alg: string, pair: { privateKey: KeyObject; publicKey: KeyObject }, hash: string | undefined][] = [
      ['RS256', rsa, 'sha256'],
      ['RS512', rsa, 'sha512'],
      ['PS256', rsa, 'sha256'],
      ['ES256', ec, 'sha256'],
      ['EdDSA', ed, undefined],
      ['Ed25519', ed, undefined],
    ]
    for (const [alg, { privateKey, publicKey }, hash] of keys) {
      const jwk = publicKey.export({ format: 'jwk' })
      for (const [label, header] of Object.entries({
        alone: { alg },
        'with its key': { alg, jwk },
        'with its key set': { alg, jku: 'http://127.0.0.1:1/keys', kid: 'mine' },
      })) {
        const text = `${part(header)}.${part(good())}`
        tokens[`${alg} ${label}`] =
          `${text}.${sign(hash, Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
        tokens[`${alg} ${label}, HMAC below`] = signed(part(header), part(good()), secret)
      }
      tokens[`HS256 with the public key of ${alg} as secret`] = signed(
        part(hs256),
        part(good()),
        publicKey.export({ type: 'spki', format: 'pem' }),
      )
    }
    await rejected(t, tenant, tokens)
  })

  t.test('Tokens with a wrong signature or secret are rejected', async (t) => {
    const [header, payload] = [part(hs256), part(good())]
    const whole = wellSigned(good())
    const mac = whole.split('.')[2] ?? ''
    const forged = part(good({ sub: 'eve', role: 'service_role' }))
    const guesses: Record<string, string | Buffer> = {
      empty: '',
      NUL: '\0',
      secret: 'secret',
      'the id': tenant.id,
      'the name': tenant.manifest.name,
      'the publishable key': tenant.publishableKey,
      'the secret key': tenant.secretKey,
      'the digest of a key': tenant.manifest.keys[0]?.sha256 ?? '',
      'the secret of signed URLs': tenant.manifest.signing_secret,
      'the secret as bytes': Buffer.from(secret, 'hex'),
      'the secret as base64': Buffer.from(secret, 'base64'),
      'the secret in capitals': secret.toUpperCase(),
      'the secret and a line': `${secret}\n`,
      'half the secret': secret.slice(0, 32),
      'both secrets': secret + former,
      'a secret of its own': 'mine',
      "another tenant's": other.manifest.jwt_secrets[0] ?? '',
    }
    const longer = Buffer.concat([Buffer.from(mac, 'base64url'), Buffer.alloc(1)]).toString('base64url')
    const tokens = Object.fromEntries(
      Object.entries(guesses).map(([label, guess]) => [`signed with ${label}`, signed(header, payload, guess)]),
    )
    Object.assign(tokens, {
      'no signature': `${header}.${payload}.`,
      'the signature of another payload': `${header}.${forged}.${mac}`,
      'the signature of another header': `${part({ alg: 'HS256' })}.${payload}.${mac}`,
      'half the signature': whole.slice(0, -22),
      'the signature twice': `${header}.${payload}.${mac}${mac}`,
      'the signature in hex': `${header}.${payload}.${Buffer.from(mac, 'base64url').toString('hex')}`,
      'a signature of zeros': `${header}.${payload}.${Buffer.alloc(32).toString('base64url')}`,
      'a signature of 31 bytes': `${header}.${payload}.${Buffer.from(mac, 'base64url').subarray(1).toString('base64url')}`,
      'a signature of 33 bytes': `${header}.${payload}.${longer}`,
      'only the payload signed': `${header}.${payload}.${hmac(payload, secret)}`,
      'decoded parts signed': `${header}.${payload}.${hmac(`${JSON.stringify(hs256)}.${JSON.stringify(good())}`, secret)}`,
    })
    await rejected(t, tenant, tokens)
  })

  t.test('Tokens with headers that choose the key are rejected', async (t) => {
    const tokens: Record<string, string> = {}
    for (const kid of [
      '/dev/null',
      '../../../../dev/null',
      '..\\..\\nul',
      '/proc/sys/kernel/randomize_va_space',
      "x' union select 'mine",
      '| echo mine',
      '$(echo mine)',
      '',
      null,
      0,
      {},
      ['mine'],
      '__proto__',
      other.id,
    ]) {
      for (const key of ['', 'mine', '2\n'])
        tokens[`kid ${JSON.stringify(kid)}, signed with ${JSON.stringify(key)}`] = signToken(good(), key, {
          ...hs256,
          kid,
        })
    }
    const own = { kty: 'oct', k: Buffer.from('mine').toString('base64url'), alg: 'HS256' }
    const chosen = {
      jwk: own,
      jku: 'http://127.0.0.1:1/keys',
      x5u: 'http://127.0.0.1:1/cert',
      x5c: ['MIIB'],
      crit: ['exp'],
    }
    for (const [name, value] of Object.entries(chosen)) {
      for (const given of [value, null, '', [], {}]) {
        tokens[`${name} ${JSON.stringify(given)}, signed with a secret of its own`] = signToken(good(), 'mine', {
          ...hs256,
          [name]: given,
        })
        tokens[`${name} ${JSON.stringify(given)}, well signed`] = wellSigned(good(), { ...hs256, [name]: given })
      }
    }
    tokens['crit that names itself'] = wellSigned(good(), { ...hs256, crit: ['crit'] })
    tokens['crit that names what is not known'] = wellSigned(good(), { ...hs256, crit: ['mine'], mine: 1 })
    tokens['b64 false'] = wellSigned(good(), { ...hs256, b64: false, crit: ['b64'] })
    await rejected(t, tenant, tokens)
  })

  t.test('Malformed tokens are rejected', async (t) => {
    const whole = wellSigned(good())
    const [header = '', payload = '', mac = ''] = whole.split('.')
    // A token whose signature contains letters that standard base64 writes differently.
    const other64 =
      Array.from({ length: 200 }, (_, n) => wellSigned(good({ n }))).find((token) =>
        /[-_]/.test(token.split('.')[2] ?? ''),
      ) ?? ''
    const [header64 = '', payload64 = '', mac64 = ''] = other64.split('.')
    const inner = wellSigned(good())
    await rejected(t, tenant, {
      'padded signature': `${whole}=`,
      'padded twice': `${whole}==`,
      'padded header': `${header}=.${payload}.${mac}`,
      'a signature with stray bits': `${header}.${payload}.${withStrayBits(mac)}`,
      "base64's letters": `${header64}.${payload64}.${mac64.replaceAll('-', '+').replaceAll('_', '/')}`,
      'a header with stray bits, signed so': signed(withStrayBits(part({ alg: 'HS256', x: 11 })), part(good()), secret),
      'a padded payload, signed so': signed(part(hs256), `${part(good({ xy: 1 }))}=`, secret),
      'a letter beyond ASCII': `${whole}\u00e9`,
      'a dot before': `.${whole}`,
      'a dot behind': `${whole}.`,
      'four parts': `${whole}.${mac}`,
      'five parts': `${header}..${payload}.${mac}.${mac}`,
      'only dots': '..',
      'one part': header,
      'encoded again': part(whole),
      'percent signs': whole.replaceAll('.', '%2E'),
      'as JSON': JSON.stringify({ protected: header, payload, signature: mac }),
      quoted: `"${whole}"`,
      'two with a comma': `${whole},${whole}`,
      nested: signed(part({ ...hs256, cty: 'JWT' }), part(inner), secret),
      'nested as text': signed(part({ ...hs256, cty: 'JWT' }), part(JSON.stringify(inner)), secret),
      'nested in a claim': wellSigned({ jwt: inner, exp: now() + 60 }),
      'too long': wellSigned(good({ padding: 'x'.repeat(7_000) })),
      'far too long': wellSigned(good({ padding: 'x'.repeat(45_000) })),
      'long and badly signed': signToken(good({ padding: 'x'.repeat(5_800) }), 'mine'),
      deep: signToken(good({ deep: `${'['.repeat(2_000)}${']'.repeat(2_000)}` }), 'mine'),
      'a long list of dots': '.'.repeat(8_000),
      'a bad one and then a good one': [`Bearer ${header}.${payload}.`, `Bearer ${whole}`],
    })
  })

  t.test('Tokens of another tenant are rejected', async (t) => {
    const theirs = other.manifest.jwt_secrets[0] ?? ''
    const tokens = {
      user: other.token('ada'),
      service: signToken({ role: 'service_role', exp: now() + 60 }, theirs),
      'secret key': other.secretKey,
      'for the one by name': signToken(good({ aud: tenant.manifest.name, iss: tenant.id }), theirs),
      'with a kid of the one': signToken(good(), theirs, { ...hs256, kid: tenant.id }),
    }
    for (const token of [tokens.user, tokens.service])
      t.equal(
        (await send(other.port, 'GET', '/storage/v1/bucket', { authorization: `Bearer ${token}` })).status,
        200,
        'valid at its own tenant',
      )
    await rejected(t, tenant, tokens)
    await rejected(t, other, {
      user: wellSigned(good()),
      service: wellSigned({ role: 'service_role', exp: now() + 60 }),
      'secret key': tenant.secretKey,
    })
  })

  t.test('Tokens with any single bit flipped are rejected', async (t) => {
    const whole = wellSigned(good())
    const parts = whole.split('.')
    const tokens: Record<string, string> = {}
    for (const [n, name] of ['header', 'payload', 'signature'].entries()) {
      const bytes = Buffer.from(parts[n] ?? '', 'base64url')
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const flipped = Buffer.from(bytes)
        flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
        tokens[`bit ${bit} of the ${name}`] = parts.with(n, flipped.toString('base64url')).join('.')
      }
    }
    for (let bit = 0; bit < whole.length * 8; bit++) {
      const flipped = Buffer.from(whole)
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      const text = flipped.toString('latin1')
      // The HTTP client does not send a text that a header cannot contain.
      if (/^[!-~\u0080-\u00ff]*$/.test(text)) tokens[`bit ${bit} of the text`] = text
    }
    const every = effort({ small: 8, full: 1 })
    const chosen = Object.fromEntries(Object.entries(tokens).filter((_, n) => n % every === 0))
    t.ok(Object.keys(tokens).length > 2_000, `${Object.keys(chosen).length} of ${Object.keys(tokens).length}`)
    // Sends each token to one route or to all routes, in turn.
    await rejected(
      t,
      tenant,
      chosen,
      effort({ small: 1, full: 0 }) === 0 ? () => routes : (n) => routes.slice(n % routes.length).slice(0, 1),
    )
  })

  t.test('Tokens of a removed secret and removed keys are rejected', async (t) => {
    const tokens = {
      user: signToken(good(), former),
      service: signToken({ role: 'service_role', exp: now() + 60 }, former),
    }
    const key = tenant.secretKey
    for (const token of [tokens.user, tokens.service, key])
      t.equal(
        (await send(tenant.port, 'GET', '/rest/v1/notes', { authorization: `Bearer ${token}` })).status,
        200,
        'valid until then',
      )
    tenant.change({ jwt_secrets: [secret], keys: [] })
    await rejected(t, tenant, { ...tokens, key })
    tenant.change({ jwt_secrets: [] })
    await rejected(t, other, { 'a token when there is no secret': wellSigned(good()) })
    const before = tenant.statements()
    for (const route of routes)
      t.equal(
        await rejection(tenant, route, { authorization: `Bearer ${signToken(good(), '')}` }),
        undefined,
        'a tenant without a secret accepts no token',
      )
    t.equal(tenant.statements(), before)
    tenant.change({ jwt_secrets: [secret] })
  })

  t.test('Tokens in other places are ignored', async (t) => {
    const token = wellSigned({ role: 'service_role', exp: now() + 60 })
    const before = tenant.statements()
    for (const [path, headers] of [
      [`/functions/v1?access_token=${token}&apikey=${token}&token=${token}`, {}],
      ['/functions/v1', { cookie: `sb-access-token=${token}; access_token=${token}` }],
      [
        '/functions/v1',
        { 'x-api-key': token, 'x-authorization': `Bearer ${token}`, 'proxy-authorization': `Bearer ${token}` },
      ],
      ['/functions/v1', { apikey: token }],
    ] as const)
      t.equal((await send(tenant.port, 'GET', path, headers)).status, 401, JSON.stringify(headers).slice(0, 40))
    t.equal(tenant.statements(), before)
  })

  t.test('All requests with forged tokens were rejected', async (t) => {
    t.comment(`${all.requests} requests`)
    t.ok(all.requests > 3_000)
    t.equal(all.rejections, all.requests)
    t.same(runtime.errors, [], 'no internal error occurred')
  })
})
