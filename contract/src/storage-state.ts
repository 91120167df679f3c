// What a runtime knows of its tenants' stores: what crashes, or hands other than ours, have left there.
import { Type, type Static } from 'typebox'
import { TenantId } from './ids.ts'

/**
 * Differences between a tenant's rows of objects and its stored files; each count is 0 where both agree (specification,
 * section 7, phantoms, and section 8, orphans).
 */
export const TenantStorageState = Type.Object({
  /** Objects that were asked for and had lost their file, since the runtime's start. */
  phantoms: Type.Integer({ minimum: 0 }),
  /** Files without a row that the last sweep found and left. */
  orphans: Type.Integer({ minimum: 0 }),
  /** Files that were let go of and that the last sweep could not remove. */
  backlog: Type.Integer({ minimum: 0 }),
})
export type TenantStorageState = Static<typeof TenantStorageState>

/** State of the stores of those tenants of which there is something to report, by tenant id. */
export const StorageState = Type.Object({ tenants: Type.Record(TenantId, TenantStorageState) })
export type StorageState = Static<typeof StorageState>
