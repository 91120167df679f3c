// Removes blobs that no row refers to: those of deleted objects after the commit, and those that a crash left.
import { pause } from '@tenantry/contract'
import { sql } from '../database/statement.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import type { BlobBackend } from './backend/backend.ts'
import { recordsContext } from './records-context.ts'
import { CollectionHold } from './collection-hold.ts'
import type { StorageFailpoint } from './failpoints.ts'
import { ObservedFiles, type FilesOfTenant } from './observed-files.ts'
import { storeError } from './store-id.ts'

const batch = 200
/**
 * Age of an intent or a file that no running upload owns; longer than any upload may take. Two sweeps must find an orphan
 * before it is removed, which still happens within the hour (specification, section 8).
 */
const abandonedMilliseconds = 35 * 60_000
const sweepMilliseconds = 12 * 60_000
/** Largest share of files that crashes may have orphaned. With more orphans nothing is removed until an operator has investigated. */
const maxOrphanShare = 0.05
/** Number of orphans that are removed whatever their share is. */
const minSuspiciousOrphans = 20

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
  /** Uploads that began and never ended. */
  abandoned: number
  /** Files that no row refers to. */
  orphans: number
  removed: number
  /** The reason why nothing was removed, as a sentence. */
  stopReason: string | undefined
}

/** Files that are to be removed. */
export interface Remains {
  /** Files without a row. */
  orphans: number
  /** Files whose objects were deleted or overwritten, and that could have been removed already. */
  waiting: number
}

export class Collector {
  readonly #options: CollectorOptions
  readonly #working = new Map<string, { again: boolean; done: Promise<void> }>()
  /** Orphans that one sweep has found. They are removed if a later sweep finds them again. */
  readonly #suspects = new Map<string, Set<string>>()
  /** Tenants that need no sweep: the last one found nothing, and no upload has begun since. */
  readonly #clean = new Set<string>()
  readonly #hold: CollectionHold
  readonly #sweeping = new Map<string, Promise<SweepReport>>()
  /** Files that the last sweep did not remove; only tenants that have some. */
  readonly #remains = new Map<string, Remains>()
  readonly #observed = new ObservedFiles()

  constructor(options: CollectorOptions) {
    this.#options = options
    this.#hold = new CollectionHold(options.now)
  }

  /** Marks the tenant for the next sweep, because an upload begins or files remain. */
  markForSweep(tenant: Tenant): void {
    this.#clean.delete(tenant.id)
  }

  /** Suspends the removal of the tenant's blobs for `seconds`. When it returns, no removal is running. */
  async hold(tenant: Tenant, seconds: number): Promise<void> {
    await this.#hold.hold(tenant.id, seconds)
  }

  /** Ends a hold and removes what waited for its end. */
  release(tenant: Tenant): void {
    this.#hold.release(tenant.id)
    this.wake(tenant)
  }

