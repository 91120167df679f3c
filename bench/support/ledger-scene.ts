// A ledger as large as that of an installation with many tenants after a year, filled in Postgres from packed months of a
// few kinds of tenants.
import { hourMilliseconds } from '@tenantry/contract'
import { openDatabase, type Database } from '#control-plane/platform/database.ts'
import { nameInstallation } from '#control-plane/platform/installation.ts'
import { migrate, readMigrations } from '#control-plane/platform/migrations.ts'
import {
  amountsText,
  chainOf,
  joinAmounts,
  noAmounts,
  type Amounts,
  type HourBucket,
  addToCell,
  packCells,
  type Cells,
  appendHours,
} from '#control-plane/usage/index.ts'
import { query, startPostgres, type TestPostgres } from '#test/support/postgres.ts'

export interface LedgerScene {
  postgres: TestPostgres
  database: Database
  /** The last month. All of its hours but the last are closed. */
  month: Date
  tenantIds: string[]
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  close(): Promise<void>
}

const firstMonth = new Date('2026-01-01T00:00:00Z')
const months = 12
/** Variants of each kind, so that not all rows are alike. */
const variants = 20

/**
 * A tenth of the tenants is busy in every hour and four tenths in eight hours of a day. The rest only stores, with a few
 * requests a day.
 */
const kinds = [
  { share: 1, busy: () => true, requests: 900 },
  { share: 4, busy: (hour: number) => hour % 24 >= 9 && hour % 24 < 17, requests: 60 },
  { share: 5, busy: (hour: number) => hour % 24 === 12, requests: 3 },
]

export async function openLedgerScene(tenants: number, report: (line: string) => void): Promise<LedgerScene> {
  const postgres = await startPostgres({ fsync: 'on', shared_buffers: '512MB', max_wal_size: '8GB' })
  const url = postgres.url('control')
  await migrate(url, await readMigrations())
  const database = openDatabase(url)
  const sql = (text: string, values?: unknown[]) => query(url, text, values)
  await nameInstallation(database, 'c0ffee00-0000-4000-8000-000000000000')
  await sql("insert into regions (id, engine, domain) values ('local', 'process', 'localhost')")
  await sql(
    `insert into tenants (id, name, plan_id, region_id, isolation, status, created_at, updated_at)
     select 't_' || substr(md5(n::text), 1, 20), 'n-' || n, case when n % 10 = 0 then 'Pro' else 'Free' end,
       'local', 'schema-per-tenant', 'ready', $2, $2
     from generate_series(1, $1::int) n`,
    [tenants, firstMonth],
  )
  await sql('create unlogged table kinds (number int, month timestamptz, hours bytea, totals text, breakdown bytea)')
  const month = monthAt(months - 1)
  const lastBuckets: Bucket[][] = []
  for (let number = 0; number < months; number++) {
    const open = number === months - 1 ? 1 : 0
    for (let kind = 0; kind < 10 * variants; kind++) {
      const { buckets, hours, totals, cells } = packedMonth(monthAt(number), kind, open)
      await sql('insert into kinds values ($1, $2, $3, $4, $5)', [
        kind,
        monthAt(number),
        hours,
        amountsText(totals),
        packCells(cells),
      ])
      if (open === 1) lastBuckets.push(buckets)
    }
  }
  await sql(
    `create unlogged table tenant_kinds as select id, row_number() over (order by id)::int % ${10 * variants} as kind from tenants`,
  )
  await sql('create unlogged table links (id text, hash text)')
  await linkLastMonth(sql, lastBuckets)
  for (let number = 0; number < months; number++) {
    await sql(
      `insert into usage_months (month, tenant_id, hours, totals, breakdown, previous, hash, closed_at)
       select k.month, p.id, k.hours, k.totals, k.breakdown, repeat(md5(p.id), 2),
         coalesce(l.hash, repeat(md5(p.id || k.month), 2)), case when k.month < $2 then k.month + interval '1 month' end
       from tenant_kinds p join kinds k on k.number = p.kind and k.month = $1 left join links l on l.id = p.id and k.month = $2`,
      [monthAt(number), month],
    )
    report(`filled ${number + 1} of ${months} months of ${tenants} tenants`)
  }
  const lastHour = new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1) - hourMilliseconds)
  await sql(
    `insert into usage_tenants (tenant_id, hash, last_hour, closed_until, corrections_hash)
     select p.id, m.hash, $1::timestamptz, $2, repeat('0', 64)
     from tenant_kinds p join usage_months m on m.tenant_id = p.id and m.month = $2`,
    [new Date(lastHour.getTime() - hourMilliseconds), month],
  )
  // The last hour as two gateways and the homes have pushed it: fourteen counters a tenant.
  await sql(
    `insert into usage_counters (source, boot, tenant_id, hour, meter, "group", method, status_class, bucket, value)
     select s.source, '00000000-0000-4000-8000-000000000000', id, $1, m.meter, m.grp, m.method, m.status, m.bucket, 1 + n % 7
     from (select id, row_number() over () as n from tenant_kinds) p
     cross join (values ('gateway-0'), ('gateway-1')) s(source)
     cross join (values ('requests', 'rest', 'GET', '2xx', ''), ('requests', 'storage', 'POST', '2xx', ''),
       ('egress_bytes', 'rest', '', '', ''), ('latency', 'rest', '', '', '5'), ('latency', 'storage', '', '', '20'),
       ('connections_peak', '', '', '', '')) m(meter, grp, method, status, bucket)`,
    [lastHour],
  )
  await sql(
    `insert into usage_counters (source, boot, tenant_id, hour, meter, "group", method, status_class, bucket, value)
     select 'home:' || id, '00000000-0000-4000-8000-000000000000', id, $1, meter, '', '', '', '', 3600 * 10000000::bigint
     from tenant_kinds cross join (values ('document_byte_seconds'), ('file_byte_seconds')) m(meter)`,
    [lastHour],
  )
  await sql(
    `insert into usage_sources (source, tenant_id, complete_until, first_seen_at, last_seen_at)
     select 'home:' || id, id, $1::timestamptz, $1, $1 from tenant_kinds
     union all select 'gateway-' || n, null, $1, $1, $1 from generate_series(0, 1) n`,
    [new Date(lastHour.getTime() + hourMilliseconds)],
  )
  await sql('drop table kinds, tenant_kinds, links')
  await sql('vacuum analyze')
  await sql('checkpoint')
  const rows = await sql('select id from tenants order by id')
  return {
    postgres,
    database,
    month,
    sql,
    tenantIds: rows.map(({ id }) => String(id)),
    async close() {
      await database.$disconnect()
      await postgres.stop()
    },
  }
}

