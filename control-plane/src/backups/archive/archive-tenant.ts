// The steps of a tenant's archive: it stores finished segments, takes base backups, and removes what no moment needs any
// more. Each step can be interrupted at any point and repeated.
import type { Clock } from '../../platform/clock.ts'
import { isTargetFailure } from '../backup-error.ts'
import { encrypted } from '../encrypted-stream.ts'
import { appendSpool, type Appended, type ArchiveLog } from './append-spool.ts'
import { expiredBases, firstNeededSegment, isOver, type Archive } from './archive.ts'
import type { ArchiveFiles } from './archive-files.ts'
import { aside } from './archive-target.ts'
import { baseFile, basePrefix, fileContext } from './file-names.ts'
import { advance, noProgress, type Observation, type Progress } from './progress.ts'
import { baseBackup, baseBounds, beginSpool, maxFiles, type ArchivedServer } from './spool.ts'
import type { ArchiveLedger } from './store-archives.ts'
import { endOfSegment, isSegment, timelineOf } from './wal.ts'

/** The dependencies of the archiving of one tenant. */
export interface ArchiveDeps {
  ledger: ArchiveLedger
  files: ArchiveFiles
  clock: Pick<Clock, 'now'>
  epoch: bigint
}

/** The observations of an archive, and the time at which its next segment was first missing. */
export type Known = Progress & {
  /** Time of the first poll in which no member that responds had the next segment; absent while one has it. */
  missingSince?: Date
}

/** Time in which another member of a cluster may still provide a segment. */
const gapMs = 60_000
/** Time in which a member that does not respond may still provide a segment. */
const unreachableGapMs = 600_000

/**
 * Stores the finished segments of an open archive. After a failover the new primary's spool continues the log, and what it
 * lacks comes from the replicas. An archive whose spool is gone, or that lacks a segment, ends.
 * @param known.progress what earlier calls have returned
 * @param known.isBaseFailed whether the recorded failure is that of a base backup, and stays
 * @returns the observations, whether the archive can receive a base backup, and whether more segments wait
 */
export async function storeSegments(
  archive: Archive,
  server: ArchivedServer,
  known: { progress: Known | undefined; isBaseFailed: boolean },
  { ledger, files, epoch, clock }: ArchiveDeps,
  signal: AbortSignal,
): Promise<{ progress: Known; isReady: boolean; hasMore: boolean }> {
  const log = { archiveId: archive.id, key: await ledger.key(archive.id), files }
  const isAdopted = server.replicas.length > 0 && !isUnused(archive)
  const own = await appendSpool(log, server, isAdopted ? 'primary' : 'own', archive.lastSegment, signal)
  const { observation } = own
  const notReady = { progress: noProgress, isReady: false, hasMore: false }
  const end = async (reason: string) => {
    await ledger.end(archive, `${reason} A new archive begins with a new base backup.`, epoch)
    return notReady
  }
  if (observation === undefined) {
    if (!isUnused(archive)) return end("The volume of the database no longer has this archive's segments.")
    await beginSpool(server, archive.id, signal)
    return notReady
  }
  if (hasDiverged(observation, archive.lastSegment))
    return end('The archive has a part of the log that the primary does not have.')
  const filled = await fillGap(log, server, own, signal)
  const all = [own, ...filled.appended]
  const last = all.at(-1)?.last
  const first = archive.firstSegment === undefined ? all.find((one) => one.first !== undefined)?.first : undefined
  const next = advance(known.progress ?? noProgress, observation, last)
  const latest =
    next.latest === undefined || next.latest <= (archive.latest ?? new Date(0)) ? {} : { latest: next.latest }
  const stored = {
    ...(first === undefined ? {} : { firstSegment: first }),
    ...(last === undefined ? {} : { lastSegment: last }),
    bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
    branches: all.flatMap(({ branches }) => branches),
  }
  await ledger.advance(archive, { ...stored, ...latest, ...(known.isBaseFailed ? {} : { error: null }) }, epoch)
  const isFilled = filled.appended.length > 0
  if (own.gap === undefined || isFilled)
    return { progress: next.progress, isReady: true, hasMore: isFilled || own.read >= maxFiles }
  const missingSince = known.progress?.missingSince ?? clock.now()
  const waitedMs = clock.now().getTime() - missingSince.getTime()
  if (server.replicas.length > 0 && waitedMs < (filled.isComplete ? gapMs : unreachableGapMs))
    return { progress: { ...next.progress, missingSince }, isReady: true, hasMore: false }
  return end(`The segment ${own.gap} of the WAL was dropped.`)
}

/** Whether the primary is behind a segment of its own timeline, which another member had begun and lost. */
function hasDiverged({ timeline, position }: Observation, last: string | undefined): boolean {
  return last !== undefined && timelineOf(last) === timeline && position < endOfSegment(last)
}

/** Stores what the first replica that has the missing segment has of the log. */
async function fillGap(
  log: ArchiveLog,
  server: ArchivedServer,
  { gap, last }: Appended,
  signal: AbortSignal,
): Promise<{ appended: Appended[]; isComplete: boolean }> {
  let isComplete = true
  for (const service of gap === undefined ? [] : server.replicas) {
    try {
      const found = await appendSpool(log, { ...server, service }, 'replica', last, signal)
      if (found.first !== undefined) return { appended: [found], isComplete }
    } catch (cause) {
      signal.throwIfAborted()
      if (isTargetFailure(cause)) throw cause
      isComplete = false
    }
  }
  return { appended: [], isComplete }
}

/** Whether nothing is stored of an archive yet, so that its spool may be created again. */
function isUnused({ lastSegment, bases }: Archive): boolean {
  return lastSegment === undefined && bases.every(({ completeAt }) => completeAt === undefined)
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
