// Moves a tenant's blobs from one store of a pair to the other while runtimes serve it, and proves that they got there.
//
//   1  the two stores are paired: from then on what is new goes to the primary
//   2  what rows refer to is copied, until a pass finds nothing more; a copy that differs from its row is not made
//   3  every blob is read back from the primary and compared with its row
//
// Each step may end midway and be begun again. Nothing is taken away from the old store: `dropOldStore` does that.
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
const atOnce = 4

export interface MoveReport {
  /** Of the tenant's, when they were last looked at. */
  objects: number
  /** By this run. */
  copied: number
  copiedBytes: number
  /** What is wrong with objects, in words: their files were lost or damaged before. */
  problems: string[]
}

interface MoveOptions {
  pair: PairedBackend
  tenant: Tenant
  /** Waits between two looks at uploads that began before the move. */
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

/** @throws RuntimeError STORAGE_UNAVAILABLE; Error when the stores are not the database's, or it is aborted */
export async function moveTenant({ pair, tenant, pause, signal, onProgress }: MoveOptions): Promise<MoveReport> {
  const report: MoveReport = { objects: 0, copied: 0, copiedBytes: 0, problems: [] }
  await ensureOwn(pair, tenant)
  // One that began in the primary has nothing elsewhere.
  if ((await pair.fallback.storeId(tenant.id)) !== undefined) {
    await pair.pair(tenant.id, await storeIdOf(tenant))
    await copyAll({ pair, tenant, pause, signal, onProgress }, report)
  }
  await eachRow(tenant, signal, async (row) => {
    report.objects++
    const error = await errorInPrimary(pair, tenant, row)
    if (error !== undefined) report.problems.push(error)
  })
  return report
}

/**
 * Removes what the old store has of a tenant that was moved.
 * @throws Error when something of it was not
 */
export async function dropOldStore({ pair, tenant, pause, signal }: Omit<MoveOptions, 'onProgress'>): Promise<void> {
  await ensureOwn(pair, tenant)
  const fallback = await pair.fallback.storeId(tenant.id)
  if (fallback === undefined) return
  if ((await pair.primary.storeId(tenant.id)) !== fallback) throw new Error('its files are not moved yet')
  const begun = await now(tenant)
  // One of these may write to the old store still, if it is older than the move.
  while (await hasIntentsBefore(tenant, begun)) {
    signal.throwIfAborted()
    await pause()
  }
  await eachRow(tenant, signal, async ({ objectId, blobId }) => {
    if (!(await has(pair, tenant, blobId)) && (await refersTo(tenant, blobId)))
      throw new Error(`the file of the object ${objectId} is not moved yet`)
  })
  await pair.dropFallback(tenant.id)
}

async function ensureOwn(pair: PairedBackend, tenant: Tenant): Promise<void> {
  const error = await storeError(pair, tenant)
  if (error !== undefined) throw new Error(error)
}

async function copyAll({ pair, tenant, pause, signal, onProgress }: MoveOptions, report: MoveReport): Promise<void> {
  const paired = await now(tenant)
  for (;;) {
    signal.throwIfAborted()
    // Asked before the pass: what such an upload has written in the old store is found by the pass after its end.
    const mayGrow = await hasIntentsBefore(tenant, paired)
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

/** @returns false when it was there, or can't be had: the reading back tells which */
async function copy(pair: PairedBackend, tenant: Tenant, row: Row): Promise<boolean> {
  if (await has(pair, tenant, row.blobId)) return false
  const source = await pair.fallback.open(tenant.id, row.blobId)
  if (source === undefined) return false
  try {
    // Half of it, from a run that was killed.
    await pair.primary.remove(tenant.id, row.blobId)
    await pair.primary.put(tenant.id, row.blobId, Readable.from(asInRow(source, row), { objectMode: false }), row.size)
  } catch (cause) {
    if (cause instanceof Damaged || isMissing(cause)) return false
    throw cause
  } finally {
    await source.close()
  }
  // It was let go of meanwhile, and whoever removed it may have come too early for the copy.
  if (!(await refersTo(tenant, row.blobId))) await pair.primary.remove(tenant.id, row.blobId)
  return true
}

class Damaged extends Error {}

/** The blob's bytes; fails at their end when they are not what the row says, so that what takes them keeps nothing. */
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
  if (bytes !== size || hash.digest('hex') !== sha256) throw new Damaged('not what its row says')
}

/** In words; nothing is wrong with an object that is gone meanwhile. */
async function errorInPrimary(pair: PairedBackend, tenant: Tenant, row: Row): Promise<string | undefined> {
  const found = await check(await pair.primary.open(tenant.id, row.blobId), row)
  if (found === 'whole') return undefined
  const left = found === 'absent' ? await check(await pair.fallback.open(tenant.id, row.blobId), row) : found
  if (!(await refersTo(tenant, row.blobId))) return undefined
  switch (left) {
    case 'damaged':
      return `the file of the object ${row.objectId} is not what its row says`
    case 'absent':
      return `the object ${row.objectId} has no file`
    case 'whole':
      return `the object ${row.objectId} was written to ${pair.fallback.name} after the move began: does a runtime have other settings?`
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

/** A blob that ends before its row says so, or that is removed while it is read. */
function isMissing(cause: unknown): boolean {
  return cause instanceof RuntimeError && cause.code === 'FILE_MISSING'
}

async function has(pair: PairedBackend, tenant: Tenant, blobId: string): Promise<boolean> {
  const blob = await pair.primary.open(tenant.id, blobId)
  await blob?.close()
  return blob !== undefined
}

/** All objects, some at once. One that is made meanwhile is found or not; its blob is in the primary. */
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
    const workers = Array.from({ length: atOnce }, async () => {
      for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
        signal.throwIfAborted()
        await work(row)
      }
    })
    try {
      await Promise.all(workers)
    } finally {
      // After a failure nothing goes on behind the caller's back.
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

/** By the database's clock, as it is written. */
async function now(tenant: Tenant): Promise<string> {
  const { rows } = await tenant.database.query(moving, 'select now()::text as now')
  return String(rows[0]?.['now'])
}

/** Uploads that began then, and may have been told then to write to the old store. */
async function hasIntentsBefore(tenant: Tenant, time: string): Promise<boolean> {
  // Times of intents are rounded.
  const { rows } = await tenant.database.query(
    moving,
    "select 1 from blob_intents where created_at <= $1::timestamptz + interval '1 second' limit 1",
    time,
  )
  return rows.length > 0
}
