// Authenticates a request's credentials and returns the caller's context (specification, section 5). A token is verified
// before any SQL.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { ApiKey, TenantManifest } from '@tenantry/contract'
import { errors as joseErrors, jwtVerify } from 'jose'
import type { FastifyRequest } from 'fastify'
import { RuntimeError } from '../errors.ts'
import { anonymous, type RlsContext } from './rls-context.ts'
import { DeveloperSessions, sessionContext } from './developer-sessions.ts'
import { KeyUse } from './key-use.ts'
import type { Tenant } from './tenant.ts'
import { imported, publicKeyOf } from './public-keys.ts'
import { claimsText, malformed } from './token-form.ts'

export interface Credentials {
  authorization: string | undefined
  apikey: string | undefined
}

export function credentialsOf({ authorization, apikey }: IncomingHttpHeaders): Credentials {
  return { authorization, apikey: typeof apikey === 'string' ? apikey : undefined }
}

/** The maximum time for which verified tokens are cached, so that a rotation takes effect within a second. */
const cacheMilliseconds = 1_000
const maxCachedTokens = 10_000
const maxTokenLength = 8_192

interface VerifiedToken {
  context: RlsContext
  until: number
}

/** The issuers and audiences that a token may name. A token without them is accepted for any of the tenant's. */
const audiences = (tenant: Tenant) => ['authenticated', tenant.id, tenant.name]
const issuers = (tenant: Tenant) => ['tenantry', tenant.id, tenant.name]

export class Authenticator {
  readonly #now: () => number
  /** The uses of API keys. */
  readonly uses: KeyUse
  /** The sessions of the developers' console. */
  readonly sessions: DeveloperSessions
  #verified = new Map<string, VerifiedToken>()
  #older = new Map<string, VerifiedToken>()

  /** Creates an authenticator. `now` returns milliseconds since the epoch. */
  constructor(now: () => number) {
    this.#now = now
    this.uses = new KeyUse(now())
    this.sessions = new DeveloperSessions(now)
  }

  /**
   * Authenticates the credentials.
   * @throws RuntimeError INVALID_TOKEN, UNAUTHORIZED
   */
  async authenticate(tenant: Tenant, { authorization, apikey }: Credentials): Promise<RlsContext> {
    const bearer = readBearer(authorization)
    if (bearer === undefined) {
      // There is only an API key: the secret key is the service's; a text of another form is an anonymous caller.
      return apikey === undefined ? anonymous : (this.#ofApiKey(tenant, apikey) ?? anonymous)
    }
    const known = this.#cached(tenant, bearer)
    if (known !== undefined) return known
    const context = this.#ofApiKey(tenant, bearer)
    if (context !== undefined) return context
    if (bearer === apikey && !looksLikeToken(bearer)) return anonymous
    return this.#verify(tenant, bearer)
  }

  /**
   * Authenticates the caller of a request in progress again, for the tenant as it is now.
   * @throws RuntimeError INVALID_TOKEN, UNAUTHORIZED, SESSION_ENDED
   */
  async authenticateAgain({ rls, headers, developerSession }: FastifyRequest, tenant: Tenant): Promise<RlsContext> {
    if (rls !== sessionContext || developerSession === null) return this.authenticate(tenant, credentialsOf(headers))
    this.sessions.requireValid(developerSession, tenant)
    return rls
  }

  /** Whether a text is a valid secret key of the tenant. */
  isSecretKey(tenant: Tenant, text: string): boolean {
    return this.#apiKeyKind(tenant, text) === 'secret'
  }

  /**
   * Returns the context of an API key; undefined for a text that is not an API key.
   * @throws RuntimeError INVALID_TOKEN for a text that has the form of a key but is not one of the tenant's
   */
  #ofApiKey(tenant: Tenant, text: string): RlsContext | undefined {
    const kind = this.#apiKeyKind(tenant, text)
    if (kind !== undefined) return kind === 'secret' ? service('secret key') : anonymous
    const form = apiKeyForm.exec(text)?.[1]
    if (form === undefined) return undefined
    throw new RuntimeError(
      'INVALID_TOKEN',
      `Unknown ${form} API key: it was rotated, or it is not a key of this tenant.`,
    )
  }

  #apiKeyKind(tenant: Tenant, text: string): ApiKey['kind'] | undefined {
    const now = this.#now()
    const hash = createHash('sha256').update(text).digest()
    for (const { kind, sha256, expires_at: expiresAt } of tenant.manifest.keys) {
      if (!timingSafeEqual(hash, Buffer.from(sha256, 'hex')) || !isLive(expiresAt, now)) continue
      this.uses.note(tenant.id, sha256, now)
      return kind
    }
    return undefined
  }

  /** Returns the context of a token that was verified recently. */
  #cached(tenant: Tenant, token: string): RlsContext | undefined {
    const key = keyOf(tenant, token)
    const known = this.#verified.get(key) ?? this.#older.get(key)
    return known !== undefined && known.until > this.#now() ? known.context : undefined
  }

  async #verify(tenant: Tenant, token: string): Promise<RlsContext> {
    if (token.length > maxTokenLength) throw new RuntimeError('INVALID_TOKEN', 'The token is too long.')
    const payload = await verifyToken(tenant, token, this.#now())
    const context = toContext(payload)
    const expires = Number(payload['exp']) * 1000
    this.#store(keyOf(tenant, token), { context, until: Math.min(expires, this.#now() + cacheMilliseconds) })
    return context
  }

  /** Stores an entry. When the newer of two maps is full, it replaces the older one. */
  #store(key: string, entry: VerifiedToken): void {
    if (this.#verified.size >= maxCachedTokens) {
      this.#older = this.#verified
      this.#verified = new Map()
    }
    this.#verified.set(key, entry)
  }
}