  /** Starts to collect the tenant's old blobs; returns at once. */
  wake(tenant: Tenant): void {
    this.markForSweep(tenant)
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
        this.#options.onError(new Error('Old blobs could not be removed. The next sweep retries it.', { cause }))
      } finally {
        this.#working.delete(tenant.id)
      }
    })()
  }

  /**
   * Removes the blobs that `blob_gc` lists: first the file, then the row, so that after a crash in between the removal is
   * only repeated. Does nothing unless the store belongs to the database.
   */
  async collect(tenant: Tenant): Promise<void> {
    const { backend, failpoint } = this.#options
    const linger = this.#lingerMilliseconds(tenant)
    for (;;) {
      const [store, old] = await tenant.database.run(
        recordsContext,
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
        // The next sweep retries it if the hold expires without a release, or the store is mounted again.
        this.markForSweep(tenant)
        return
      }
      await failpoint('collect.after-unlink')
      if (rows.length > 0) {
        await tenant.database.query(
          recordsContext,
          'delete from blob_gc where blob_id in (select jsonb_array_elements_text($1::jsonb)::uuid)',
          JSON.stringify(rows.map((row) => row['blob_id'])),
        )
      }
      if (rows.length < batch) break
    }
    // Downloads or a recovery to an earlier moment may still need the younger ones; a later sweep removes them.
    if (linger > 0 && (await this.waiting(tenant)) > 0) this.markForSweep(tenant)
  }

  /**
   * Finds files that no row refers to, and removes those that an earlier sweep found as well; none if there are
   * suspiciously many. Concurrent calls share one sweep.
   */
  async sweep(tenant: Tenant): Promise<SweepReport> {
    const running =
      this.#sweeping.get(tenant.id) ?? this.#sweepAndRecord(tenant).finally(() => this.#sweeping.delete(tenant.id))
    this.#sweeping.set(tenant.id, running)
    return running
  }

  async #sweepAndRecord(tenant: Tenant): Promise<SweepReport> {
    const report = await this.#sweep(tenant)
    const remains = { orphans: report.orphans - report.removed, waiting: await this.#overdue(tenant) }
    if (remains.orphans + remains.waiting > 0) this.#remains.set(tenant.id, remains)
    else this.#remains.delete(tenant.id)
    return report
  }

  /** Files that the last sweeps did not remove, by tenant. */
  remains(): ReadonlyMap<string, Remains> {
    return this.#remains
  }

  /**
   * Returns what sweeps have found in the store. It does not depend on the tenant's tables, which the tenant can change.
   * @returns undefined before the first sweep
   */
  observedFiles(tenantId: string): FilesOfTenant | undefined {
    return this.#observed.get(tenantId)
  }

  /** Drops what is known of a tenant that was deleted or is served by another runtime. */
  evict(tenantId: string): void {
    this.#observed.evict(tenantId)
    this.#remains.delete(tenantId)
    this.#suspects.delete(tenantId)
    this.#clean.delete(tenantId)
  }

  /** Reports what a sweep would find now, and changes nothing. */
  async examine(tenant: Tenant): Promise<SweepReport> {
    const { rows } = await tenant.database.query(
      recordsContext,
      'select count(*)::int as n from blob_intents where created_at < now() - make_interval(secs => $1)',
      this.#age / 1000,
    )
    const report = { ...nothing, abandoned: Number(rows[0]?.['n']) }
    const error = await storeError(this.#options.backend, tenant)
    if (error !== undefined) return { ...report, stopReason: error }
    const { files, orphans } = await this.#survey(tenant)
    return { ...report, files, orphans: orphans.length, stopReason: tooManyOrphans(files, orphans.length) }
  }

  /** Counts the blobs of deleted and overwritten objects that are not removed yet. */
  async waiting({ database }: Tenant): Promise<number> {
    const { rows } = await database.query(recordsContext, 'select count(*)::int as n from blob_gc')
    return Number(rows[0]?.['n'])
  }

  /** Counts those of `waiting` that could have been removed already. */
  async #overdue(tenant: Tenant): Promise<number> {
    const { rows } = await tenant.database.query(
      recordsContext,
      'select count(*)::int as n from blob_gc where created_at <= now() - make_interval(secs => $1)',
      this.#lingerMilliseconds(tenant) / 1000,
    )
    return Number(rows[0]?.['n'])
  }

  /** Returns for how long the file of a deleted object is retained. */
  #lingerMilliseconds({ manifest }: Tenant): number {
    return Math.max(this.#options.backend.lingerMilliseconds, (manifest.retain_files_seconds ?? 0) * 1000)
  }

  get #age(): number {
    return this.#options.abandonedMilliseconds ?? abandonedMilliseconds
  }

  async #sweep(tenant: Tenant): Promise<SweepReport> {
    const { backend } = this.#options
    const report: SweepReport = { ...nothing }
    // An upload that begins during this sweep is for the next one.
    this.#clean.add(tenant.id)
    const [abandoned, open] = await tenant.database.run(
      recordsContext,
      sql(
        `with gone as (delete from blob_intents where created_at < now() - make_interval(secs => $1) returning blob_id)
         insert into blob_gc (blob_id) select blob_id from gone on conflict do nothing returning blob_id`,
        this.#age / 1000,
      ),
      sql('select 1 from blob_intents limit 1'),
    )
    if ((open?.rows.length ?? 0) > 0) this.markForSweep(tenant)
    report.abandoned = abandoned?.count ?? 0
    await this.collect(tenant)
    const error = await storeError(backend, tenant)
    if (error !== undefined) {
      this.markForSweep(tenant)
      return { ...report, stopReason: error }
    }
    const before = await reportedBytes(tenant)
    const { files, young, orphans, bytes } = await this.#survey(tenant)
    // Files may be added or removed during the survey, so the larger of two readings counts.
    this.#observed.record(tenant.id, bytes, Math.max(before, await reportedBytes(tenant)), this.#options.now())
    Object.assign(report, { files, orphans: orphans.length })
    if (young > 0) this.markForSweep(tenant)
    const stopReason = tooManyOrphans(files, orphans.length)
    if (stopReason !== undefined) {
      this.markForSweep(tenant)
      return { ...report, stopReason }
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
    if (orphans.length > 0) this.markForSweep(tenant)
    return report
  }

  /**
   * Counts all files. Of those that no running upload owns, returns the orphans and the bytes of files that rows refer to.
   * Files that wait for their removal are in neither: a backup may hold them for long.
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
        recordsContext,
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

  /** Sweeps the tenants that need it shortly after the start and then regularly. Returns when aborted and idle. */
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
          if (report.stopReason !== undefined)
            this.#options.onError(new Error(`${tenant.id}: The sweep removes nothing. ${report.stopReason}`))
        } catch (cause) {
          this.markForSweep(tenant)
          this.#options.onError(new Error(`${tenant.id}: The sweep failed.`, { cause }))
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
  const { rows } = await database.query(recordsContext, 'select file_bytes::text from storage_usage')
  return Number(rows[0]?.['file_bytes'] ?? 0)
}

const nothing: SweepReport = { files: 0, abandoned: 0, orphans: 0, removed: 0, stopReason: undefined }

/** Returns why nothing is removed if there are more orphans than crashes leave. */
function tooManyOrphans(files: number, orphans: number): string | undefined {
  if (orphans <= minSuspiciousOrphans || orphans <= files * maxOrphanShare) return undefined
  return `${orphans} of ${files} files have no row, which is more than crashes leave.`
}
