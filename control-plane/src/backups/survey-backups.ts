// Compares the directories of the target with the backups that the control database knows. Either may be older than the other:
// a database that was restored from a dump, a target that was copied. So nothing is forgotten, and nothing is deleted but what
// a recorded decision has begun to remove.
import type { Backup } from './backup.ts'
import type { BackupTarget, TargetEntry } from './backup-target.ts'
import type { Log } from '../platform/log.ts'

export interface FoundBackups {
  /** In the quarantine: the control database does not know them. */
  unknown: number
  /** Complete by the control database, and not in the target. */
  missing: number
}

interface Survey {
  target: BackupTarget
  /** State of every backup that the control database knows. */
  states: () => Promise<ReadonlyMap<string, Backup['state']>>
  log: Pick<Log, 'info' | 'warn'>
}

/** @param reported IDs of missing backups that an earlier call has logged; updated */
export async function surveyBackups(survey: Survey, reported: Set<string>): Promise<FoundBackups> {
  const { target, states, log } = survey
  // A row is there before the first file, and gone before the last: so the files are listed first.
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
    log.warn(
      { backup: id },
      'the files of a complete backup are missing; its row stays, and copying the files back makes it restorable',
    )
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
    if (await target.release(id))
      log.info({ backup: id }, 'a backup that the control database knows was moved out of the quarantine')
  } else if (state === undefined) {
    await target.quarantine(id)
    const details = { backup: id, whole: content === 'whole' }
    log.warn(
      details,
      'a backup that the control database does not know was moved to the quarantine (GET /v1/backups?state=unknown)',
    )
  } else if (content === 'making' && state === 'failed') {
    await target.discard(id)
  }
}
