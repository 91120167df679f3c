// What a runtime must know to serve one tenant. Contains secrets: files that hold it have mode 0600.
import { Type, type Static } from 'typebox'
import { TenantId, TenantName } from './ids.ts'

/** How a runtime reaches a tenant's home: logins of its database as URLs, and its schema. */
export const Home = Type.Object({
  /** Login of the runtime role `t_<hex>`: owns nothing, bound by row-level security. */
  url: Type.String(),
  /** Login of `t_<hex>_ddl`, a member of the owner role: only for `POST /admin/reload-schemas`. */
  ddl_url: Type.String(),
  schema: TenantId,
})
export type Home = Static<typeof Home>

/** One of a tenant's API keys, as the runtime compares it. */
export const ApiKey = Type.Object({
  kind: Type.Union([Type.Literal('publishable'), Type.Literal('secret')]),
  /** Lower-case hex SHA-256 of the whole key text; the key itself is never stored. */
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
})
export type ApiKey = Static<typeof ApiKey>

/** Quotas of a tenant's plan as its runtime knows them; null is unlimited (specification, section 8). */
export const Limits = Type.Object({
  /** Bytes; null means unlimited (specification, section 8). */
  file_bytes: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  document_bytes: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  /** Bytes of one upload when the bucket sets no limit of its own. */
  max_upload_bytes: Type.Integer({ minimum: 1 }),
  requests_per_month: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  connections: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
})
export type Limits = Static<typeof Limits>

/** All that a runtime must know to serve one tenant. It contains secrets. */
export const TenantManifest = Type.Object({
  tenant_id: TenantId,
  name: TenantName,
  /** Raised with every change of the tenant; health answers carry it back. */
  generation: Type.Integer({ minimum: 1 }),
  home: Home,
  keys: Type.Array(ApiKey),
  /** HS256 secrets of the tenant's users' tokens, newest first: two are live while rotating. */
  jwt_secrets: Type.Array(Type.String({ minLength: 32 }), { minItems: 1 }),
  /** Key of storage's signed URLs; never handed out. */
  signing_secret: Type.String({ minLength: 32 }),
  limits: Limits,
})
export type TenantManifest = Static<typeof TenantManifest>
