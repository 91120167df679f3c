// Routes that list and read backups: of all tenants, of one tenant, and one backup.
import { isTenantId } from '@tenantry/contract'
import { Type } from 'typebox'
import { BackupBody, BackupWithCopies, toBackupBody } from './backup-body.ts'
import {
  foundBackup,
  fromTargets,
  backupStorage,
  readMilliseconds,
  unknownBackup,
  type BackupRoutesDeps,
} from './routes-deps.ts'
import { pageOfIds, toUnknownBackupBody, UnknownBackupBody } from './routes-unknown.ts'
import type { Api } from '../http/api.ts'
import { NoQuery, PageQuery, pageRequest } from '../http/parameters.ts'
import { ControlError, tenantNotFound } from '../platform/errors.ts'

const Maybe = Type.Union([Type.String(), Type.Null()])
const Id = Type.Object({ id: Type.String() })
const AnyBackup = Type.Union([BackupBody, UnknownBackupBody])
const LastProven = Type.Union([Type.Object({ backup_id: Type.String(), at: Type.String() }), Type.Null()], {
  description: 'The last backup that was restored into a scratch home and found equal. It may have been removed',
})
const listedStates = ['running', 'complete', 'failed', 'missing', 'unknown'] as const

export function addReadBackups(app: Api, deps: BackupRoutesDeps): void {
  app.get(
    '/v1/backups',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'List the backups of all tenants, oldest first',
        description: [
          '`state=missing`: complete backups whose files are in no backup target.',
          '`state=unknown`: backups in a target that the control database does not know. Both are in the order of their IDs.',
        ].join(' '),
        tags: ['backups'],
        querystring: Type.Object(
          { ...PageQuery, state: Type.Optional(Type.Enum(listedStates)) },
          { additionalProperties: false },
        ),
        response: { 200: Type.Object({ backups: Type.Array(AnyBackup), next_cursor: Maybe }) },
      },
    },
    async (request) => {
      const { state } = request.query
      const page = pageRequest(request.query)
      if (state === 'unknown') {
        const { unknown } = backupStorage(deps)
        const { ids, next_cursor } = pageOfIds(await fromTargets(unknown.ids()), page)
        return {
          backups: (await fromTargets(unknown.get(ids, deps.clock.timeout(readMilliseconds)))).map(toUnknownBackupBody),
          next_cursor,
        }
      }
      if (state === 'missing') {
        const { ids, next_cursor } = pageOfIds(await missingIds(deps), page)
        return { backups: (await deps.backups.store.getMany(ids)).map(toBackupBody), next_cursor }
      }
      const { items, nextCursor } = await deps.backups.store.listAll(state, page)
      return { backups: items.map(toBackupBody), next_cursor: nextCursor ?? null }
    },
  )

  app.get(
    '/v1/tenants/:id/backups',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: "List a tenant's backups, oldest first; also when the tenant is gone",
        tags: ['backups'],
        params: Id,
        querystring: Type.Object(PageQuery, { additionalProperties: false }),
        response: {
          200: Type.Object({ backups: Type.Array(BackupBody), next_cursor: Maybe, last_proven: LastProven }),
        },
      },
    },
    async (request) => {
      const { id } = request.params
      const page = isTenantId(id)
        ? await deps.backups.store.list(id, pageRequest(request.query))
        : { items: [], nextCursor: undefined }
      if (page.items.length === 0 && (!isTenantId(id) || (await deps.tenants.get(id)) === undefined))
        throw tenantNotFound()
      const proven = await deps.backups.store.lastProven(id)
      return {
        backups: page.items.map(toBackupBody),
        next_cursor: page.nextCursor ?? null,
        last_proven: proven === undefined ? null : { backup_id: proven.backupId, at: proven.at.toISOString() },
      }
    },
  )

  app.get(
    '/v1/backups/:id',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'One backup',
        tags: ['backups'],
        params: Id,
        querystring: NoQuery,
        response: { 200: Type.Union([BackupWithCopies, UnknownBackupBody]) },
      },
    },
    async (request) => {
      const { id } = request.params
      const unknown = await unknownBackup(deps, id)
      if (unknown !== undefined) return toUnknownBackupBody(unknown)
      const backup = toBackupBody(await foundBackup(deps, id))
      return { ...backup, copies: (await deps.backups.storage?.targets.copies(backup.id)) ?? [] }
    },
  )
}

async function missingIds(deps: BackupRoutesDeps): Promise<string[]> {
  const complete = await deps.backups.store.completeIds()
  // The files are listed after the rows: a backup that is removed meanwhile may be reported as missing, but an existing
  // one never is.
  const listings = await fromTargets(backupStorage(deps).targets.list())
  const unlisted = listings.find(({ entries }) => entries === undefined)
  if (unlisted !== undefined)
    throw new ControlError('UNAVAILABLE', `The backup target "${unlisted.target.name}" cannot be used now.`)
  const whole = new Set(
    listings.flatMap(({ entries = [] }) => entries.flatMap(({ id, content }) => (content === 'whole' ? [id] : []))),
  )
  return complete.filter((id) => !whole.has(id))
}
