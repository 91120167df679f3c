// The data that a runtime needs to serve one tenant. It contains secrets: its files have mode 0600.
import { Type, type Static } from 'typebox'
import { TenantId, TenantName } from './ids.ts'

/** Access to a tenant's home: logins of its database as URLs, and its schema. */
export const Home = Type.Object({
  /** URL of the runtime role `t_<hex>`, which owns nothing and is subject to row-level security. */
  url: Type.String(),
  /** URL of `t_<hex>_ddl`, a member of the owner role, used only for `POST /admin/reload-schemas`. */
  ddl_url: Type.String(),
  /**
   * URLs of both logins with their other valid passwords, only while these are rotated: a runtime that is rejected with one
   * tries the others.
   */
  other_urls: Type.Optional(Type.Array(Type.String())),
  other_ddl_urls: Type.Optional(Type.Array(Type.String())),
  /** URL of `t_<hex>_admin`, the tenant's own SQL login, used only for `POST /sql/v1`. Manifests of earlier versions lack it. */
  admin_url: Type.Optional(Type.String()),
  /** Names and ports of all members of the cluster with the home; absent for a database without replicas. */
  members: Type.Optional(Type.Array(Type.String())),
  schema: TenantId,
})
export type Home = Static<typeof Home>

/** One of a tenant's API keys, for comparison by the runtime. */
export const ApiKey = Type.Object({
  kind: Type.Union([Type.Literal('publishable'), Type.Literal('secret')]),
  /** Lower-case hex SHA-256 of the whole key text. The key itself is never stored. */
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  /** The begin of the key, which distinguishes it from others. Manifests of earlier versions lack this and the following. */
  prefix: Type.Optional(Type.String()),
  /** Time in ISO 8601. */
  created_at: Type.Optional(Type.String()),
  /** Time in ISO 8601 at which a rotated key ends; absent for a key that was not rotated. */
  expires_at: Type.Optional(Type.String()),
})
export type ApiKey = Static<typeof ApiKey>

/** Algorithms of public keys. Each key has exactly one. */
export const publicKeyAlgorithms = ['RS256', 'ES256', 'EdDSA'] as const

/** A public key (RFC 7517) that verifies tokens of the tenant's users: of RSA `n` and `e`, of a curve `crv`, `x` and `y`. */
export const PublicKey = Type.Object({
  kid: Type.String(),
  alg: Type.Enum([...publicKeyAlgorithms]),
  kty: Type.String(),
  n: Type.Optional(Type.String()),
  e: Type.Optional(Type.String()),
  crv: Type.Optional(Type.String()),
  x: Type.Optional(Type.String()),
  y: Type.Optional(Type.String()),
})
export type PublicKey = Static<typeof PublicKey>

/** Quotas of a tenant's plan for its runtime; null is unlimited (specification, section 8). */
export const Limits = Type.Object({
  /** Maximum bytes of files; null is unlimited. */
  file_bytes: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  document_bytes: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  /** Maximum bytes of one upload if the bucket sets no limit. */
  max_upload_bytes: Type.Integer({ minimum: 1 }),
  requests_per_month: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  connections: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  /** Maximum number of functions, and of bytes of their modules. Manifests of earlier versions lack this and the following: unlimited. */
  functions: Type.Optional(Type.Union([Type.Integer({ minimum: 0 }), Type.Null()])),
  function_bytes: Type.Optional(Type.Union([Type.Integer({ minimum: 0 }), Type.Null()])),
  /** Maximum number of schemas, and of bytes of their texts. */
  schemas: Type.Optional(Type.Union([Type.Integer({ minimum: 0 }), Type.Null()])),
  schema_bytes: Type.Optional(Type.Union([Type.Integer({ minimum: 0 }), Type.Null()])),
  /** Days for which events are stored, and the maximum bytes of the newest ones. */
  event_days: Type.Optional(Type.Union([Type.Integer({ minimum: 1 }), Type.Null()])),
  event_bytes: Type.Optional(Type.Union([Type.Integer({ minimum: 0 }), Type.Null()])),
  /** Days for which records of invocations are stored, and the maximum number of the newest ones. */
  invocation_days: Type.Optional(Type.Union([Type.Integer({ minimum: 1 }), Type.Null()])),
  invocations: Type.Optional(Type.Union([Type.Integer({ minimum: 0 }), Type.Null()])),
  /** Messages on realtime channels that clients may send per second, and the maximum bytes of one. */
  realtime_messages: Type.Optional(Type.Union([Type.Integer({ minimum: 1 }), Type.Null()])),
  realtime_payload_bytes: Type.Optional(Type.Union([Type.Integer({ minimum: 1 }), Type.Null()])),
})
export type Limits = Static<typeof Limits>

/** The data that a runtime needs to serve one tenant. It contains secrets. */
export const TenantManifest = Type.Object({
  tenant_id: TenantId,
  name: TenantName,
  /** Number that every change of the tenant increments. Health responses return it. */
  generation: Type.Integer({ minimum: 1 }),
  home: Home,
  keys: Type.Array(ApiKey),
  /** HS256 secrets of the tokens of the tenant's users, the newest first. Two are valid during a rotation. */
  jwt_secrets: Type.Array(Type.String({ minLength: 32 }), { minItems: 1 }),
  /** The times in ISO 8601 at which the secrets of `jwt_secrets` end, in the same order; null for one that was not rotated. */
  jwt_secret_expiries: Type.Optional(Type.Array(Type.Union([Type.String(), Type.Null()]))),
  /** The times in ISO 8601 at which the secrets of `jwt_secrets` were created, in the same order. */
  jwt_secret_creations: Type.Optional(Type.Array(Type.String())),
  /** Public keys of tokens, in addition to the secrets. */
  jwks: Type.Optional(Type.Array(PublicKey)),
  /** Key of storage's signed URLs, which no response contains. */
  signing_secret: Type.String({ minLength: 32 }),
  /** Rotated keys of signed URLs, which verify until a time in ISO 8601. */
  former_signing_secrets: Type.Optional(
    Type.Array(Type.Object({ secret: Type.String({ minLength: 32 }), expires_at: Type.String() })),
  ),
  limits: Limits,
  /**
   * The reason for which gateways reject all requests of the tenant, and for which the runtime ends its realtime connections;
   * absent while the tenant is served.
   */
  unserved: Type.Optional(
    Type.Object({
      phase: Type.Enum(['suspended', 'deleted']),
      /** Public text for the phase `suspended`. */
      reason: Type.Optional(Type.String()),
    }),
  ),
  /**
   * Seconds for which files of deleted and overwritten objects are retained, because the database can be restored to a
   * moment at which they existed. Absent: they are removed at once.
   */
  retain_files_seconds: Type.Optional(Type.Integer({ minimum: 0 })),
})
export type TenantManifest = Static<typeof TenantManifest>
