// Finds out who a key or a token belongs to, and whether it is still valid.
import { decodeJwt } from 'jose'
import { RuntimeError } from '../../errors.ts'
import { looksLikeToken, type Authenticator } from '../../tenancy/authenticate.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Caller } from './channel.ts'

/**
 * Authenticates a key or a token.
 * @throws RuntimeError INVALID_TOKEN
 */
export async function authenticateCaller(
  authenticator: Authenticator,
  tenant: Tenant,
  credential: string,
): Promise<Caller> {
  const context = await authenticator.authenticate(tenant, {
    authorization: `Bearer ${credential}`,
    apikey: undefined,
  })
  return { credential, context, expiresAt: expiryOf(credential) }
}

/** Returns the reason why credentials are not accepted. @throws the error when it is another one */
export function rejectionOf(error: unknown): string {
  if (error instanceof RuntimeError && error.status < 500) return error.message
  throw error
}

function expiryOf(credential: string): number | undefined {
  if (!looksLikeToken(credential)) return undefined
  const { exp } = decodeJwt(credential)
  return exp === undefined ? undefined : exp * 1_000
}
