// Moves a tenant's blobs from the fallback of a pair of stores to its primary while runtimes serve it, and verifies them.
//
//   1  Pair the two stores. From then on new blobs go to the primary.
//   2  Copy the blobs that rows refer to, until a pass finds no more. A blob that differs from its row is not copied.
//   3  Read every blob from the primary and compare it with its row.
//
// Each step may stop midway and be repeated. Nothing is removed from the old store; `dropOldStore` does that.
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { RuntimeError } from '../errors.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import type { OpenBlob } from './backend/backend.ts'
import type { PairedBackend } from './backend/paired.ts'
import { storeError } from './store-id.ts'

const moving: RlsContext = { role: 'service', reason: 'moving of blobs' }
const pageRows = 500
const concurrency = 4

export interface MoveReport {
  /** The tenant's objects at the last pass. */
  objects: number
  /** Blobs that this run copied. */
  copied: number
  copiedBytes: number
  /** A sentence for each object whose file was lost or damaged before. */
  errors: string[]
}

interface MoveOptions {
  pair: PairedBackend
  tenant: Tenant
  /** Waits between two checks for uploads that began before the move. */
  pause: () => Promise<void>
  signal: AbortSignal
  onProgress: (report: Readonly<MoveReport>) => void
}

interface Row {
  objectId: string
  blobId: string
  size: number
  sha256: string
}

/**
 * Moves and verifies a tenant's blobs.
 * @throws RuntimeError STORAGE_UNAVAILABLE; Error if the stores belong to another database, or on abort
 */
export async function moveTenant({ pair, tenant, pause, signal, onProgress }: MoveOptions): Promise<MoveReport> {
  const report: MoveReport = { objects: 0, copied: 0, copiedBytes: 0, errors: [] }
  await ensureOwn(pair, tenant)
  // A tenant that began in the primary has no blobs in the fallback.
  if ((await pair.fallback.storeId(tenant.id)) !== undefined) {
    await pair.pair(tenant.id, await storeIdOf(tenant))
    await copyAll({ pair, tenant, pause, signal, onProgress }, report)
  }
  await eachRow(tenant, signal, async (row) => {
    report.objects++
    const error = await errorInPrimary(pair, tenant, row)
    if (error !== undefined) report.errors.push(error)
  })
  return report
}

/**
 * Removes a moved tenant's blobs from the old store.
 * @throws Error if any of them is not moved yet
 */
export async function dropOldStore({ pair, tenant, pause, signal }: Omit<MoveOptions, 'onProgress'>): Promise<void> {
  await ensureOwn(pair, tenant)
  const fallback = await pair.fallback.storeId(tenant.id)
  if (fallback === undefined) return
  if ((await pair.primary.storeId(tenant.id)) !== fallback) throw new Error("The tenant's files are not moved yet.")
  const startedAt = await now(tenant)
  // An upload that is older than the move may still write to the old store.
  while (await hasIntentsBefore(tenant, startedAt)) {
    signal.throwIfAborted()
    await pause()
  }
  await eachRow(tenant, signal, async ({ objectId, blobId }) => {
    if (!(await has(pair, tenant, blobId)) && (await refersTo(tenant, blobId)))
      throw new Error(`The file of the object ${objectId} is not moved yet.`)
  })
  await pair.dropFallback(tenant.id)
}

async function ensureOwn(pair: PairedBackend, tenant: Tenant): Promise<void> {
  const error = await storeError(pair, tenant)
  if (error !== undefined) throw new Error(error)
}

async function copyAll({ pair, tenant, pause, signal, onProgress }: MoveOptions, report: MoveReport): Promise<void> {
  const pairedAt = await now(tenant)
  for (;;) {
    signal.throwIfAborted()
    // Read before the pass: the pass after the end of such an upload finds what it has written to the old store.
    const mayGrow = await hasIntentsBefore(tenant, pairedAt)
    const before = report.copied
    await eachRow(tenant, signal, async (row) => {
      if (!(await copy(pair, tenant, row))) return
      report.copied++
      report.copiedBytes += row.size
      onProgress(report)
    })
    if (!mayGrow && report.copied === before) return
    if (mayGrow) await pause()
  }
}

/** Copies a blob. @returns false if the primary has it, or it can't be read; the verification shows which */
async function copy(pair: PairedBackend, tenant: Tenant, row: Row): Promise<boolean> {
  if (await has(pair, tenant, row.blobId)) return false
  const source = await pair.fallback.open(tenant.id, row.blobId)
  if (source === undefined) return false
  try {
    // A run that was killed may have left a part of it.
    await pair.primary.remove(tenant.id, row.blobId)
    await pair.primary.put(tenant.id, row.blobId, Readable.from(asInRow(source, row), { objectMode: false }), row.size)
  } catch (cause) {
    if (cause instanceof Damaged || isMissing(cause)) return false
    throw cause
  } finally {
    await source.close()
  }
  // If the object was deleted meanwhile, its blob may have been removed before the copy was made.
  if (!(await refersTo(tenant, row.blobId))) await pair.primary.remove(tenant.id, row.blobId)
  return true
}

