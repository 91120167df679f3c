// Tokens of signed URLs (specification, section 5.5): valid for exactly their fields, and rejected with any bit changed
// or for another use.
import { createHmac } from 'node:crypto'
import t from 'tap'
import { RuntimeError } from '#tenant-runtime/errors.ts'
import { readToken, requireBucket, signClaims } from '#tenant-runtime/storage/signing/token.ts'
import { disguises, flipped, forgeries } from './support/signed-urls.ts'

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

/** Returns the code with which the token is rejected. */
function rejection(work: () => unknown): string {
  try {
    work()
    return 'accepted'
  } catch (error) {
    return error instanceof RuntimeError ? error.code : String(error)
  }
}

t.test('A token', async (t) => {
  const token = signClaims(claims, secret)

  t.test('A token is valid for its fields, to the second', async (t) => {
    t.same(readToken(token, [secret], use), claims)
    t.same(readToken(token, [secret], { ...use, expires: undefined }), claims)
    for (const [now, code] of [
      [1_799_999_999, 'accepted'],
      [1_799_999_999.999, 'accepted'],
      [1_800_000_000, 'ExpiredToken'],
      [1_800_000_001, 'ExpiredToken'],
    ] as const) {
      t.equal(
        rejection(() => readToken(token, [secret], { ...use, now })),
        code,
        String(now),
      )
    }
  })

  t.test('A token is rejected with any bit of its text or of its bytes changed', async (t) => {
    const codes = new Map<string, number>()
    const count = (code: string) => codes.set(code, (codes.get(code) ?? 0) + 1)
    for (const other of flipped(token)) count(rejection(() => readToken(other, [secret], use)))
    const parts = token.split('.').map((part) => Buffer.from(part, 'base64url'))
    for (const [nth, bytes] of parts.entries()) {
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const changed = Buffer.from(bytes)
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        count(
          rejection(() =>
            readToken(
              parts.map((part, index) => (index === nth ? changed : part).toString('base64url')).join('.'),
              [secret],
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
        rejection(() => readToken(token, [secret], { ...use, expires: other })),
        'InvalidSignature',
        other,
      )
  })

  t.test('A token is rejected in any other encoding, and by any other key or algorithm', async (t) => {
    for (const [what, other] of Object.entries({
      ...disguises(token),
      ...forgeries(token, { 'another key': 'x'.repeat(32) }),
    })) {
      t.equal(
        rejection(() => readToken(other, [secret], use)),
        'InvalidSignature',
        what,
      )
    }
  })

  t.test('A value of one field is not valid in another field', async (t) => {
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
    const fields = Object.keys(claims) as (keyof typeof claims)[]
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
            rejection(() => readToken(`${payload}.${signature}`, [secret], use)),
            'InvalidSignature',
            `${field} of another token`,
          )
        }
      }
    }
    t.equal(mixed, others.length * fields.length)
  })

  t.test('A signed token for another use, or one that is not ours, is rejected', async (t) => {
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
        rejection(() => readToken(token, [secret], { ...use, [field]: value })),
        'InvalidSignature',
        `${field} ${value}`,
      )
    }
    const [pair, decomposed] = ['ä', 'a\u0308']
    t.equal(
      rejection(() => readToken(signClaims({ ...claims, path: pair }, secret), [secret], { ...use, path: decomposed })),
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
        rejection(() => readToken(sign(Buffer.from(content, 'latin1').toString('base64url')), [secret], use)),
        'InvalidSignature',
        content,
      )
    }
    const { version: _, ...early } = claims
    const first = readToken(sign(Buffer.from(JSON.stringify(early)).toString('base64url')), [secret], use)
    t.equal(
      rejection(() => requireBucket(first, { id: 'b1', signingVersion: 1, policy: 'private' })),
      'accepted',
      'a token without a version is of the first version',
    )
    t.equal(
      rejection(() => requireBucket(first, { id: 'b1', signingVersion: 2, policy: 'private' })),
      'InvalidSignature',
    )
    for (const [id, signingVersion, code] of [
      ['b1', 1, 'accepted'],
      ['b2', 1, 'InvalidSignature'],
      ['b1', 2, 'InvalidSignature'],
      ['b1', 0, 'InvalidSignature'],
    ] as const) {
      t.equal(
        rejection(() => requireBucket(claims, { id, signingVersion, policy: 'private' })),
        code,
        `${id} ${signingVersion}`,
      )
    }
  })
})
