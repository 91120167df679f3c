// The state of tenants' stores in a runtime: differences after crashes or changes by other programs.
import { Type, type Static } from 'typebox'
import { TenantId } from './ids.ts'

/**
 * Differences between a tenant's rows of objects and its stored files; each count is 0 where both agree (specification,
 * section 7, phantoms, and section 8, orphans).
 */
export const TenantStorageState = Type.Object({
  /** Requested objects whose file was missing, since the runtime's start. */
  phantoms: Type.Integer({ minimum: 0 }),
  /** Files without a row that the last sweep found and did not remove. */
  orphans: Type.Integer({ minimum: 0 }),
  /** Released files that the last sweep could not remove. */
  backlog: Type.Integer({ minimum: 0 }),
})
export type TenantStorageState = Static<typeof TenantStorageState>

/** State of the stores of tenants with a difference, by tenant ID. */
export const StorageState = Type.Object({ tenants: Type.Record(TenantId, TenantStorageState) })
export type StorageState = Static<typeof StorageState>
