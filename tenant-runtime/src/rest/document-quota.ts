// The plan's quota of documents (specification, section 8), kept without a counter that every write would wait for: what the
// tables take is looked at now and then, and what was written since is added.
import { sql, type Row, type Statement } from '../database/statement.ts'
import { RuntimeError } from '../errors.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { countedAsDocuments, reservedCollections } from './registry/system-collections.ts'
import { identifier } from './sql/names.ts'

/** Bytes that a record takes beside its values: its header, and its entries in indexes. */
const recordOverhead = 64

/**
 * Bytes of a body are not those of the table: what is left is given out by halves, with a look after each, so that tables
 * which grow by up to twice of what was sent stay within the quota but for this much.
 */
const smallStep = 64 * 1024

/** What a write brings. */
export interface Writing {
  /** Of the body. */
  bytes: number
  records: number
}

interface QuotaPace {
  /** Milliseconds after which what is known is looked at again while the tenant writes. */
  fresh: number
  /** Between two looks for a tenant who has no room left and has changed nothing. */
  again: number
}

const defaultQuotaPace: QuotaPace = { fresh: 5_000, again: 1_000 }

interface Book {
  /** Bytes, at the last look; undefined before the first. */
  used: number | undefined
  checkedAt: number
  /** Of the last look, in milliseconds. */
  duration: number
  /** Bytes that were accepted since it began, and of those that were being written then. */
  since: number
  writing: number
  /** Something has been written or deleted since. */
  hasChanged: boolean
  polling: Promise<number> | undefined
}

export class DocumentQuota {
  readonly #now: () => number
  readonly #pace: QuotaPace
  readonly #books = new Map<string, Book>()

  /** @param now in milliseconds */
  constructor(now: () => number, pace: QuotaPace = defaultQuotaPace) {
    this.#now = now
    this.#pace = pace
  }

  /**
   * Does the work if there is room for it. What it has written counts at once.
   * @param times how often the body was written: to so many records
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
    const book = this.#postingOf(tenant.id)
    const wanted = bytes + records * recordOverhead
    await this.#admit(tenant, book, limit, wanted)
    try {
      const done = await work()
      book.since += wanted * Math.max(0, times(done) - 1)
      return done
    } finally {
      book.writing -= wanted
      book.hasChanged = true
    }
  }

  /** There may be room again. */
  freed(tenantId: string): void {
    const book = this.#books.get(tenantId)
    if (book !== undefined) book.hasChanged = true
  }

  /** Bytes that the tenant's documents take, as the quota has it. */
  async used(tenant: Tenant): Promise<number> {
    return this.#poll(tenant, this.#postingOf(tenant.id))
  }

  evict(tenantId: string): void {
    this.#books.delete(tenantId)
  }

  /** Checked and booked in one go: many may wait for the same look. */
  async #admit(tenant: Tenant, book: Book, limit: number, wanted: number): Promise<void> {
    if (book.used === undefined) await this.#poll(tenant, book)
    const left = () => limit - (book.used ?? 0)
    const accepted = () => book.since + wanted
    const age = this.#now() - book.checkedAt
    if (accepted() > Math.max(left() / 2, smallStep) || accepted() > left()) {
      // Whoever is refused and asks again changes nothing by it; only SQL could have.
      if (book.hasChanged || age >= Math.max(this.#pace.again, 20 * book.duration)) await this.#poll(tenant, book)
      if (accepted() > left()) {
        const used = (book.used ?? 0) + book.since
        throw new RuntimeError(
          'QUOTA_EXCEEDED',
          `the tenant's documents take ${used} of ${limit} bytes, and there is no room for this`,
          { extra: { limit, used } },
        )
      }
    } else if (age >= this.#pace.fresh) {
      // Nobody waits for it; what went wrong is seen by whoever needs to know.
      this.#poll(tenant, book).catch(() => undefined)
    }
    book.since += wanted
    book.writing += wanted
  }

  #postingOf(tenantId: string): Book {
    const known = this.#books.get(tenantId)
    if (known !== undefined) return known
    const book: Book = {
      used: undefined,
      checkedAt: 0,
      duration: 0,
      since: 0,
      writing: 0,
      hasChanged: false,
      polling: undefined,
    }
    this.#books.set(tenantId, book)
    return book
  }

  /** One look at a time; whoever needs one meanwhile waits for it. */
  #poll(tenant: Tenant, book: Book): Promise<number> {
    book.polling ??= this.#measure(tenant, book).finally(() => (book.polling = undefined))
    return book.polling
  }

  async #measure(tenant: Tenant, book: Book): Promise<number> {
    const began = this.#now()
    const [before, writing] = [book.since, book.writing]
    book.hasChanged = false
    const used = await measureDocuments(tenant)
    book.used = used
    book.since += writing - before
    book.checkedAt = this.#now()
    book.duration = book.checkedAt - began
    return used
  }
}

