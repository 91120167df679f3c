// From a request's credentials to the caller's context (specification, section 5). No SQL before a token is good.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { TenantManifest } from '@tenantry/contract'
import { errors as joseErrors, jwtVerify } from 'jose'
import { RuntimeError } from '../errors.ts'
import { anonymous, type RlsContext } from './rls-context.ts'
import type { Tenant } from './tenant.ts'
import { claimsText, malformed } from './token-form.ts'

export interface Credentials {
  authorization: string | undefined
  apikey: string | undefined
}

export function credentialsOf({ authorization, apikey }: IncomingHttpHeaders): Credentials {
  return { authorization, apikey: typeof apikey === 'string' ? apikey : undefined }
}

/** Verified tokens are remembered so long at most, so that a rotation takes effect within a second. */
const rememberMilliseconds = 1_000
const maxRemembered = 10_000
const maxTokenLength = 8_192

interface Remembered {
  context: RlsContext
  until: number
}

/** Issuer and audiences that a token may name; one without them is taken for any of the tenant's. */
const audiences = (tenant: Tenant) => ['authenticated', tenant.id, tenant.name]
const issuers = (tenant: Tenant) => ['tenantry', tenant.id, tenant.name]

export class Authenticator {
  readonly #now: () => number
  #remembered = new Map<string, Remembered>()
  #older = new Map<string, Remembered>()

  /** `now` in milliseconds since the epoch. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** @throws RuntimeError INVALID_TOKEN, UNAUTHORIZED */
  async authenticate(tenant: Tenant, { authorization, apikey }: Credentials): Promise<RlsContext> {
    const bearer = readBearer(authorization)
    if (bearer === undefined) {
      // Only an API key: the secret one is the service, a text of another form is an anonymous caller.
      return apikey === undefined ? anonymous : (ofApiKey(tenant, apikey) ?? anonymous)
    }
    const known = this.#known(tenant, bearer)
    if (known !== undefined) return known
    const context = ofApiKey(tenant, bearer)
    if (context !== undefined) return context
    if (bearer === apikey && !looksLikeToken(bearer)) return anonymous
    return this.#verify(tenant, bearer)
  }

  /** Whoever was verified by this token a moment ago. */
  #known(tenant: Tenant, token: string): RlsContext | undefined {
    const key = keyOf(tenant, token)
    const known = this.#remembered.get(key) ?? this.#older.get(key)
    return known !== undefined && known.until > this.#now() ? known.context : undefined
  }

  async #verify(tenant: Tenant, token: string): Promise<RlsContext> {
    if (token.length > maxTokenLength) throw new RuntimeError('INVALID_TOKEN', 'the token is too long')
    const payload = await verified(tenant, token, this.#now())
    const context = toContext(payload)
    const expires = Number(payload['exp']) * 1000
    this.#remember(keyOf(tenant, token), { context, until: Math.min(expires, this.#now() + rememberMilliseconds) })
    return context
  }

  /** Two generations of entries: when the newer is full it becomes the older, and what was older is gone. */
  #remember(key: string, entry: Remembered): void {
    if (this.#remembered.size >= maxRemembered) {
      this.#older = this.#remembered
      this.#remembered = new Map()
    }
    this.#remembered.set(key, entry)
  }
}

/** The generation changes with every rotation, and with it what was verified before. */
function keyOf(tenant: Tenant, token: string): string {
  return `${tenant.id}:${tenant.generation}:${tenant.manifest.jwt_secrets.length}:${token}`
}

function readBearer(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const match = /^Bearer[ ]+(\S+)[ ]*$/i.exec(header)
  if (match?.[1] === undefined)
    throw new RuntimeError('INVALID_TOKEN', 'the Authorization header must be "Bearer <token>"')
  return match[1]
}

const apiKeyForm = /^tn_(publishable|secret)_/

/**
 * What an API key proves; undefined for a text that is no API key.
 * @throws RuntimeError INVALID_TOKEN for one that has the form of a key and is none of the tenant's
 */
