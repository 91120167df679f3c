// Copies complete backups to the targets that lack them. A copy is read back, decrypted and compared with the manifest
// before it is committed.
import { BackupError } from './backup-error.ts'
import { recordPart, type ReadRecord } from './backup-record.ts'
import type { BackupTarget } from './backup-target.ts'
import type { JobDeps } from './job-deps.ts'
import { encryptedParts } from './manifest.ts'
import { openFiles } from './parts.ts'
import { recordText } from './record-text.ts'
import type { MissingCopy } from './survey-backups.ts'

type CopyDeps = Pick<JobDeps, 'ledger' | 'records' | 'clock' | 'log'>

const firstPauseMilliseconds = 60_000
const maxPauseMilliseconds = 3_600_000

/** Returns a function that makes one copy. After a failure, the same copy is not attempted again for a while. */
export function createCopier({ ledger, records, clock, log }: CopyDeps) {
  const failed = new Map<string, { count: number; until: number }>()
  return async ({ backupId, from, to }: MissingCopy, signal: AbortSignal): Promise<void> => {
    const name = `${to.name}/${backupId}`
    const earlier = failed.get(name)
    if (earlier !== undefined && clock.now().getTime() < earlier.until) return
    const secret = await ledger.keyOf(backupId)
    if (secret === undefined) return
    try {
      // A survey that ran during an earlier copy lists it as missing.
      if ((await to.size(backupId, encryptedParts)) !== undefined) return
      const readRecord = (text: string) => records.read(text, backupId)
      await copyFromAny({ backupId, readRecord, ...secret }, from, to, signal)
      failed.delete(name)
      // A backup that was removed meanwhile must not come back.
      if ((await ledger.keyOf(backupId)) === undefined) await to.remove(backupId)
      log.info({ backup: backupId, target: to.name }, 'A backup was copied to a target.')
    } catch (error) {
      signal.throwIfAborted()
      const count = (earlier?.count ?? 0) + 1
      const pause = Math.min(maxPauseMilliseconds, firstPauseMilliseconds * 2 ** (count - 1))
      failed.set(name, { count, until: clock.now().getTime() + pause })
      throw error
    }
  }
}

interface CopiedBackup {
  backupId: string
  key: Uint8Array
  manifestHash: string
  readRecord: (text: string) => ReadRecord
}

/** Copies from the first target whose copy is good. Nothing uncommitted remains after an error. */
async function copyFromAny(
  backup: CopiedBackup,
  from: readonly BackupTarget[],
  to: BackupTarget,
  signal: AbortSignal,
): Promise<void> {
  let failure: unknown
  for (const source of from) {
    try {
      await to.discard(backup.backupId)
      await copy(backup, source, to, signal)
      return
    } catch (cause) {
      failure ??= cause
      await to.discard(backup.backupId).catch(() => undefined)
      signal.throwIfAborted()
    }
  }
  throw failure
}

async function copy(
  { backupId, key, manifestHash, readRecord }: CopiedBackup,
  source: BackupTarget,
  to: BackupTarget,
  signal: AbortSignal,
): Promise<void> {
  for (const part of encryptedParts) await to.write(backupId, part, source.read(backupId, part, signal), signal)
  // Backups of releases that wrote no record have none.
  const record = await recordText(source, backupId, signal)
  if (record !== undefined) {
    if (readRecord(record).error?.code === 'RECORD_DAMAGED') throw damagedRecord(source)
    await to.write(backupId, recordPart, once(record), signal)
  }
  const uncommitted: BackupTarget = { ...to, read: (id, part, stop) => to.readUncommitted(id, part, stop) }
  const written = openFiles(uncommitted, backupId, key, signal)
  await written.check(await written.readManifest(manifestHash))
  if ((await recordText(uncommitted, backupId, signal)) !== record) throw damagedRecord(to)
  await to.commit(backupId)
}

function damagedRecord({ name }: BackupTarget): BackupError {
  return new BackupError('DAMAGED', `The record of the backup in the target "${name}" is damaged.`)
}

async function* once(text: string): AsyncGenerator<Uint8Array, undefined> {
  yield Buffer.from(text)
}
