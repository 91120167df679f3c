// The steps of a tenant's archive: it stores finished segments, takes base backups, and removes what no moment needs any
// more. Each step can be interrupted at any point and repeated.
import type { Clock } from '../../platform/clock.ts'
import { encrypted } from '../encrypted-stream.ts'
import { expiredBases, firstNeededSegment, isOver, type Archive } from './archive.ts'
import type { ArchiveFiles } from './archive-files.ts'
import { aside } from './archive-target.ts'
import { advance, noProgress, type Observation, type Progress } from './progress.ts'
import {
  baseBackup,
  baseBounds,
  beginSpool,
  maxSegments,
  readSpool,
  type ArchivedServer,
  type SpooledSegment,
} from './spool.ts'
import type { ArchiveLedger } from './store-archives.ts'
import { endOfSegment, isSegment, nextSegment } from './wal.ts'

/** The dependencies of the archiving of one tenant. */
export interface ArchiveDeps {
  ledger: ArchiveLedger
  files: ArchiveFiles
  clock: Pick<Clock, 'now'>
  epoch: bigint
}

const basePrefix = 'base-'

/** Returns the name of the file of a base backup. */
export function baseFile(baseId: string): string {
  return `${basePrefix}${baseId}`
}

/** Returns the context that binds an encrypted file to its archive and its name. */
export function fileContext(archiveId: string, name: string): string {
  return `${archiveId}/${name}`
}

/**
 * Stores the finished segments of an open archive. An archive whose spool is gone, or that lacks a segment, ends.
 * @param known.progress the observations that earlier calls have returned
 * @param known.isBaseFailed whether the recorded failure is that of a base backup, and stays
 * @returns the observations, whether the archive can receive a base backup, and whether more segments wait
 */
export async function storeSegments(
  archive: Archive,
  server: ArchivedServer,
  known: { progress: Progress | undefined; isBaseFailed: boolean },
  { ledger, files, epoch }: ArchiveDeps,
  signal: AbortSignal,
): Promise<{ progress: Progress; isReady: boolean; hasMore: boolean }> {
  const { id, lastSegment } = archive
  const key = await ledger.key(id)
  const stored: { firstSegment?: string; lastSegment?: string; bytes: number } = { bytes: 0 }
  let observation: Observation | undefined
  let last = lastSegment
  let count = 0
  let gap: string | undefined
  for await (const item of readSpool(server, id, lastSegment, signal)) {
    if ('position' in item) {
      observation = item
      continue
    }
    count++
    if (last !== undefined && item.name <= last) continue
    if (last !== undefined && item.name !== nextSegment(last)) {
      gap = nextSegment(last)
      break
    }
    const content = () => encrypted(once(item), key, fileContext(id, item.name))
    stored.bytes += await files.write(id, item.name, content, signal)
    if (archive.firstSegment === undefined) stored.firstSegment ??= item.name
    stored.lastSegment = last = item.name
  }
  if (observation === undefined) {
    if (isUnused(archive)) await beginSpool(server, id, signal)
    else
      await ledger.end(
        archive,
        `The volume of the database no longer has this archive's segments. ${startsAgain}`,
        epoch,
      )
    return { progress: noProgress, isReady: false, hasMore: false }
  }
  const end = last === undefined ? undefined : endOfSegment(last)
  const next = advance(known.progress ?? noProgress, observation, end)
  const latest =
    next.latest === undefined || next.latest <= (archive.latest ?? new Date(0)) ? {} : { latest: next.latest }
  await ledger.advance(archive, { ...stored, ...latest, ...(known.isBaseFailed ? {} : { error: null }) }, epoch)
  if (gap !== undefined) await ledger.end(archive, `The segment ${gap} of the WAL was dropped. ${startsAgain}`, epoch)
  const isOpen = gap === undefined
  return { progress: next.progress, isReady: isOpen, hasMore: isOpen && count >= maxSegments }
}

const startsAgain = 'A new archive begins with a new base backup.'

/** Whether nothing is stored of an archive yet, so that its spool may be created again. */
function isUnused({ lastSegment, bases }: Archive): boolean {
  return lastSegment === undefined && bases.every(({ completeAt }) => completeAt === undefined)
}

async function* once({ content }: SpooledSegment): AsyncGenerator<Uint8Array, undefined> {
  yield content
}

/** Takes a base backup of an open archive. It is recorded as complete once it is stored. */
export async function takeBase(
  archive: Archive,
  server: ArchivedServer,
  { ledger, files, epoch }: ArchiveDeps,
  signal: AbortSignal,
): Promise<void> {
  const baseId = await ledger.beginBase(archive, epoch)
  const name = baseFile(baseId)
  const key = await ledger.key(archive.id)
  const content = () => encrypted(baseBackup(server, baseId, signal), key, fileContext(archive.id, name))
  const bytes = await files.write(archive.id, name, content, signal)
  await ledger.completeBase(archive, baseId, await baseBounds(server, baseId, signal), bytes, epoch)
}

/** Removes what no moment of the last `days` needs: base backups, segments before them, and a whole archive. */
export async function expire(archive: Archive, days: number, deps: ArchiveDeps): Promise<void> {
  const { ledger, files, clock, epoch } = deps
  if (isOver(archive, days, clock.now())) return removeArchive(archive, deps)
  const expired = expiredBases(archive, days, clock.now())
  if (expired.length > 0) await ledger.removeBases(archive, expired, epoch)
  const bases = archive.bases.filter(({ id }) => !expired.includes(id))
  const firstSegment = firstNeededSegment({ ...archive, bases })
  const needed = new Set(bases.flatMap(({ id }) => [baseFile(id), baseFile(id) + aside]))
  let bytes = 0
  for (const name of await files.names(archive.id)) {
    // Also a segment whose write was interrupted, and that was stored in another target then.
    const segment = name.endsWith(aside) ? name.slice(0, -aside.length) : name
    const isOld = isSegment(segment)
      ? firstSegment !== undefined && segment < firstSegment
      : name.startsWith(basePrefix) && !needed.has(name)
    if (!isOld) continue
    const removed = await files.remove(archive.id, name)
    // The bytes of interrupted writes were not added.
    if (isSegment(name) || expired.some((id) => baseFile(id) === name)) bytes += removed
  }
  if (firstSegment !== undefined && archive.firstSegment !== undefined && archive.firstSegment < firstSegment)
    await ledger.trim(archive, firstSegment, bytes, epoch)
}

/** Removes an archive: first the decision, then the files, then the row. */
export async function removeArchive(archive: Archive, { ledger, files, epoch }: ArchiveDeps): Promise<void> {
  await ledger.markRemoving(archive, epoch)
  await files.removeAll(archive.id)
  await ledger.remove(archive, epoch)
}
