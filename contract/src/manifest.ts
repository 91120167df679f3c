// The data that a runtime needs to serve one tenant. It contains secrets: its files have mode 0600.
import { Type, type Static } from 'typebox'
import { TenantId, TenantName } from './ids.ts'

/** Access to a tenant's home: logins of its database as URLs, and its schema. */
export const Home = Type.Object({
  /** URL of the runtime role `t_<hex>`, which owns nothing and is subject to row-level security. */
  url: Type.String(),
  /** URL of `t_<hex>_ddl`, a member of the owner role, used only for `POST /admin/reload-schemas`. */
  ddl_url: Type.String(),
  schema: TenantId,
})
export type Home = Static<typeof Home>

/** One of a tenant's API keys, for comparison by the runtime. */
export const ApiKey = Type.Object({
  kind: Type.Union([Type.Literal('publishable'), Type.Literal('secret')]),
  /** Lower-case hex SHA-256 of the whole key text. The key itself is never stored. */
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
})
export type ApiKey = Static<typeof ApiKey>

/** Quotas of a tenant's plan for its runtime; null is unlimited (specification, section 8). */
export const Limits = Type.Object({
  /** Maximum bytes of files; null is unlimited. */
  file_bytes: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  document_bytes: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  /** Maximum bytes of one upload if the bucket sets no limit. */
  max_upload_bytes: Type.Integer({ minimum: 1 }),
  requests_per_month: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  connections: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
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
  /** Key of storage's signed URLs, which no response contains. */
  signing_secret: Type.String({ minLength: 32 }),
  limits: Limits,
})
export type TenantManifest = Static<typeof TenantManifest>
