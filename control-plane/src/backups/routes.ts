// All routes of backups of tenants. Those that remove and adopt a backup are in this file.
import { Type } from 'typebox'
import { addRecovery } from './archive/routes-recovery.ts'
import { BackupBody, toBackupBody } from './backup-body.ts'
import { foundBackup, backupStorage, unknownBackup, type BackupRoutesDeps } from './routes-deps.ts'
import { addTakeBackup, addUseBackup } from './routes-operations.ts'
import { addReadBackups } from './routes-read.ts'
import { toUnknownBackupBody, UnknownBackupBody } from './routes-unknown.ts'
import type { Api } from '../http/api.ts'
import { NoBody, NoQuery, writeContext } from '../http/parameters.ts'
import { ControlError } from '../platform/errors.ts'

const Id = Type.Object({ id: Type.String() })

/** Adds the routes of backups: list, take, remove, adopt, verify and restore. */
export function addBackupRoutes(app: Api, deps: BackupRoutesDeps): void {
  addReadBackups(app, deps)
  addTakeBackup(app, deps)
  addRemoveBackup(app, deps)
  addAdoptBackup(app, deps)
  addUseBackup(app, deps)
  addRecovery(app, deps)
}

function addRemoveBackup(app: Api, deps: BackupRoutesDeps): void {
  app.delete(
    '/v1/backups/:id',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Remove a backup for good, also an unknown one',
        tags: ['backups'],
        params: Id,
        querystring: NoQuery,
        response: { 200: Type.Union([BackupBody, UnknownBackupBody]) },
      },
    },
    async (request) => {
      const { targets } = backupStorage(deps)
      const { actor } = writeContext(request)
      const unknown = await unknownBackup(deps, request.params.id)
      const { id } = unknown ?? (await foundBackup(deps, request.params.id))
      const removed =
        unknown === undefined
          ? toBackupBody(await deps.record(actor, (write) => deps.backups.store.remove(id, write)))
          : toUnknownBackupBody(unknown)
      if (unknown !== undefined) await deps.record(actor, (write) => deps.backups.store.recordUnknownRemoved(id, write))
      // The next survey finds files that can't be removed now: as being removed, or as unknown.
      await targets.remove(id).catch((cause: unknown) => {
        request.log.warn({ err: cause, backup: id }, 'The files of a backup could not be removed.')
      })
      return removed
    },
  )
}

function addAdoptBackup(app: Api, deps: BackupRoutesDeps): void {
  app.post(
    '/v1/backups/:id/adopt',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Adopt a backup that the control database does not know',
        description:
          'Its record must be of this installation and sealed with its master key. A backup that was adopted before stays as it is.',
        tags: ['backups'],
        params: Id,
        querystring: NoQuery,
        body: NoBody,
        response: { 200: BackupBody },
      },
    },
    async (request) => {
      const { targets } = backupStorage(deps)
      const unknown = await unknownBackup(deps, request.params.id)
      if (unknown === undefined) return toBackupBody(await foundBackup(deps, request.params.id))
      const { id, record } = unknown
      if (record.error !== undefined) {
        const { code, message } = record.error
        throw new ControlError('BACKUP_NOT_ADOPTABLE', `The backup can't be adopted. ${message}`, {
          detail: { problem: code },
        })
      }
      const { actor } = writeContext(request)
      const adopted = await deps.record(actor, (write) => deps.backups.store.adopt(record, write))
      // Until it is moved back, it is read from the quarantine. The next survey moves it otherwise.
      await targets.release(id).catch((cause: unknown) => {
        request.log.warn({ err: cause, backup: id }, 'An adopted backup could not be moved out of the quarantine.')
      })
      return toBackupBody(adopted)
    },
  )
}
