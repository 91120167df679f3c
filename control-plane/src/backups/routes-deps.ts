// The dependencies of the routes of backups, and how they find a backup.
import type { Backup } from './backup.ts'
import type { BackupStore } from './backup-store.ts'
import type { BackupTarget } from './backup-target.ts'
import type { UnknownBackup, UnknownBackups } from './unknown-backups.ts'
import type { ResponseDeps } from '../http/idempotency.ts'
import { isUuid } from '../http/uuid.ts'
import type { PlanStore } from '../plans/index.ts'
import type { Clock } from '../platform/clock.ts'
import { ControlError } from '../platform/errors.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { WaitDeps } from '../tenants/index.ts'

/** The timeout of a read of the backup directory. */
export const readMilliseconds = 20_000

/** The dependencies of the routes of backups. */
export interface BackupRoutesDeps extends ResponseDeps, WaitDeps {
  regions: readonly RegionConfig[]
  plans: Pick<PlanStore, 'list'>
  /** The stores of backups. `storage` is undefined when the installation stores no backups. */
  backups: { store: BackupStore; storage: { target: BackupTarget; unknown: UnknownBackups } | undefined }
  clock: Pick<Clock, 'timeout'>
}

/**
 * Returns the storage of backups.
 * @throws ControlError BACKUPS_OFF
 */
export function backupStorage({ backups }: BackupRoutesDeps) {
  if (backups.storage === undefined)
    throw new ControlError(
      'BACKUPS_OFF',
      'Backups are off: this installation has no backup directory (TENANTRY_BACKUPS).',
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
  return (await backups.storage.unknown.get([id], clock.timeout(readMilliseconds)))[0]
}
