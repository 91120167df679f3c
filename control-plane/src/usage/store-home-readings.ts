// Stores the last readings of tenants' homes in the control database.
import type { DeletedPeriod, HomeState } from './home-reading.ts'
import type { Isolation } from '../stacks/index.ts'
import { Prisma } from '../../../prisma/client/client.ts'
import type { Database } from '../platform/database.ts'

/** A tenant with the state of its home at the last reading. */
export interface HomeToRead {
  tenantId: string
  regionId: string
  isolation: Isolation
  /** Whether its runtime is expected to respond. */
  isRunning: boolean
  /** The end of the tenant's usage. */
  endedAt: Date | undefined
  /** The last deletion that was reverted; undefined if there was none. */
  away: DeletedPeriod | undefined
  state: HomeState | undefined
}

interface Row {
  tenant_id: string
  region_id: string | null
  isolation: Isolation | null
  running: boolean | null
  ended_at: Date | null
  last_deleted_at: Date | null
  undeleted_at: Date | null
  books: string | null
  read_at: Date | null
  document_bytes: bigint | null
  file_bytes: bigint | null
  document_byte_seconds: bigint | null
  file_byte_seconds: bigint | null
}

/** Selects the homes that may be due. */
interface DueHomes {
  /** Homes whose last reading is earlier are due. */
  readBefore: Date
  /** Homes of these tenants are returned, too, if their last reading is earlier than this time. */
  active: { tenantIds: readonly string[]; readBefore: Date }
}

/** The last reading of each tenant's home. */
export type HomeReadingStore = ReturnType<typeof createHomeReadingStore>

/** Creates the store of the last reading of each tenant's home, on the control database. */
export function createHomeReadingStore(database: Database) {
  /** Returns the assigned tenants that have, or had, a home. Deleted tenants are included while they have a state. */
  const homes = async (which: Prisma.Sql): Promise<HomeToRead[]> => {
    const rows = await database.$queryRaw<Row[]>`
      select tenant_id, t.region_id, t.isolation, t.desired = 'active' and t.status in ('ready', 'failed') as running,
        case when t.id is null then coalesce(
            (select max(created_at) from operations o where o.tenant_id = r.tenant_id and o.kind = 'delete'), r.read_at)
          when t.desired = 'deleted' then t.delete_requested_at end as ended_at,
        t.last_deleted_at, t.undeleted_at,
        r.books::text, r.read_at, r.document_bytes, r.file_bytes, r.document_byte_seconds, r.file_byte_seconds
      from home_readings r full join (
        select *, id as tenant_id from tenants
        where desired not in ('warm', 'restoring') and (home_version is not null or desired = 'deleted')
      ) t using (tenant_id)
      where (r.tenant_id is not null or t.desired <> 'deleted')
        and (${which})
      order by r.read_at nulls first`
    return rows.map((row) => ({
      tenantId: row.tenant_id,
      regionId: row.region_id ?? '',
      isolation: row.isolation ?? 'schema-per-tenant',
      isRunning: row.running === true,
      endedAt: row.ended_at ?? undefined,
      away: toAway(row),
      state: toState(row),
    }))
  }

  return {
    /** Returns a tenant, or none. */
    home: (tenantId: string) => homes(Prisma.sql`tenant_id = ${tenantId}`),

    /** Returns the tenants whose homes may be due: among many, few are. */
    dueHomes: ({ readBefore, active }: DueHomes) =>
      homes(Prisma.sql`
        r.read_at is null or t.id is null or t.desired = 'deleted' or r.read_at < ${readBefore}
          or (r.read_at <= ${active.readBefore} and tenant_id = any(${[...active.tenantIds]}))`),

    /** Replaces the state of the home's last reading. */
    async save({ tenantId, ...state }: HomeState): Promise<void> {
      await database.homeReading.upsert({ where: { tenantId }, create: { tenantId, ...state }, update: state })
    },

    /** Deletes the state of a deleted tenant's home. */
    async evict(tenantId: string): Promise<void> {
      await database.homeReading.deleteMany({ where: { tenantId } })
    },
  }
}

function toAway({ last_deleted_at: deletedAt, undeleted_at: until }: Row): DeletedPeriod | undefined {
  return until === null ? undefined : { from: deletedAt ?? until, until }
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
