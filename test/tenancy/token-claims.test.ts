// Tokens with a valid signature and invalid claims, at each kind of route: all are rejected, and none causes a
// statement.
import t from 'tap'
import { send, signToken } from '#test/support/runtime.ts'
import { hs256, openForger, part, signed } from './support/forged-tokens.ts'

t.test('Forged tokens are rejected', async (t) => {
  const { runtime, secret, former, tenant, other, now, good, without, wellSigned, all, rejected } = await openForger(t)

  t.test('Tokens with invalid claims are rejected', async (t) => {
    const wrong: Record<string, unknown[]> = {
      exp: [
        now() - 1,
        now(),
        0,
        -1,
        1,
        String(now() + 60),
        null,
        true,
        [],
        [now() + 60],
        {},
        { valueOf: now() + 60 },
        'never',
      ],
      nbf: [now() + 60, now() + 1, String(now() - 60), null, true, [], {}],
      iat: [String(now()), null, [], {}],
      sub: [
        '',
        null,
        0,
        1,
        true,
        [],
        ['ada'],
        {},
        { toString: 'ada' },
        'a\0',
        '\0',
        'a'.repeat(256),
        '\ud800',
        'ada\udfff',
      ],
      role: [
        '',
        null,
        0,
        true,
        [],
        ['service_role'],
        {},
        'postgres',
        'superuser',
        'SERVICE_ROLE',
        'service_role ',
        'service_role\0',
        'Authenticated',
        'service',
        'admin',
        `${tenant.id}_owner`,
      ],
      aud: [
        '',
        null,
        0,
        [],
        {},
        'another',
        ['another'],
        [null],
        [['authenticated']],
        other.id,
        other.manifest.name,
        'AUTHENTICATED',
        'authenticated ',
      ],
      iss: [
        '',
        null,
        0,
        [],
        {},
        ['tenantry'],
        'https://tenantry',
        other.id,
        other.manifest.name,
        'Tenantry',
        'supabase',
      ],
    }
    const tokens: Record<string, string> = {
      'no exp': wellSigned(without('exp')),
      'no sub': wellSigned(without('sub')),
      nothing: wellSigned({}),
      'expired, by the former secret': signToken(good({ exp: now() - 1 }), former),
      'expired, for the service': wellSigned({ role: 'service_role', exp: now() - 1 }),
      'no exp, for the service': wellSigned({ role: 'service_role' }),
      'sub with invalid UTF-8': signed(
        part(hs256),
        part(Buffer.concat([Buffer.from('{"sub":"'), Buffer.from([0xff]), Buffer.from(`","exp":${now() + 60}}`)])),
        secret,
      ),
      'claims as a list': wellSigned([good()]),
      'claims as a text': wellSigned(JSON.stringify(JSON.stringify(good()))),
      'claims null': wellSigned('null'),
      'claims as a number': wellSigned('1'),
      'claims empty': wellSigned(''),
      'claims no JSON': wellSigned(`${JSON.stringify(good())},`),
      'claims with a comment': wellSigned(`${JSON.stringify(good())}//`),
      'claims after a byte order mark': wellSigned(`\ufeff${JSON.stringify(good())}`),
      'claims of another audience after a byte order mark': wellSigned(
        `\ufeff${JSON.stringify(good({ aud: 'another' }))}`,
      ),
      'exp of a prototype': wellSigned(`{"sub":"ada","__proto__":{"exp":${now() + 60}}}`),
      'sub of a prototype': wellSigned(`{"exp":${now() + 60},"__proto__":{"sub":"ada"}}`),
    }
    for (const [name, values] of Object.entries(wrong))
      for (const value of values)
        tokens[`${name} ${JSON.stringify(value).slice(0, 40)}`] = wellSigned(good({ [name]: value }))
    await rejected(t, tenant, tokens)
  })

  t.test('Tokens with a duplicate member are rejected', async (t) => {
    const end = `"exp":${now() + 60}`
    const payloads = [
      `{"sub":"ada","sub":"eve",${end}}`,
      `{"sub":"ada","\\u0073ub":"ada",${end}}`,
      `{"sub":"ada",${end},"exp" :1}`,
      `{"role":"anon","role":"service_role",${end}}`,
      `{"sub":"ada","meta":{"a":1},${end},"meta":{}}`,
    ]
    const headers = [
      '{"alg":"none","alg":"HS256"}',
      '{"alg":"HS256","alg":"none"}',
      '{"alg":"HS256","\\u0061lg":"HS256"}',
      '{"alg":"HS256","kid":"a","kid":"b"}',
    ]
    await rejected(t, tenant, {
      ...Object.fromEntries(payloads.map((payload) => [payload, signed(part(hs256), part(payload), secret)])),
      ...Object.fromEntries(headers.map((header) => [header, signed(part(header), part(good()), secret)])),
    })
    const { status } = await send(tenant.port, 'GET', '/rest/v1/notes', {
      authorization: `Bearer ${wellSigned(good({ meta: { sub: 'x', a: [{ sub: 'y', exp: 1 }], b: '"sub":"z"' } }))}`,
    })
    t.equal(status, 200, 'a member in a nested object or a string is not a duplicate')
  })

  t.test('Policies read the claims of a valid token exactly as signed', async (t) => {
    await tenant.rows(`create function copy_note() returns trigger language plpgsql as $$
      begin new.text := current_setting('request.jwt.claims')::jsonb ->> 'note'; return new; end $$`)
    await tenant.rows('create trigger copy_note before insert on notes for each row execute function copy_note()')
    const texts = {
      'a\\u0000b': 'a\\u0000b',
      '\\': '\\',
      '\\\\u0000"': '\\\\u0000"',
      'a\0b': 'ab',
      '\ud800x': '\ufffdx',
      '💩"\\ud83d': '💩"\\ud83d',
      'ends with \\u0000': 'ends with \\u0000',
    }
    for (const [note, seen] of Object.entries(texts)) {
      const response = await send(
        tenant.port,
        'POST',
        '/rest/v1/notes',
        { authorization: `Bearer ${wellSigned(good({ note, 'a\\u0000': 1, 'b\0': 2 }))}` },
        { text: '' },
      )
      t.equal(response.status, 201, response.text)
      t.equal(response.json()['text'], seen, JSON.stringify(note))
    }
  })

  t.test('All requests with forged tokens were rejected', async (t) => {
    t.comment(`${all.requests} requests`)
    t.ok(all.requests > 1_500)
    t.equal(all.rejections, all.requests)
    t.same(runtime.errors, [], 'no internal error occurred')
  })
})
