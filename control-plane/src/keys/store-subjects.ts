// Reads whose the objects of requests are, so that a limited key reaches only its own tenant or region.
import type { Database } from '../platform/database.ts'

/** Reads the tenant or the region of an object. */
export interface KeySubjects {
  /** Returns the region of a tenant; undefined if there is no such tenant. */
  regionOfTenant(id: string): Promise<string | undefined>
  /** Returns the tenant of an operation; undefined if there is no such operation. */
  tenantOfOperation(id: string): Promise<string | undefined>
  /** Returns the tenant of a backup; undefined if the control database does not know it. */
  tenantOfBackup(id: string): Promise<string | undefined>
  /** Returns the region of a rollout; undefined if there is no such rollout. */
  regionOfRollout(id: string): Promise<string | undefined>
}

/** Creates the reader of the objects' owners, on the control database. */
export function createKeySubjects(database: Database): KeySubjects {
  return {
    async regionOfTenant(id) {
      return (await database.tenant.findUnique({ where: { id }, select: { regionId: true } }))?.regionId
    },
    async tenantOfOperation(id) {
      return (await database.operation.findUnique({ where: { id }, select: { tenantId: true } }))?.tenantId
    },
    async tenantOfBackup(id) {
      return (await database.backup.findUnique({ where: { id }, select: { tenantId: true } }))?.tenantId
    },
    async regionOfRollout(id) {
      return (await database.rollout.findUnique({ where: { id }, select: { regionId: true } }))?.regionId
    },
  }
}
