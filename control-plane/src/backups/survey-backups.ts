// Compares the directories of the target with the backups in the control database. Either may be older than the other,
// after a restored database dump or a copied target. So no row is deleted, and no files except where a recorded
// decision has begun to remove them.
import type { Backup } from './backup.ts'
import type { BackupTarget, TargetEntry } from './backup-target.ts'
import type { Log } from '../platform/log.ts'

export interface FoundBackups {
  /** The backups in the quarantine, which the control database does not know. */
  unknown: number
  /** The backups that the control database has as complete but the target does not have. */
  missing: number
}

interface Survey {
  target: BackupTarget
  /** Returns the state of every backup in the control database. */
  states: () => Promise<ReadonlyMap<string, Backup['state']>>
  log: Pick<Log, 'info' | 'warn'>
}

/**
 * Surveys the target.
 * @param reported IDs of missing backups that an earlier call has logged; updated
 */
export async function surveyBackups(survey: Survey, reported: Set<string>): Promise<FoundBackups> {
  const { target, states, log } = survey
  // A row exists before the first file and until after the last one, so the files are listed first.
  const before = await target.list()
  const known = await states()
  for (const entry of before) await settle(entry, known.get(entry.id), survey)
  const after = await target.list()
  const unknown = new Set(
    after.filter(({ isQuarantined, content }) => isQuarantined && content !== 'removing').map(({ id }) => id),
  )
  const whole = new Set(after.filter(({ content }) => content === 'whole').map(({ id }) => id))
  const missing = [...known].flatMap(([id, state]) => (state === 'complete' && !whole.has(id) ? [id] : []))
  for (const id of missing) {
    if (reported.has(id)) continue
    log.warn({ backup: id }, 'The files of a complete backup are missing. Copy them back to make it restorable.')
  }
  reported.clear()
  for (const id of missing) reported.add(id)
  return { unknown: unknown.size, missing: missing.length }
}

async function settle(
  { id, content, isQuarantined }: TargetEntry,
  state: Backup['state'] | undefined,
  { target, log }: Survey,
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
  } else if (content === 'making' && state === 'failed') {
    await target.discard(id)
  }
}
