// One tenant as the runtime serves it: its manifest, and the only access to its data.
import type { Limits, TenantManifest } from '@tenantry/contract'
import type { ScopedDatabase } from '../database/scoped-database.ts'

export interface Tenant {
  readonly id: string
  readonly name: string
  readonly generation: number
  readonly limits: Limits
  readonly database: ScopedDatabase
  /** The manifest with keys, token secrets and the signing secret: only for `tenancy/` and `storage/signing`. */
  readonly manifest: TenantManifest
}
