// Compares the entries of each target with the backups in the control database. Either may be older than the other, after
// a restored database dump or a copied target. So no row is deleted, and no files except where a recorded decision has
// begun to remove them.
import type { Backup } from './backup.ts'
import type { BackupTarget, TargetEntry } from './backup-target.ts'
import type { BackupTargets } from './target-set.ts'
import type { Log } from '../platform/log.ts'

export interface FoundBackups {
  /** The backups in the quarantine, which the control database does not know. */
  unknown: number
  /** The backups that the control database has as complete but no target has. Not counted while a target is unavailable. */
  missing: number
  /** The complete backups that a target lacks and another one has. */
  uncopied: number
  /** The names of the targets that could not be listed. */
  unavailable: string[]
}

/** A complete backup that a target lacks, and the targets that have it. */
export interface MissingCopy {
  backupId: string
  from: readonly BackupTarget[]
  to: BackupTarget
}

interface Survey {
  targets: BackupTargets
  /** Returns the state of every backup in the control database. */
  states: () => Promise<ReadonlyMap<string, Backup['state']>>
  log: Pick<Log, 'info' | 'warn'>
}

/**
 * Surveys the targets.
 * @param reported IDs of missing backups and names of unavailable targets that an earlier call has logged; updated
 * @throws BackupError TARGET_UNAVAILABLE when no target can be listed
 */
export async function surveyBackups(
  survey: Survey,
  reported: Set<string>,
): Promise<{ found: FoundBackups; copies: MissingCopy[] }> {
  const { targets, states, log } = survey
  // A row exists before the first file and until after the last one, so the files are listed first.
  const before = await targets.list()
  const known = await states()
  for (const { target, entries = [] } of before) {
    const whole = wholeOf(entries)
    for (const entry of entries) await settle(target, entry, known.get(entry.id), whole, survey)
  }
  const after = await targets.list()
  const all = after.flatMap(({ entries = [] }) => entries)
  const unknown = new Set(
    all.filter(({ isQuarantined, content }) => isQuarantined && content !== 'removing').map(({ id }) => id),
  )
  const listed = after.flatMap(({ target, entries }) =>
    entries === undefined ? [] : [{ target, whole: wholeOf(entries) }],
  )
  const unlisted = after.filter(({ entries }) => entries === undefined)
  const unavailable = unlisted.map(({ target }) => target.name)
  const complete = [...known].flatMap(([id, state]) => (state === 'complete' ? [id] : []))
  const everywhere = wholeOf(all)
  const missing = unavailable.length > 0 ? [] : complete.filter((id) => !everywhere.has(id))
  const copies = complete
    .filter((id) => everywhere.has(id))
    .flatMap((backupId): MissingCopy[] => {
      const from = listed.filter(({ whole }) => whole.has(backupId)).map(({ target }) => target)
      return listed.flatMap(({ target, whole }) => (whole.has(backupId) ? [] : [{ backupId, from, to: target }]))
    })
  for (const id of missing) {
    if (reported.has(id)) continue
    log.warn({ backup: id }, 'The files of a complete backup are missing. Copy them back to make it restorable.')
  }
  for (const { target, error } of unlisted) {
    if (!reported.has(target.name)) log.warn({ target: target.name, err: error }, 'A backup target cannot be listed.')
  }
  reported.clear()
  for (const name of [...missing, ...unavailable]) reported.add(name)
  const uncopied = new Set(copies.map(({ backupId }) => backupId)).size
  return { found: { unknown: unknown.size, missing: missing.length, uncopied, unavailable }, copies }
}

function wholeOf(entries: readonly TargetEntry[]): Set<string> {
  return new Set(entries.filter(({ content }) => content === 'whole').map(({ id }) => id))
}

/** @param whole the whole backups of this target */
async function settle(
  target: BackupTarget,
  { id, content, isQuarantined }: TargetEntry,
  state: Backup['state'] | undefined,
  whole: ReadonlySet<string>,
  { log }: Survey,
): Promise<void> {
  if (content === 'removing') {
    await target.remove(id)
  } else if (isQuarantined) {
    if (content !== 'whole' || state === undefined) return
    if (await target.release(id)) log.info({ backup: id }, 'A known backup was moved out of the quarantine.')
  } else if (state === undefined) {
    await target.quarantine(id)
    const details = { backup: id, whole: content === 'whole' }
    log.warn(details, 'An unknown backup was moved to the quarantine (GET /v1/backups?state=unknown).')
  } else if (content === 'making' && (state === 'failed' || whole.has(id))) {
    await target.discard(id)
  }
}
