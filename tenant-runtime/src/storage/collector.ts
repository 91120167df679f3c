// Removes blobs that nothing refers to any more, after the commit that let go of them; and sweeps up what a crash left.
import { pause } from '@tenantry/contract'
import { sql } from '../database/statement.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import type { BlobBackend } from './backend/backend.ts'
import { bookkeeping } from './bookkeeping.ts'
import { CollectionHold } from './collection-hold.ts'
import type { StorageFailpoint } from './failpoints.ts'
import { ObservedFiles, type SeenFiles } from './observed-files.ts'
import { storeError } from './store-id.ts'

const batch = 200
/**
 * Longer than any upload may take: an intent or a file of this age belongs to no living one. With two sightings by the
 * sweeps below, what is orphaned is gone within the hour (specification, section 8).
 */
const abandonedMilliseconds = 35 * 60_000
const sweepMilliseconds = 12 * 60_000
/** More orphans than this part of all files are no accident of ours; somebody must look. */
const maxOrphans = 0.05
const fewFiles = 20

interface CollectorOptions {
  backend: BlobBackend
  tenants: () => Iterable<Tenant>
  failpoint: StorageFailpoint
  /** Milliseconds since the epoch. */
  now: () => number
  onError: (error: Error) => void
  sweepMilliseconds?: number
  abandonedMilliseconds?: number
}

interface SweepReport {
  files: number
  /** Uploads that were begun and never ended. */
  abandoned: number
  /** Files that no row refers to. */
  orphans: number
  removed: number
  refused: string | undefined
}

/** Files that should be gone: those without a row, and those that were let go of. */
export interface Remains {
  orphans: number
  waiting: number
}

export class Collector {
  readonly #options: CollectorOptions
  readonly #working = new Map<string, { again: boolean; done: Promise<void> }>()
  /** Orphans that were seen once; only what is seen again by a later sweep is removed. */
  readonly #suspects = new Map<string, Set<string>>()
  /** Tenants whose last sweep found nothing to come back for, and who have written nothing since. */
  readonly #clean = new Set<string>()
  readonly #hold: CollectionHold
  readonly #sweeping = new Map<string, Promise<SweepReport>>()
  /** What the last sweep left, where it left something. */
  readonly #left = new Map<string, Remains>()
  readonly #observed = new ObservedFiles()

  constructor(options: CollectorOptions) {
    this.#options = options
    this.#hold = new CollectionHold(options.now)
  }

  /** The tenant begins to write: from now on there may be something to sweep up. */
  expect(tenant: Tenant): void {
    this.#clean.delete(tenant.id)
  }

  /** From the moment this returns no blob of the tenant's is removed, for `seconds`. */
  async hold(tenant: Tenant, seconds: number): Promise<void> {
    await this.#hold.hold(tenant.id, seconds)
  }

  /** What was held up is done now. */
  release(tenant: Tenant): void {
    this.#hold.release(tenant.id)
    this.wake(tenant)
  }

  /** There may be something to collect; returns at once. */
  wake(tenant: Tenant): void {
    this.expect(tenant)
    const working = this.#working.get(tenant.id)
    if (working !== undefined) {
      working.again = true
      return
    }
    const state = { again: false, done: Promise.resolve() }
    this.#working.set(tenant.id, state)
    state.done = (async () => {
      try {
        do {
          state.again = false
          await this.collect(tenant)
        } while (state.again as boolean)
      } catch (cause) {
        this.#options.onError(new Error('old blobs could not be removed; it is tried again', { cause }))
      } finally {
        this.#working.delete(tenant.id)
      }
    })()
  }

