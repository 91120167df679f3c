// The store of the disk watch in the control database.
import { leaderRow, ledRow } from '../platform/leader-fence.ts'
import { type Desired, incrementGeneration, toConditions, type Condition } from '../tenants/index.ts'
import type { Database } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'
import type { WatchedTenant } from './disk-watch-plan.ts'

interface Row {
  id: string
  generation: number
  desired: string
  conditions: unknown
  document_bytes: bigint | null
  file_bytes: bigint | null
  is_copied: boolean
  resumed_at: Date | null
}

/** The store of the disk watch. Only the leader may write: the writes throw `LeadershipLost` otherwise. */
export type DiskWatchStore = ReturnType<typeof createDiskWatchStore>

/**
 * Creates the store of the disk watch, on the control database. Its writes throw LeadershipLost once another control
 * plane leads.
 */
export function createDiskWatchStore(database: Database, now: () => Date) {
  return {
    /** Returns the region's tenants with volumes of their own, in the order of their IDs. */
    async watchedTenants(regionId: string): Promise<WatchedTenant[]> {
      const rows = await database.$queryRaw<Row[]>`
        select id, generation, desired, conditions, document_bytes, file_bytes,
          exists (
            select from operations
            where tenant_id = tenants.id and kind in ('backup', 'restore', 'verify') and state in ('pending', 'running')
          ) as is_copied,
          (select max(created_at) from operations where tenant_id = tenants.id and kind = 'resume') as resumed_at
        from tenants join (select id as plan_id, document_bytes, file_bytes from plans) as plans using (plan_id)
        where region_id = ${regionId} and isolation <> 'schema-per-tenant' and desired in ('active', 'suspended', 'paused')
        order by id`
      const number = (value: bigint | null) => (value === null ? null : Number(value))
      return rows.map((row) => ({
        id: row.id,
        generation: row.generation,
        // A check constraint limits it to its values.
        desired: row.desired as Desired,
        plan: { documentBytes: number(row.document_bytes), fileBytes: number(row.file_bytes) },
        reported: toConditions(row.conditions).find(({ type }) => type === 'Disk'),
        isCopied: row.is_copied,
        resumedAt: row.resumed_at ?? undefined,
      }))
    },

    /** Replaces the condition of the disk. The tenant's other conditions stay. */
    async reportDisk(tenantId: string, condition: Condition | undefined, epoch: bigint): Promise<void> {
      // The tenant's `updated_at` does not change, because no request has changed the tenant.
      const reported = JSON.stringify(condition === undefined ? [] : [condition])
      const rows = await database.$queryRaw<{ leads: number }[]>`
        with leader as (${leaderRow(epoch)}),
        updated as (
          update tenants set conditions = ${reported}::jsonb || coalesce(
            (select jsonb_agg(one order by position)
              from jsonb_array_elements(conditions) with ordinality as given (one, position) where one ->> 'type' <> 'Disk'),
            '[]')
          where id = ${tenantId} and exists (select from leader))
        select count(*)::int as leads from leader`
      ledRow(rows)
    },

    /**
     * Suspends a tenant.
     * @returns false when a request has changed the tenant since that generation
     */
    suspend: (id: string, generation: number, reason: string, epoch: bigint): Promise<boolean> =>
      ledWrite(database, epoch, [`tenant:${id}`], async (transaction) => {
        if ((await transaction.tenant.count({ where: { id, generation, desired: 'active' } })) === 0) return false
        await incrementGeneration(transaction, id, 'suspend', { desired: 'suspended', suspendReason: reason }, now())
        return true
      }),
  }
}
