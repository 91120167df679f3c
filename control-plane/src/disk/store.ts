// The store of the disk watch in the control database.
import type { DiskWatchStore } from './jobs.ts'
import { leaderRow, ledRow } from '../platform/leader-fence.ts'
import { type Desired, incrementGeneration, toConditions } from '../tenants/index.ts'
import type { Database } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'

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

/**
 * Creates the store of the disk watch, on the control database. Its writes throw LeadershipLost once another control
 * plane leads.
 */
export function createDiskWatchStore(database: Database, now: () => Date): DiskWatchStore {
  return {
    async watchedTenants(regionId) {
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

    // The tenant's `updated_at` does not change, because no request has changed the tenant.
    async reportDisk(tenantId, condition, epoch) {
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

    suspend: (id, generation, reason, epoch) =>
      ledWrite(database, epoch, [`tenant:${id}`], async (transaction) => {
        if ((await transaction.tenant.count({ where: { id, generation, desired: 'active' } })) === 0) return false
        await incrementGeneration(transaction, id, 'suspend', { desired: 'suspended', suspendReason: reason }, now())
        return true
      }),
  }
}
