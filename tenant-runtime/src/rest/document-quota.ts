// The plan's quota of documents (specification, section 8), without a counter that every write would wait for: the size of
// the tables is measured regularly, and later writes are added to it.
import { sql, type Row, type Statement } from '../database/statement.ts'
import { RuntimeError } from '../errors.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { documentTables, reservedCollections } from './registry/system-collections.ts'
import { identifier } from './sql/names.ts'

/** The bytes of a record in addition to its values: its header and its entries in indexes. */
const recordOverhead = 64

/**
 * The minimum number of accepted bytes before a measurement. The bytes of a body differ from those in the table. So at most
 * half of the remaining quota is used between two measurements, and tables that grow by up to twice of the sent bytes
 * exceed the quota by this much at most.
 */
const minStepBytes = 64 * 1024

/** The size of a write. */
export interface Writing {
  /** The bytes of the body. */
  bytes: number
  records: number
}

interface QuotaPace {
  /** The milliseconds after which the size is measured again while the tenant writes. */
  maxAge: number
  /** The milliseconds between two measurements for a tenant that has used up its quota and has changed nothing. */
  retryDelay: number
}

const defaultQuotaPace: QuotaPace = { maxAge: 5_000, retryDelay: 1_000 }

interface DocumentUsage {
  /** The bytes at the last measurement; undefined before the first. */
  used: number | undefined
  checkedAt: number
  /** The duration of the last measurement in milliseconds. */
  duration: number
  /**
   * The bytes that were accepted since the last measurement began, including writes in progress at that time; and the bytes
   * of all writes in progress.
   */
  since: number
  writing: number
  /** Whether records were written or deleted since the last measurement began. */
  hasChanged: boolean
  polling: Promise<number> | undefined
}

export class DocumentQuota {
  readonly #now: () => number
  readonly #pace: QuotaPace
  readonly #usages = new Map<string, DocumentUsage>()

  /**
   * Creates the quota.
   * @param now milliseconds
   */
  constructor(now: () => number, pace: QuotaPace = defaultQuotaPace) {
    this.#now = now
    this.#pace = pace
  }

  /**
   * Does the work if the quota allows it. Its bytes count at once.
   * @param times the number of records that the body was written to
   * @throws RuntimeError QUOTA_EXCEEDED with `limit` and `used`
   */
  async write<T>(
    tenant: Tenant,
    { bytes, records }: Writing,
    work: () => Promise<T>,
    times: (done: T) => number = () => 1,
  ): Promise<T> {
    const limit = tenant.limits.document_bytes
    if (limit === null) return work()
    const usage = this.#usageOf(tenant.id)
    const wanted = bytes + records * recordOverhead
    await this.#admit(tenant, usage, limit, wanted)
    try {
      const done = await work()
      usage.since += wanted * Math.max(0, times(done) - 1)
      return done
    } finally {
      usage.writing -= wanted
      usage.hasChanged = true
    }
  }

  /** Notes that records were deleted, so that the next measurement may find less. */
  freed(tenantId: string): void {
    const usage = this.#usages.get(tenantId)
    if (usage !== undefined) usage.hasChanged = true
  }

  /** Returns the bytes of the tenant's documents, as the quota counts them. */
  async used(tenant: Tenant): Promise<number> {
    return this.#serviceContext(tenant, this.#usageOf(tenant.id))
  }

  evict(tenantId: string): void {
    this.#usages.delete(tenantId)
  }

  /** Checks and counts a write without a pause in between, because several writes may wait for the same measurement. */
  async #admit(tenant: Tenant, usage: DocumentUsage, limit: number, wanted: number): Promise<void> {
    if (usage.used === undefined) await this.#serviceContext(tenant, usage)
    const remaining = () => limit - (usage.used ?? 0)
    const accepted = () => usage.since + wanted
    const age = this.#now() - usage.checkedAt
    if (accepted() > Math.max(remaining() / 2, minStepBytes) || accepted() > remaining()) {
      // A client that repeats a rejected request changes nothing. Only SQL could have deleted records in the meantime.
      if (usage.hasChanged || age >= Math.max(this.#pace.retryDelay, 20 * usage.duration))
        await this.#serviceContext(tenant, usage)
      if (accepted() > remaining()) {
        const used = (usage.used ?? 0) + usage.since
        throw new RuntimeError(
          'QUOTA_EXCEEDED',
          `The tenant's documents use ${used} of ${limit} bytes. The quota does not allow this write.`,
          { extra: { limit, used } },
        )
      }
    } else if (age >= this.#pace.maxAge) {
      // No request waits for this measurement. A failure repeats where the result is needed.
      this.#serviceContext(tenant, usage).catch(() => undefined)
    }
    usage.since += wanted
    usage.writing += wanted
  }

  #usageOf(tenantId: string): DocumentUsage {
    const known = this.#usages.get(tenantId)
    if (known !== undefined) return known
    const usage: DocumentUsage = {
      used: undefined,
      checkedAt: 0,
      duration: 0,
      since: 0,
      writing: 0,
      hasChanged: false,
      polling: undefined,
    }
    this.#usages.set(tenantId, usage)
    return usage
  }

