// Stores the last readings of tenants' homes in the control database.
import type { HomeReadingStore } from './jobs-home-reader.ts'
import type { HomeState } from './home-reading.ts'
import type { Isolation } from '../stacks/index.ts'
import type { Database } from '../platform/database.ts'

interface Row {
  tenant_id: string
  region_id: string | null
  isolation: Isolation | null
  running: boolean | null
  ended_at: Date | null
  books: string | null
  read_at: Date | null
  document_bytes: bigint | null
  file_bytes: bigint | null
  document_byte_seconds: bigint | null
  file_byte_seconds: bigint | null
}

/** Creates the store of the last reading of each tenant's home, on the control database. */
export function createHomeReadingStore(database: Database): HomeReadingStore {
  return {
    async homes(tenantId) {
      const rows = await database.$queryRaw<Row[]>`
        select tenant_id, t.region_id, t.isolation, t.desired = 'active' and t.status in ('ready', 'failed') as running,
          case when t.id is null then coalesce(
              (select max(created_at) from operations o where o.tenant_id = r.tenant_id and o.kind = 'delete'), r.read_at)
            when t.desired = 'deleted' then t.delete_requested_at end as ended_at,
          r.books::text, r.read_at, r.document_bytes, r.file_bytes, r.document_byte_seconds, r.file_byte_seconds
        from home_readings r full join (
          select *, id as tenant_id from tenants
          where desired not in ('warm', 'restoring') and (home_version is not null or desired = 'deleted')
        ) t using (tenant_id)
        where (r.tenant_id is not null or t.desired <> 'deleted')
          and (${tenantId ?? null}::text is null or tenant_id = ${tenantId ?? null}::text)
        order by r.read_at nulls first`
      return rows.map((row) => ({
        tenantId: row.tenant_id,
        regionId: row.region_id ?? '',
        isolation: row.isolation ?? 'schema-per-tenant',
        isRunning: row.running === true,
        endedAt: row.ended_at ?? undefined,
        state: toState(row),
      }))
    },

    async save({ tenantId, ...state }) {
      await database.homeReading.upsert({ where: { tenantId }, create: { tenantId, ...state }, update: state })
    },

    async evict(tenantId) {
      await database.homeReading.deleteMany({ where: { tenantId } })
    },
  }
}

function toState(row: Row): HomeState | undefined {
  const { books, read_at: readAt } = row
  if (books === null || readAt === null) return undefined
  return {
    tenantId: row.tenant_id,
    books,
    readAt,
    documentBytes: row.document_bytes ?? 0n,
    fileBytes: row.file_bytes ?? 0n,
    documentByteSeconds: row.document_byte_seconds ?? 0n,
    fileByteSeconds: row.file_byte_seconds ?? 0n,
  }
}
