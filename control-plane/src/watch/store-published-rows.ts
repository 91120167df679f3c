// The rows of the control database from which the entries of watches are made: one text of JSON for each tenant.
import { Prisma } from '../../../prisma/client/client.ts'
import type { Database } from '../platform/database.ts'
import type { Isolation } from '../stacks/index.ts'
import { secretsText } from '../tenants/index.ts'

/** The columns of a tenant that its published entry needs, and those of other tables under names of their own. */
export interface PublishedRow {
  id: string
  name: string
  region_id: string
  /** A check constraint limits this column to the models. */
  isolation: Isolation
  generation: number
  desired: string
  route_phase: string
  home_version: string | null
  rate_per_second: number | null
  rate_burst: number | null
  rate_unlimited: boolean
  suspend_reason: string | null
  payment_required: boolean
  archive_days: number | null
  service_passwords_due: boolean
  jwks: unknown
  plan_id: string
  plan_rate_per_second: number | null
  plan_rate_burst: number | null
  requests_per_month: number | null
  realtime_connections: number | null
  document_bytes: number | null
  file_bytes: number | null
  /** Name of the shared database of the home; null for a tenant that does not share. */
  home_database: string | null
  /** Time until which requests are rejected because of the spending limit, as ISO 8601. */
  rejects_until: string | null
  /** Number of the subnet of the tenant's own services. */
  subnet: number | null
  /** Host of the runtime of a single database. */
  runtime_host: string | null
  /** See `readSecretsText`. */
  secrets: string | null
}

/** The row of a tenant as a text, which needs a fraction of an object's memory, and has no secret in plain text. */
export interface PublishedText {
  id: string
  region_id: string
  /** JSON of a `PublishedRow`. */
  text: string
}

const batchSize = 1_000

/** Reads the rows of some tenants. */
export function readSome(database: Database, ids: readonly string[]): Promise<PublishedText[]> {
  return database.$queryRaw<PublishedText[]>`${selectRows(Prisma.sql`where t.id = any(${[...ids]})`)}`
}

/** Yields the rows of all tenants in batches, in the order of their IDs. */
export async function* readAll(database: Database): AsyncGenerator<PublishedText[]> {
  let after = ''
  for (;;) {
    const next = Prisma.sql`where t.id > ${after} order by t.id limit ${batchSize}`
    const rows = await database.$queryRaw<PublishedText[]>`${selectRows(next)}`
    yield rows
    after = rows.at(-1)?.id ?? ''
    if (rows.length < batchSize) return
  }
}

/** Returns the query. It reads the secrets of a batch of tenants together. */
function selectRows(which: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`
    with batch as materialized (select * from tenants t ${which}),
    own as (
      select s.tenant_id, ${secretsText} as secrets
      from tenant_secrets s where s.tenant_id = any(array(select id from batch)) group by s.tenant_id)
    select id, region_id, row_to_json(entries)::text as text from (
      select t.id, t.name, t.region_id, t.isolation, t.generation, t.desired, t.route_phase, t.home_version,
        t.rate_per_second, t.rate_burst, t.rate_unlimited, t.suspend_reason, t.payment_required, t.archive_days,
        t.service_passwords_due, t.jwks, t.plan_id, p.rate_per_second as plan_rate_per_second,
        p.rate_burst as plan_rate_burst, p.requests_per_month, p.realtime_connections, p.document_bytes, p.file_bytes,
        d.name as home_database, l.rejects_until, n.number as subnet, h.host_id as runtime_host, own.secrets
      from batch t
      join plans p on p.id = t.plan_id
      left join shared_databases d on d.id = t.shared_database_id
      left join spending_limits l on l.tenant_id = t.id
      left join subnets n on n.stack_id = t.id
      left join placements h on h.tenant_id = t.id and h.service = 'runtime'
      left join own on own.tenant_id = t.id) entries
    order by id`
}
