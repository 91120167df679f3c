// Signs tokens of users.
import { createHmac } from 'node:crypto'

const digests: Record<string, string> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' }

/** Returns a JWT, signed with the header's algorithm. An algorithm other than HMAC is signed as HS256, an attack to reject. */
export function signToken(
  claims: unknown,
  secret: string,
  header: Record<string, unknown> = { alg: 'HS256', typ: 'JWT' },
): string {
  const part = (value: unknown) =>
    Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
  const text = `${part(header)}.${part(claims)}`
  return `${text}.${createHmac(digests[String(header['alg'])] ?? 'sha256', secret)
    .update(text)
    .digest('base64url')}`
}