  /**
   * Removes what stands in `blob_gc`: first the file, then the row, so that a crash in between is only work done twice.
   * Does nothing as long as the store isn't the database's own.
   */
  async collect(tenant: Tenant): Promise<void> {
    const { backend, failpoint } = this.#options
    const linger = backend.lingerMilliseconds
    for (;;) {
      const [store, old] = await tenant.database.run(
        bookkeeping,
        sql('select store_id::text from storage_usage'),
        sql(
          `select blob_id from blob_gc g where not exists (select from storage_objects o where o.blob_id = g.blob_id)
             and ($2 = 0 or created_at <= now() - make_interval(secs => $2)) limit $1`,
          batch,
          linger / 1000,
        ),
      )
      const rows = old?.rows ?? []
      const own = rows.length === 0 || (await backend.storeId(tenant.id)) === store?.rows[0]?.['store_id']
      const removed =
        own &&
        (await this.#hold.unlessHeld(tenant.id, async () => {
          for (const row of rows) {
            await failpoint('collect.before-unlink')
            await backend.remove(tenant.id, String(row['blob_id']))
          }
        }))
      if (!removed) {
        // The next sweep comes back for it, should nobody release the hold, or the store come back.
        this.expect(tenant)
        return
      }
      await failpoint('collect.after-unlink')
      if (rows.length > 0) {
        await tenant.database.query(
          bookkeeping,
          'delete from blob_gc where blob_id in (select jsonb_array_elements_text($1::jsonb)::uuid)',
          JSON.stringify(rows.map((row) => row['blob_id'])),
        )
      }
      if (rows.length < batch) break
    }
    // What is still read, perhaps, is for a later sweep.
    if (linger > 0 && (await this.waiting(tenant)) > 0) this.expect(tenant)
  }

  /** Finds what no row refers to. Removes only what an earlier sweep found as well, and nothing when in doubt. One at a time. */
  async sweep(tenant: Tenant): Promise<SweepReport> {
    const running =
      this.#sweeping.get(tenant.id) ?? this.#sweepAndNote(tenant).finally(() => this.#sweeping.delete(tenant.id))
    this.#sweeping.set(tenant.id, running)
    return running
  }

  async #sweepAndNote(tenant: Tenant): Promise<SweepReport> {
    const report = await this.#sweep(tenant)
    const left = { orphans: report.orphans - report.removed, waiting: await this.waiting(tenant) }
    if (left.orphans + left.waiting > 0) this.#left.set(tenant.id, left)
    else this.#left.delete(tenant.id)
    return report
  }

  /** What the last sweeps have left, by tenant. */
  remains(): ReadonlyMap<string, Remains> {
    return this.#left
  }

  /**
   * What the store shows, whatever the tenant's tables say: they are the tenant's.
   * @returns undefined before the first sweep
   */
  seen(tenantId: string): SeenFiles | undefined {
    return this.#observed.of(tenantId)
  }

  /** The tenant is gone, or served elsewhere. */
  evict(tenantId: string): void {
    this.#observed.evict(tenantId)
    this.#left.delete(tenantId)
    this.#suspects.delete(tenantId)
    this.#clean.delete(tenantId)
  }

  /** What a sweep would find now. Nothing is changed. */
  async examine(tenant: Tenant): Promise<SweepReport> {
    const { rows } = await tenant.database.query(
      bookkeeping,
      'select count(*)::int as n from blob_intents where created_at < now() - make_interval(secs => $1)',
      this.#age / 1000,
    )
    const report = { ...nothing, abandoned: Number(rows[0]?.['n']) }
    const error = await storeError(this.#options.backend, tenant)
    if (error !== undefined) return { ...report, refused: error }
    const { files, orphans } = await this.#survey(tenant)
    return { ...report, files, orphans: orphans.length, refused: doubt(files, orphans.length) }
  }

  /** How many blobs were let go of and are not removed yet. */
  async waiting({ database }: Tenant): Promise<number> {
    const { rows } = await database.query(bookkeeping, 'select count(*)::int as n from blob_gc')
    return Number(rows[0]?.['n'])
  }

  get #age(): number {
    return this.#options.abandonedMilliseconds ?? abandonedMilliseconds
  }

  async #sweep(tenant: Tenant): Promise<SweepReport> {
    const { backend } = this.#options
    const report: SweepReport = { ...nothing }
    // What begins while this looks is for the next one.
    this.#clean.add(tenant.id)
    const [abandoned, open] = await tenant.database.run(
      bookkeeping,
      sql(
        `with gone as (delete from blob_intents where created_at < now() - make_interval(secs => $1) returning blob_id)
         insert into blob_gc (blob_id) select blob_id from gone on conflict do nothing returning blob_id`,
        this.#age / 1000,
      ),
      sql('select 1 from blob_intents limit 1'),
    )
    if ((open?.rows.length ?? 0) > 0) this.expect(tenant)
    report.abandoned = abandoned?.count ?? 0
    await this.collect(tenant)
    const error = await storeError(backend, tenant)
    if (error !== undefined) {
      this.expect(tenant)
      return { ...report, refused: error }
    }
    const before = await reportedBytes(tenant)
    const { files, young, orphans, bytes } = await this.#survey(tenant)
    // A file may come or go meanwhile.
    this.#observed.note(tenant.id, bytes, Math.max(before, await reportedBytes(tenant)), this.#options.now())
    Object.assign(report, { files, orphans: orphans.length })
    if (young > 0) this.expect(tenant)
    const rejected = doubt(files, orphans.length)
    if (rejected !== undefined) {
      this.expect(tenant)
      return { ...report, refused: rejected }
    }
    const suspected = this.#suspects.get(tenant.id) ?? new Set()
    await this.#hold.unlessHeld(tenant.id, async () => {
      for (const blobId of orphans) {
        if (!suspected.has(blobId)) continue
        await backend.remove(tenant.id, blobId)
        report.removed++
      }
    })
    const suspects = new Set(orphans.filter((blobId) => !suspected.has(blobId)))
    if (suspects.size > 0) this.#suspects.set(tenant.id, suspects)
    else this.#suspects.delete(tenant.id)
    if (orphans.length > 0) this.expect(tenant)
    return report
  }

  /**
   * All files; of those that are old enough to be nobody's, the ones that no row refers to, and the bytes of the others. What waits to
   * be removed is not among these: a backup may hold it for long.
   */
  async #survey(tenant: Tenant): Promise<{ files: number; young: number; orphans: string[]; bytes: number }> {
    let [files, young] = [0, 0]
    const old = new Map<string, number>()
    for await (const { blobId, age, size } of this.#options.backend.list(tenant.id)) {
      files++
      if (age >= this.#age) old.set(blobId, size)
      else young++
    }
    const { orphans, waiting } = await this.#unreferenced(tenant, [...old.keys()])
    const sum = (blobIds: Iterable<string>) => [...blobIds].reduce((bytes, blobId) => bytes + (old.get(blobId) ?? 0), 0)
    return { files, young, orphans, bytes: sum(old.keys()) - sum(orphans) - sum(waiting) }
  }

  async #unreferenced(tenant: Tenant, blobIds: string[]): Promise<{ orphans: string[]; waiting: string[] }> {
    const found: { orphans: string[]; waiting: string[] } = { orphans: [], waiting: [] }
    for (let from = 0; from < blobIds.length; from += 1000) {
      const { rows } = await tenant.database.query(
        bookkeeping,
        `select f.blob_id, g.blob_id is not null as is_known, coalesce(g.created_at <= now(), false) as waits
         from (select jsonb_array_elements_text($1::jsonb)::uuid as blob_id) f left join blob_gc g using (blob_id)
         where not exists (select from storage_objects o where o.blob_id = f.blob_id)
           and not exists (select from blob_intents i where i.blob_id = f.blob_id)`,
        JSON.stringify(blobIds.slice(from, from + 1000)),
      )
      for (const { blob_id: blobId, is_known: isKnown, waits } of rows) {
        if (waits === true) found.waiting.push(String(blobId))
        else if (isKnown !== true) found.orphans.push(String(blobId))
      }
    }
    return found
  }

  /**
   * Sweeps every tenant soon after the start, and again as long as there is something to come back for; returns when
   * aborted and idle.
   */
  async run(signal: AbortSignal): Promise<void> {
    const every = this.#options.sweepMilliseconds ?? sweepMilliseconds
    const stopped = () => signal.aborted
    await pause(Math.min(every, 10_000), signal)
    while (!stopped()) {
      for (const tenant of [...this.#options.tenants()]) {
        if (stopped()) break
        if (this.#clean.has(tenant.id)) continue
        try {
          const report = await this.sweep(tenant)
          if (report.refused !== undefined)
            this.#options.onError(new Error(`${tenant.id}: nothing is swept: ${report.refused}`))
        } catch (cause) {
          this.expect(tenant)
          this.#options.onError(new Error(`${tenant.id} could not be swept`, { cause }))
        }
      }
      await pause(every, signal)
    }
    await this.idle()
  }

  /** Resolves when nothing is being collected. */
  async idle(): Promise<void> {
    await Promise.all([...this.#working.values()].map(({ done }) => done))
  }
}

async function reportedBytes({ database }: Tenant): Promise<number> {
  const { rows } = await database.query(bookkeeping, 'select file_bytes::text from storage_usage')
  return Number(rows[0]?.['file_bytes'] ?? 0)
}

const nothing: SweepReport = { files: 0, abandoned: 0, orphans: 0, removed: 0, refused: undefined }

/** Why nothing is removed. */
function doubt(files: number, orphans: number): string | undefined {
  if (orphans <= fewFiles || orphans <= files * maxOrphans) return undefined
  return `${orphans} of ${files} files have no row: too many to be left by crashes`
}