  /** Measures the size. Callers during a measurement wait for it. */
  #serviceContext(tenant: Tenant, usage: DocumentUsage): Promise<number> {
    usage.polling ??= this.#measure(tenant, usage).finally(() => (usage.polling = undefined))
    return usage.polling
  }

  async #measure(tenant: Tenant, usage: DocumentUsage): Promise<number> {
    const began = this.#now()
    const [before, writing] = [usage.since, usage.writing]
    usage.hasChanged = false
    const used = await measureDocuments(tenant)
    usage.used = used
    usage.since += writing - before
    usage.checkedAt = this.#now()
    usage.duration = usage.checkedAt - began
    return used
  }
}

const serviceContext: RlsContext = { role: 'service', reason: 'quota' }

interface TableSize {
  name: string
  /** The number of pages of the heap. */
  pages: number
  /** The bytes of the table, including values outside of the heap. */
  bytes: number
  indexBytes: number
  columns: string[]
  /** Whether the table is a collection, of which the service sees every record. */
  isCollection: boolean
}

/** A name that is reserved for the interface. A table with this name is the tenant's. */
const pathOnly = 'rpc'

/** Selects every table of the home that is not the service's own, and the queue of functions' deliveries. */
const sizes = sql(
  `select c.relname as name, pg_relation_size(c.oid) / current_setting('block_size')::bigint as pages,
     pg_table_size(c.oid) as bytes, pg_indexes_size(c.oid) as index_bytes,
     (select json_agg(attname) from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped) as columns,
     exists (select from applied_schemas a where a.name = c.relname) as is_collection
   from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'm')
     and (not $1::jsonb ? c.relname::text or $2::jsonb ? c.relname::text and pg_relation_size(c.oid) > 0)`,
  JSON.stringify([...reservedCollections].filter((name) => name !== pathOnly)),
  JSON.stringify([...documentTables]),
)

function tableSize(row: Row): TableSize {
  const columns: unknown = row['columns']
  return {
    name: String(row['name']),
    pages: Number(row['pages']),
    bytes: Number(row['bytes']),
    indexBytes: Number(row['index_bytes']),
    columns: Array.isArray(columns) ? columns.map(String) : [],
    isCollection: row['is_collection'] === true,
  }
}

/** The part of the quota from which on the space of deleted records is measured. */
const minSampledUse = 0.8
/** The maximum number of sampled tables. Others count with their whole size. */
const maxSampled = 20
const minSampledBytes = 64 * 1024
const sampledPages = 400

async function measureDocuments({ database, limits }: Tenant): Promise<number> {
  const { rows } = await database.query(serviceContext, sizes.text, ...sizes.values)
  const tables = rows.map(tableSize)
  const whole = tables.reduce((sum, { bytes, indexBytes }) => sum + bytes + indexBytes, 0)
  if (limits.document_bytes === null || whole <= limits.document_bytes * minSampledUse) return whole
  // Postgres reuses the space of deleted records: the files do not shrink, but the tenant can write.
  const sampled = tables
    .filter(({ isCollection, bytes }) => isCollection && bytes >= minSampledBytes)
    .sort((one, other) => other.bytes - one.bytes)
    .slice(0, maxSampled)
  if (sampled.length === 0) return whole
  const found = await database.run(serviceContext, ...sampled.map(sampleStatement))
  return sampled.reduce((sum, table, n) => sum - emptyBytes(table, found[n]?.rows[0]), whole)
}

/** Samples some of the pages, always the same ones: counts records, and their bytes inside and outside of pages. */
function sampleStatement({ name, pages, columns }: TableSize): Statement {
  const sum = (ofColumn: (size: string) => string) =>
    columns.map((column) => ofColumn(`coalesce(pg_column_size(${identifier(column)}), 0)`)).join(' + ')
  const inPage = sum((size) => `case when ${size} > ${maxInPage} then ${pointer} else ${size} end`)
  const outOfLine = sum((size) => `case when ${size} > ${maxInPage} then ${size} + ${chunkOverhead} else 0 end`)
  return {
    text: `select count(*) as records, coalesce(sum(${inPage}), 0) as in_page, coalesce(sum(${outOfLine}), 0) as out_of_line
           from ${identifier(name)} tablesample system (${partOf(pages) * 100}) repeatable (1)`,
    values: [],
    prepare: 'once',
  }
}

function partOf(pages: number): number {
  return Math.min(1, sampledPages / Math.max(1, pages))
}

/** Postgres' layout of records: a longer value is stored outside of its record, in chunks of a quarter of a page. */
const maxInPage = 2_000
const pointer = 18
const chunkOverhead = 40
const pageBytes = 8_192
const roomInPage = 8_168
/** The bytes of a record's header, line pointer and alignment. */
const heapOverhead = 32
/** The factor for long values: the header of each chunk, and the index that finds them. */
const chunkFactor = 1.04

function emptyBytes({ pages, bytes, indexBytes }: TableSize, row: Row | undefined): number {
  const [records, inPage, outOfLine] = ['records', 'in_page', 'out_of_line'].map((name) => Number(row?.[name] ?? 0))
  const live = packedBytes(records ?? 0, inPage ?? 0, outOfLine ?? 0) / partOf(pages)
  const empty = Math.max(0, 1 - live / bytes)
  return Math.round(empty * (bytes + indexBytes))
}

/** Returns the bytes of records without any deletions between them. */
function packedBytes(records: number, inPage: number, outOfLine: number): number {
  if (records === 0) return 0
  const perPage = Math.max(1, Math.floor(roomInPage / (inPage / records + heapOverhead)))
  return (records / perPage) * pageBytes + outOfLine * chunkFactor
}