function ofApiKey(tenant: Tenant, text: string): RlsContext | undefined {
  const kind = apiKeyKind(tenant, text)
  if (kind !== undefined) return kind === 'secret' ? service('secret key') : anonymous
  const form = apiKeyForm.exec(text)?.[1]
  if (form === undefined) return undefined
  throw new RuntimeError('INVALID_TOKEN', `Unknown ${form} API key: it was rotated, or it is not a key of this tenant.`)
}

function apiKeyKind(tenant: Tenant, text: string): 'publishable' | 'secret' | undefined {
  const hash = createHash('sha256').update(text).digest()
  for (const key of tenant.manifest.keys) {
    if (timingSafeEqual(hash, Buffer.from(key.sha256, 'hex'))) return key.kind
  }
  return undefined
}

function looksLikeToken(text: string): boolean {
  return /^[\w-]+\.[\w-]*\.[\w-]*$/.test(text)
}

function service(reason: string): RlsContext {
  return { role: 'service', reason }
}

const importedKeys = new WeakMap<TenantManifest, Promise<CryptoKey[]>>()

/** The manifest's secrets, newest first; to make a key of one takes as long as to verify a token with it. */
function keysOf({ manifest }: Tenant): Promise<CryptoKey[]> {
  const imported = importedKeys.get(manifest)
  if (imported !== undefined) return imported
  const importing = Promise.all(
    manifest.jwt_secrets.map((secret) =>
      crypto.subtle.importKey('raw', Buffer.from(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']),
    ),
  )
  importedKeys.set(manifest, importing)
  return importing
}

async function verified(tenant: Tenant, token: string, now: number): Promise<Record<string, unknown>> {
  const wrong = malformed(token)
  if (wrong !== undefined) throw new RuntimeError('INVALID_TOKEN', wrong)
  let error: unknown
  for (const key of await keysOf(tenant)) {
    try {
      const { payload, protectedHeader } = await jwtVerify(token, key, {
        algorithms: ['HS256'],
        requiredClaims: ['exp'],
        currentDate: new Date(now),
        ...(hasClaim(token, 'aud') ? { audience: audiences(tenant) } : {}),
        ...(hasClaim(token, 'iss') ? { issuer: issuers(tenant) } : {}),
      })
      // Headers that would let a token name its own key.
      for (const name of ['jku', 'jwk', 'x5u', 'x5c', 'crit']) {
        if (name in protectedHeader)
          throw new RuntimeError('INVALID_TOKEN', `the token's header "${name}" is not accepted`)
      }
      return payload
    } catch (cause) {
      if (cause instanceof RuntimeError) throw cause
      // A wrong signature may be right under the secret before; anything else is wrong under each.
      error = cause
      if (!(cause instanceof joseErrors.JWSSignatureVerificationFailed)) break
    }
  }
  const expired = error instanceof joseErrors.JWTExpired
  throw new RuntimeError('INVALID_TOKEN', expired ? 'the token has expired' : 'the token is not valid', {
    cause: error,
  })
}

function hasClaim(token: string, claim: string): boolean {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    return typeof payload === 'object' && payload !== null && claim in payload
  } catch {
    return false
  }
}

function toContext(payload: Record<string, unknown>): RlsContext {
  const { role = 'authenticated' } = payload
  if (role === 'service_role') return service('service token')
  if (role === 'anon') return anonymous
  if (role !== 'authenticated') throw new RuntimeError('INVALID_TOKEN', 'the token names an unknown role')
  const subject = payload['sub']
  if (
    typeof subject !== 'string' ||
    subject === '' ||
    subject.length > 255 ||
    subject.includes('\0') ||
    !subject.isWellFormed()
  ) {
    throw new RuntimeError('INVALID_TOKEN', 'the token has no subject ("sub")')
  }
  return { role: 'authenticated', userId: subject, claims: claimsText(payload) }
}
