// The dependencies of the routes of backups, and how they find a backup.
import type { Archives } from './archive/open-archives.ts'
import type { Backup } from './backup.ts'
import { isTargetFailure } from './backup-error.ts'
import type { BackupStore } from './store.ts'
import type { BackupTargets } from './target-set.ts'
import type { UnknownBackup, UnknownBackups } from './unknown-backups.ts'
import type { ResponseDeps } from '../http/idempotency.ts'
import { isUuid } from '../platform/uuid.ts'
import type { PlanStore } from '../plans/index.ts'
import type { Clock } from '../platform/clock.ts'
import { ControlError } from '../platform/errors.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { RoomDeps, WaitDeps } from '../tenants/index.ts'

/** The timeout of a read of the backup targets. */
export const readMilliseconds = 20_000

/** The dependencies of the routes of backups. */
export interface BackupRoutesDeps extends ResponseDeps, WaitDeps, RoomDeps {
  regions: readonly RegionConfig[]
  plans: Pick<PlanStore, 'list'>
  /** The stores of backups. `storage` is undefined when the installation stores no backups. */
  backups: {
    store: BackupStore
    storage: { targets: BackupTargets; unknown: UnknownBackups; archives: Archives } | undefined
  }
  clock: Pick<Clock, 'timeout'>
  /** The current time. */
  now: () => Date
}

/**
 * Returns the storage of backups.
 * @throws ControlError BACKUPS_OFF
 */
export function backupStorage({ backups }: BackupRoutesDeps) {
  if (backups.storage === undefined)
    throw new ControlError(
      'BACKUPS_OFF',
      'Backups are off: this installation has no backup target (TENANTRY_BACKUPS, TENANTRY_BACKUP_TARGETS_FILE).',
    )
  return backups.storage
}

/**
 * Returns a known backup.
 * @throws ControlError BACKUP_NOT_FOUND; BACKUP_NOT_ADOPTED when it is in the quarantine
 */
export async function foundBackup(deps: BackupRoutesDeps, id: string): Promise<Backup> {
  const backup = isUuid(id) ? await deps.backups.store.get(id) : undefined
  if (backup !== undefined) return backup
  if ((await unknownBackup(deps, id)) !== undefined) {
    const first = `Adopt it first: POST /v1/backups/${id}/adopt.`
    throw new ControlError('BACKUP_NOT_ADOPTED', `The control database does not know the backup "${id}". ${first}`)
  }
  throw new ControlError('BACKUP_NOT_FOUND', 'There is no such backup.')
}

/** Finds a backup in the quarantine that has no row. */
export async function unknownBackup(
  { backups, clock }: BackupRoutesDeps,
  id: string,
): Promise<UnknownBackup | undefined> {
  if (backups.storage === undefined || !isUuid(id) || (await backups.store.get(id)) !== undefined) return undefined
  return (await fromTargets(backups.storage.unknown.get([id], clock.timeout(readMilliseconds))))[0]
}

/**
 * Returns what was read from the targets.
 * @throws ControlError UNAVAILABLE when none of them responds
 */
export async function fromTargets<T>(read: Promise<T>): Promise<T> {
  try {
    return await read
  } catch (cause) {
    if (isTargetFailure(cause)) throw new ControlError('UNAVAILABLE', cause.message, { cause })
    throw cause
  }
}
