// Signs users in as an app's own sign-in service does.
import { createHmac } from 'node:crypto'

/** Creates a user's token: HS256 with the tenant's `jwt_secret`, valid for some seconds. */
export function userToken(secret: string, userId: string, seconds = 3600): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const now = Math.floor(Date.now() / 1000)
  const claims = { sub: userId, role: 'authenticated', iat: now, exp: now + seconds }
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}