const poll: RlsContext = { role: 'service', reason: 'quota' }

interface TableSize {
  name: string
  /** Of the heap, in pages. */
  pages: number
  /** With what is stored beside the heap. */
  bytes: number
  indexBytes: number
  columns: string[]
  /** The service sees every record. */
  isCollection: boolean
}

/** Reserved for the interface; a table that has its name is the tenant's. */
const pathOnly = 'rpc'

/** Every table of the home that is not the service's own, whoever made it, and what waits to be told to functions. */
const sizes = sql(
  `select c.relname as name, pg_relation_size(c.oid) / current_setting('block_size')::bigint as pages,
     pg_table_size(c.oid) as bytes, pg_indexes_size(c.oid) as index_bytes,
     (select json_agg(attname) from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped) as columns,
     exists (select from applied_schemas a where a.name = c.relname) as is_collection
   from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'm')
     and (not $1::jsonb ? c.relname::text or $2::jsonb ? c.relname::text and pg_relation_size(c.oid) > 0)`,
  JSON.stringify([...reservedCollections].filter((name) => name !== pathOnly)),
  JSON.stringify([...countedAsDocuments]),
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

/** Part of its quota from which on a tenant's deleted records are told from those that are there. */
const closeToFull = 0.8
/** Of tables that matter: others are taken as they are. */
const maxSampled = 20
const smallestSampled = 64 * 1024
const sampledPages = 400

async function measureDocuments({ database, limits }: Tenant): Promise<number> {
  const { rows } = await database.query(poll, sizes.text, ...sizes.values)
  const tables = rows.map(tableSize)
  const whole = tables.reduce((sum, { bytes, indexBytes }) => sum + bytes + indexBytes, 0)
  if (limits.document_bytes === null || whole <= limits.document_bytes * closeToFull) return whole
  // Postgres keeps the room of deleted records for new ones: the files do not shrink, but there is room.
  const sampled = tables
    .filter(({ isCollection, bytes }) => isCollection && bytes >= smallestSampled)
    .sort((one, other) => other.bytes - one.bytes)
    .slice(0, maxSampled)
  if (sampled.length === 0) return whole
  const found = await database.run(poll, ...sampled.map(sampleStatement))
  return sampled.reduce((sum, table, n) => sum - emptyBytes(table, found[n]?.rows[0]), whole)
}

/** Records, what they take in their pages and what beside them, of some of the pages: always the same ones. */
function sampleStatement({ name, pages, columns }: TableSize): Statement {
  const sum = (ofColumn: (size: string) => string) =>
    columns.map((column) => ofColumn(`coalesce(pg_column_size(${identifier(column)}), 0)`)).join(' + ')
  const inPage = sum((size) => `case when ${size} > ${maxInPage} then ${pointer} else ${size} end`)
  const alongside = sum((size) => `case when ${size} > ${maxInPage} then ${size} + ${chunkOverhead} else 0 end`)
  return {
    text: `select count(*) as records, coalesce(sum(${inPage}), 0) as in_page, coalesce(sum(${alongside}), 0) as beside
           from ${identifier(name)} tablesample system (${partOf(pages) * 100}) repeatable (1)`,
    values: [],
    prepare: 'once',
  }
}

function partOf(pages: number): number {
  return Math.min(1, sampledPages / Math.max(1, pages))
}

/** How Postgres lays out records: a longer value stands beside its record, in pieces of a quarter of a page. */
const maxInPage = 2_000
const pointer = 18
const chunkOverhead = 40
const pageBytes = 8_192
const roomInPage = 8_168
/** Header, line pointer and alignment of a record. */
const heapOverhead = 32
/** Of long values: the header of each piece, and the index that finds them. */
const chunks = 1.04

function emptyBytes({ pages, bytes, indexBytes }: TableSize, row: Row | undefined): number {
  const [records, inPage, alongside] = ['records', 'in_page', 'beside'].map((name) => Number(row?.[name] ?? 0))
  const live = packedBytes(records ?? 0, inPage ?? 0, alongside ?? 0) / partOf(pages)
  const empty = Math.max(0, 1 - live / bytes)
  return Math.round(empty * (bytes + indexBytes))
}

/** What so many records take where nothing has been deleted. */
function packedBytes(records: number, inPage: number, alongside: number): number {
  if (records === 0) return 0
  const perPage = Math.max(1, Math.floor(roomInPage / (inPage / records + heapOverhead)))
  return (records / perPage) * pageBytes + alongside * chunks
}
