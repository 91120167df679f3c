// Signed URLs of two similar tenants, and tokens that are almost theirs.
import { createHmac } from 'node:crypto'
import type { Test } from 'tap'
import type { ApiResponse, TestRuntime, TestTenant } from '#test/support/runtime.ts'
import { bucket, objects, text } from './objects.ts'

/** Yields every text that differs from `text` in one bit. */
export function* flipped(text: string): Generator<string> {
  for (let at = 0; at < text.length; at++) {
    for (let bit = 0; bit < 8; bit++)
      yield text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << bit)) + text.slice(at + 1)
  }
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Returns texts that are not the token, but that a lenient parser would take for it or for a part of it. */
export function disguises(token: string): Record<string, string> {
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

/** Returns tokens that name another algorithm, or are signed with another algorithm or key. */
export function forgeries(token: string, secrets: Record<string, string>): Record<string, string> {
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

export async function put(tenant: TestTenant, target: string, body: string, caller = 'u1'): Promise<void> {
  const response = await tenant.request('POST', `${objects}/${target}`, { as: caller, body, headers: text })
  if (response.status !== 200) throw new Error(response.text)
}

export async function signRead(
  tenant: TestTenant,
  target: string,
  caller = 'u1',
  how = '',
): Promise<{ url: string; token: string; expires: string }> {
  const { url } = (await tenant.request('POST', `${objects}/sign/${target}${how}`, { as: caller })).json() as {
    url: string
  }
  const { searchParams } = new URL(url, tenant.url)
  return { url, token: searchParams.get('token') ?? '', expires: searchParams.get('expires') ?? '' }
}

export async function signUpload(
  tenant: TestTenant,
  target: string,
  caller = 'u1',
  headers: Record<string, string> = { 'x-upsert': 'true' },
): Promise<{ url: string; token: string }> {
  const { token } = (
    await tenant.request('POST', `${objects}/upload/sign/${target}`, { as: caller, headers })
  ).json() as {
    token: string
  }
  return { url: `${objects}/upload/sign/${target}?token=${token}`, token }
}

/** Starts two similar tenants, each with an object at `docs/a/b c.txt` and a second one. */
export async function start(runtime: TestRuntime): Promise<{
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

/** Checks that the response is the common rejection, which does not disclose the invalid part. */
export function rejected(t: Test, { status, text, headers }: ApiResponse, why: string) {
  const { 'x-request-id': _, date: __, ...rest } = headers
  t.same(
    [status, text, Object.keys(rest).sort()],
    [
      400,
      '{"statusCode":"400","error":"InvalidSignature","message":"The signature of the URL is not valid.","code":"InvalidSignature"}',
      ['connection', 'content-length', 'content-type', 'vary', 'x-tenantry-rejected'],
    ],
    why,
  )
}