class Damaged extends Error {}

/** Reads the blob's bytes. @throws Damaged at their end if they differ from the row, so that the receiver discards them */
async function* asInRow(blob: OpenBlob, { size, sha256 }: Row): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  let bytes = 0
  if (size > 0) {
    for await (const chunk of blob.read(0, size - 1)) {
      hash.update(chunk)
      bytes += chunk.length
      yield chunk
    }
  }
  if (bytes !== size || hash.digest('hex') !== sha256) throw new Damaged('The file differs from its row.')
}

/** Describes what is wrong with an object's blob in the primary; undefined if nothing is or the object was deleted meanwhile. */
async function errorInPrimary(pair: PairedBackend, tenant: Tenant, row: Row): Promise<string | undefined> {
  const found = await check(await pair.primary.open(tenant.id, row.blobId), row)
  if (found === 'whole') return undefined
  const state = found === 'absent' ? await check(await pair.fallback.open(tenant.id, row.blobId), row) : found
  if (!(await refersTo(tenant, row.blobId))) return undefined
  switch (state) {
    case 'damaged':
      return `The file of the object ${row.objectId} differs from its row.`
    case 'absent':
      return `The object ${row.objectId} has no file.`
    case 'whole':
      return (
        `The object ${row.objectId} was written to ${pair.fallback.name} after the move began. ` +
        'Check that all runtimes have the same settings.'
      )
  }
}

async function check(blob: OpenBlob | undefined, row: Row): Promise<'whole' | 'damaged' | 'absent'> {
  if (blob === undefined) return 'absent'
  try {
    for (const bytes = asInRow(blob, row); (await bytes.next()).done !== true;);
    return 'whole'
  } catch (cause) {
    if (cause instanceof Damaged) return 'damaged'
    if (isMissing(cause)) return 'damaged'
    throw cause
  } finally {
    await blob.close()
  }
}

/** Whether a blob is shorter than its row states, or was removed while it was read. */
function isMissing(cause: unknown): boolean {
  return cause instanceof RuntimeError && cause.code === 'FILE_MISSING'
}

async function has(pair: PairedBackend, tenant: Tenant, blobId: string): Promise<boolean> {
  const blob = await pair.primary.open(tenant.id, blobId)
  await blob?.close()
  return blob !== undefined
}

/** Runs `work` for all objects concurrently. It may miss objects created meanwhile, whose blobs are in the primary. */
async function eachRow(tenant: Tenant, signal: AbortSignal, work: (row: Row) => Promise<void>): Promise<void> {
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const { rows } = await tenant.database.query(
      moving,
      'select id::text, blob_id::text, size::text, etag from storage_objects where blob_id > $1 order by blob_id limit $2',
      after,
      pageRows,
    )
    const waiting = rows.map((row): Row => ({
      objectId: String(row['id']),
      blobId: String(row['blob_id']),
      size: Number(row['size']),
      sha256: String(row['etag']),
    }))
    after = waiting.at(-1)?.blobId ?? after
    const isLast = rows.length < pageRows
    const workers = Array.from({ length: concurrency }, async () => {
      for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
        signal.throwIfAborted()
        await work(row)
      }
    })
    try {
      await Promise.all(workers)
    } finally {
      // After a failure, no worker is running when this returns.
      waiting.length = 0
      await Promise.allSettled(workers)
    }
    if (isLast) return
  }
}

async function refersTo(tenant: Tenant, blobId: string): Promise<boolean> {
  const { rows } = await tenant.database.query(moving, 'select 1 from storage_objects where blob_id = $1', blobId)
  return rows.length > 0
}

async function storeIdOf(tenant: Tenant): Promise<string> {
  const { rows } = await tenant.database.query(moving, 'select store_id::text from storage_usage')
  return String(rows[0]?.['store_id'])
}

/** Returns the time of the database's clock as a text that Postgres reads. */
async function now(tenant: Tenant): Promise<string> {
  const { rows } = await tenant.database.query(moving, 'select now()::text as now')
  return String(rows[0]?.['now'])
}

/** Whether an upload is running that began before `time`, and so may write to the old store. */
async function hasIntentsBefore(tenant: Tenant, time: string): Promise<boolean> {
  // Times of intents are rounded.
  const { rows } = await tenant.database.query(
    moving,
    "select 1 from blob_intents where created_at <= $1::timestamptz + interval '1 second' limit 1",
    time,
  )
  return rows.length > 0
}