type Bucket = Pick<HourBucket, 'hour' | 'amounts'>

/**
 * Computes each tenant's hash after its hours of the last month, because invoices are made only of months that fit the
 * chain.
 */
async function linkLastMonth(sql: LedgerScene['sql'], kinds: readonly (readonly Bucket[])[]): Promise<void> {
  const tenants = await sql('select id, kind, repeat(md5(id), 2) as previous from tenant_kinds')
  const hashes = tenants.map(({ id, kind, previous }) => {
    const hours = (kinds[Number(kind)] ?? []).map((bucket) => ({ ...bucket, tenantId: String(id) }))
    return chainOf(String(previous), hours)
  })
  await sql('insert into links select * from unnest($1::text[], $2::text[])', [tenants.map(({ id }) => id), hashes])
}

function monthAt(number: number): Date {
  return new Date(Date.UTC(firstMonth.getUTCFullYear(), firstMonth.getUTCMonth() + number, 1))
}

/**
 * Packs a month.
 * @param open the number of hours at the end that are not closed yet
 */
function packedMonth(
  month: Date,
  kind: number,
  open: number,
): { buckets: Bucket[]; hours: Uint8Array; totals: Amounts; cells: Cells } {
  const hours =
    (Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1) - month.getTime()) / hourMilliseconds - open
  const random = generator(kind * 4099 + month.getUTCMonth())
  const { busy, requests } = kindOf(kind % 10)
  let stored = BigInt(1_000_000 + Math.floor(random() * 400_000_000))
  const buckets = Array.from({ length: hours }, (_, index) => {
    const amounts = noAmounts()
    if (busy(index)) {
      const count = 1 + Math.floor(random() * 2 * requests)
      amounts.requests = BigInt(count)
      amounts.egressBytes = BigInt(count * Math.floor(500 + random() * 4000))
      amounts.connectionsPeak = BigInt(Math.floor(random() * 4))
      amounts.connectionMilliseconds = amounts.connectionsPeak * BigInt(Math.floor(random() * 3_600_000))
      amounts.functionInvocations = BigInt(Math.floor(random() * count * 0.1))
      amounts.functionMilliseconds = amounts.functionInvocations * 12n
      stored += BigInt(Math.floor(random() * 100_000))
    }
    amounts.documentByteSeconds = stored * 3600n
    amounts.fileByteSeconds = stored * 7200n
    return { hour: new Date(month.getTime() + index * hourMilliseconds), amounts }
  })
  const cells: Cells = new Map()
  for (const group of ['rest', 'storage', 'functions']) {
    for (const method of ['GET', 'POST', 'PATCH']) {
      for (const statusClass of ['2xx', '4xx'])
        addToCell(
          cells,
          { meter: 'requests', group, method, statusClass, bucket: '' },
          BigInt(Math.floor(random() * 10_000)),
        )
    }
    for (const bucket of ['1', '2', '5', '10', '20', '50', '100', 'inf']) {
      addToCell(
        cells,
        { meter: 'latency', group, method: '', statusClass: '', bucket },
        BigInt(Math.floor(random() * 10_000)),
      )
    }
    addToCell(
      cells,
      { meter: 'egress_bytes', group, method: '', statusClass: '', bucket: '' },
      BigInt(Math.floor(random() * 10 ** 8)),
    )
  }
  return {
    buckets,
    hours: appendHours(new Uint8Array(), month, buckets),
    totals: buckets.map(({ amounts }) => amounts).reduce(joinAmounts, noAmounts()),
    cells,
  }
}

function kindOf(tenth: number): (typeof kinds)[number] {
  let from = 0
  for (const kind of kinds) {
    from += kind.share
    if (tenth < from) return kind
  }
  throw new Error('The shares of the kinds do not sum up to ten')
}

/** Creates a generator of the same numbers in each run (mulberry32). */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