/** Returns a cache key, which changes with the generation, and so with every rotation. */
function keyOf(tenant: Tenant, token: string): string {
  return `${tenant.id}:${tenant.generation}:${tenant.manifest.jwt_secrets.length}:${token}`
}

function readBearer(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  const match = /^Bearer[ ]+(\S+)[ ]*$/i.exec(header)
  if (match?.[1] === undefined)
    throw new RuntimeError('INVALID_TOKEN', 'The Authorization header must be "Bearer <token>".')
  return match[1]
}

const apiKeyForm = /^tn_(publishable|secret)_/

/** Whether a key or secret is valid: it was not rotated, or its overlap has not ended. */
export function isLive(expiresAt: string | null | undefined, now: number): boolean {
  return expiresAt == null || Date.parse(expiresAt) > now
}

/**
 * Returns the next time, in milliseconds since the epoch, from which one more of the tenant's keys and secrets is not accepted,
 * also for tokens that were verified before; Infinity without an overlap of a rotation.
 */
export function nextCredentialEnd({ manifest }: Tenant, now: number): number {
  const expiries = [...manifest.keys.map(({ expires_at: at }) => at), ...(manifest.jwt_secret_expiries ?? [])]
  const ends = expiries.map((at) => (at == null ? Infinity : Date.parse(at) + cacheMilliseconds))
  return Math.min(Infinity, ...ends.filter((end) => end > now))
}

/** Whether a text has the form of a token. API keys do not. */
export function looksLikeToken(text: string): boolean {
  return /^[\w-]+\.[\w-]*\.[\w-]*$/.test(text)
}

function service(reason: string): RlsContext {
  return { role: 'service', reason }
}

const importedKeys = new WeakMap<TenantManifest, Promise<CryptoKey[]>>()

/**
 * Returns the manifest's secrets as keys, newest first. They are cached, because importing one takes as long as verifying a
 * token.
 */
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

/** Headers that would let a token name its own key. */
const forbiddenHeaders = ['jku', 'jwk', 'x5u', 'x5c', 'crit']

async function verifyToken(tenant: Tenant, token: string, now: number): Promise<Record<string, unknown>> {
  const wrong = malformed(token)
  if (wrong !== undefined) throw new RuntimeError('INVALID_TOKEN', wrong)
  const options = {
    requiredClaims: ['exp'],
    currentDate: new Date(now),
    ...(hasClaim(token, 'aud') ? { audience: audiences(tenant) } : {}),
    ...(hasClaim(token, 'iss') ? { issuer: issuers(tenant) } : {}),
  }
  let error: unknown
  for (const { key, alg } of await candidates(tenant, token, now)) {
    try {
      const { payload, protectedHeader } = await jwtVerify(token, key, { ...options, algorithms: [alg] })
      for (const name of forbiddenHeaders) {
        if (name in protectedHeader)
          throw new RuntimeError('INVALID_TOKEN', `The token's header "${name}" is not accepted.`)
      }
      return payload
    } catch (cause) {
      if (cause instanceof RuntimeError) throw cause
      // The signature may be valid with the previous secret. Any other error is the same with each of them.
      error = cause
      if (!(cause instanceof joseErrors.JWSSignatureVerificationFailed)) break
    }
  }
  const expired = error instanceof joseErrors.JWTExpired
  throw new RuntimeError('INVALID_TOKEN', expired ? 'The token has expired.' : 'The token is not valid.', {
    cause: error,
    isExpired: expired,
  })
}

/** Returns the keys that may have signed a token: the public key that it names, or the tenant's secrets. */
async function candidates(tenant: Tenant, token: string, now: number): Promise<{ key: CryptoKey; alg: string }[]> {
  const publicKey = publicKeyOf(tenant.manifest, token)
  if (publicKey !== undefined) return [{ key: await imported(publicKey), alg: publicKey.alg }]
  const expiries = tenant.manifest.jwt_secret_expiries ?? []
  return (await keysOf(tenant)).filter((_, at) => isLive(expiries[at], now)).map((key) => ({ key, alg: 'HS256' }))
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
  if (role !== 'authenticated') throw new RuntimeError('INVALID_TOKEN', 'The token has an unknown role.')
  const subject = payload['sub']
  if (
    typeof subject !== 'string' ||
    subject === '' ||
    subject.length > 255 ||
    subject.includes('\0') ||
    !subject.isWellFormed()
  ) {
    throw new RuntimeError('INVALID_TOKEN', 'The token has no subject ("sub").')
  }
  return { role: 'authenticated', userId: subject, claims: claimsText(payload) }
}
