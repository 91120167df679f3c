// One tenant as the runtime serves it: its manifest, and the only access to its data.
import type { Limits, TenantManifest } from '@tenantry/contract'
import type { ScopedDatabase } from '../database/scoped-database.ts'

export interface Tenant {
  readonly id: string
  readonly name: string
  readonly generation: number
  readonly limits: Limits
  /** The reason for which gateways reject all requests of the tenant; undefined while it is served. */
  readonly unserved?: TenantManifest['unserved']
  readonly database: ScopedDatabase
  /** The manifest with keys, secrets and logins: only for `tenancy/`, `keys/`, `console/`, `storage/signing` and `sql/`. */
  readonly manifest: TenantManifest
}
