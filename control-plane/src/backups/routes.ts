// Backups of tenants with a database of their own: taken, listed, removed, verified and restored.
import { randomBytes } from 'node:crypto'
import { isTenantId } from '@tenantry/contract'
import type { FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import type { Backup } from './backup.ts'
import type { BackupStore, BackupWrite, RestoredTenant } from './backup-store.ts'
import type { UnknownBackup, UnknownBackups } from './unknown-backups.ts'
import { ControlError } from '../platform/errors.ts'
import {
  checkName,
  newSecrets,
  type Operation,
  KeysBody,
  OperationBody,
  TenantBody,
  toOperationBody,
  toTenantBody,
  waitUntilSettled,
  type WaitDeps,
} from '../tenants/index.ts'
import type { Api } from '../http/api.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { PlanStore } from '../plans/index.ts'
import type { Clock } from '../platform/clock.ts'
import type { BackupTarget } from './backup-target.ts'
import { answerOnce, type AnswerDeps } from '../http/idempotency.ts'
import { isUuid } from '../http/uuid.ts'
import { NoBody, PageQuery, pageRequest, waitSeconds, writeContext, NoQuery } from '../http/parameters.ts'
import { pageOfIds, toUnknownBackupBody, UnknownBackupBody } from './routes-unknown.ts'

const Maybe = Type.Union([Type.String(), Type.Null()])
const Id = Type.Object({ id: Type.String() })
/** For what is read of the directory of backups within a call. */
const readMilliseconds = 20_000

const BackupBody = Type.Object({
  id: Type.String(),
  tenant_id: Type.String({ description: 'It may be gone by now' }),
  region: Type.String(),
  state: Type.Enum(['running', 'complete', 'failed']),
  trigger: Type.Enum(['request', 'schedule']),
  planned_at: Maybe,
  bytes: Type.Union([Type.Integer({ description: 'As it is kept: compressed and encrypted' }), Type.Null()]),
  manifest_sha256: Maybe,
  error: Maybe,
  created: Type.String({ description: 'ISO 8601, UTC' }),
  finished: Maybe,
  verified: Type.Union([Type.String({ description: 'When a restored copy was last compared with it' }), Type.Null()]),
  verify_error: Maybe,
})
const AnyBackup = Type.Union([BackupBody, UnknownBackupBody])
const listedStates = ['running', 'complete', 'failed', 'missing', 'unknown'] as const
const WithOperation = Type.Object({ ...BackupBody.properties, operation: OperationBody })
const Restored = Type.Object({ ...TenantBody.properties, keys: KeysBody, operation: OperationBody })

const NewTenant = Type.Object(
  {
    name: Type.String({ description: 'DNS label of 3 to 63 characters' }),
    plan: Type.Optional(Type.String({ description: 'Without it: the plan of the tenant that the backup is of' })),
  },
  { additionalProperties: false },
)
const RestoreBody = Type.Object(
  {
    into: Type.Union([Type.Literal('same'), NewTenant], {
      description:
        '`same`: the data of the backup takes the place of what the tenant has; or a tenant that is made for it',
    }),
  },
  { additionalProperties: false },
)

/** What the routes of backups are given. */
export interface BackupRoutesDeps extends AnswerDeps, WaitDeps {
  regions: readonly RegionConfig[]
  plans: Pick<PlanStore, 'list'>
  /** `kept` is undefined when the installation keeps no backups. */
  backups: { store: BackupStore; kept: { target: BackupTarget; unknown: UnknownBackups } | undefined }
  clock: Pick<Clock, 'timeout'>
}

export function addBackupRoutes(app: Api, deps: BackupRoutesDeps): void {
  addReadBackups(app, deps)
  addTakeBackup(app, deps)
  addRemoveBackup(app, deps)
  addAdoptBackup(app, deps)
  addUseBackup(app, deps)
}

function addReadBackups(app: Api, deps: BackupRoutesDeps): void {
  app.get(
    '/v1/backups',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'List the backups of all tenants, oldest first',
        description: [
          '`state=missing`: complete ones whose files are not in the directory of backups.',
          '`state=unknown`: what that directory has and the control database does not know. Both are in the order of their IDs.',
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
        const { unknown } = keptOf(deps)
        const { ids, next_cursor } = pageOfIds(await unknown.ids(), page)
        return {
          backups: (await unknown.get(ids, deps.clock.timeout(readMilliseconds))).map(toUnknownBackupBody),
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
        response: { 200: Type.Object({ backups: Type.Array(BackupBody), next_cursor: Maybe }) },
      },
    },
    async (request) => {
      const { id } = request.params
      const page = isTenantId(id)
        ? await deps.backups.store.list(id, pageRequest(request.query))
        : { items: [], nextCursor: undefined }
      if (page.items.length === 0 && (!isTenantId(id) || (await deps.tenants.get(id)) === undefined))
        throw new ControlError('TENANT_NOT_FOUND', 'there is no such tenant')
      return { backups: page.items.map(toBackupBody), next_cursor: page.nextCursor ?? null }
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
        response: { 200: AnyBackup },
      },
    },
    async (request) => {
      const { id } = request.params
      const unknown = await unknownBackup(deps, id)
      return unknown === undefined ? toBackupBody(await foundBackup(deps, id)) : toUnknownBackupBody(unknown)
    },
  )
}

function addTakeBackup(app: Api, deps: BackupRoutesDeps): void {
  app.post(
    '/v1/tenants/:id/backups',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Take a backup of a tenant that runs',
        description: 'Answers at once; with `Prefer: wait=N` when it is complete, or after N seconds.',
        tags: ['backups'],
        params: Id,
        querystring: NoQuery,
        response: { 202: WithOperation },
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      const wait = waitSeconds(request)
      reply.status(202)
      return answerOnce(deps, context, reply, async () => {
        keptOf(deps)
        if (!isTenantId(request.params.id)) throw new ControlError('TENANT_NOT_FOUND', 'there is no such tenant')
        return settled(deps, await deps.backups.store.request(request.params.id, context, present), wait, request)
      })
    },
  )
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
        response: { 200: AnyBackup },
      },
    },
    async (request) => {
      const { target } = keptOf(deps)
      const context = { ...writeContext(request), idempotency: undefined }
      const unknown = await unknownBackup(deps, request.params.id)
      const { id } = unknown ?? (await foundBackup(deps, request.params.id))
      const removed =
        unknown === undefined
          ? toBackupBody(await deps.backups.store.remove(id, context))
          : toUnknownBackupBody(unknown)
      if (unknown !== undefined) await deps.backups.store.recordUnknownRemoved(id, context)
      // What can't be removed now is found by the next survey: as being removed, or as unknown.
      await target.remove(id).catch((cause: unknown) => {
        request.log.warn({ err: cause, backup: id }, "a backup's files could not be removed")
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
          'Its record must be of this installation and sealed with its master key. One that was adopted before stays as it is.',
        tags: ['backups'],
        params: Id,
        querystring: NoQuery,
        body: NoBody,
        response: { 200: BackupBody },
      },
    },
    async (request) => {
      const { target } = keptOf(deps)
      const unknown = await unknownBackup(deps, request.params.id)
      if (unknown === undefined) return toBackupBody(await foundBackup(deps, request.params.id))
      const { id, record } = unknown
      if (record.problem !== undefined) {
        const { code, message } = record.problem
        throw new ControlError('BACKUP_NOT_ADOPTABLE', `The backup can't be adopted. ${message}`, {
          detail: { problem: code },
        })
      }
      const adopted = await deps.backups.store.adopt(record, { ...writeContext(request), idempotency: undefined })
      // Until it is moved back it is read where it is; the next survey moves it, too.
      await target.release(id).catch((cause: unknown) => {
        request.log.warn({ err: cause, backup: id }, 'an adopted backup could not be moved out of the quarantine')
      })
      return toBackupBody(adopted)
    },
  )
}

function addUseBackup(app: Api, deps: BackupRoutesDeps): void {
  app.post(
    '/v1/backups/:id/verify',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Restore a backup into a scratch home and compare',
        description:
          'Answers at once; with `Prefer: wait=N` when it is done, or after N seconds. What was found wrong stands in the operation and in the backup.',
        tags: ['backups'],
        params: Id,
        querystring: NoQuery,
        response: { 202: WithOperation },
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      const wait = waitSeconds(request)
      reply.status(202)
      return answerOnce(deps, context, reply, async () => {
        keptOf(deps)
        const { id } = await foundBackup(deps, request.params.id)
        return settled(deps, await deps.backups.store.requestVerify(id, context, present), wait, request)
      })
    },
  )

  app.post(
    '/v1/backups/:id/restore',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Restore a backup',
        description:
          'Into the tenant it is of, whose data is replaced when the restored copy is complete and compared; or into a new tenant, whose keys and database password are shown here only.',
        tags: ['backups'],
        params: Id,
        querystring: NoQuery,
        body: RestoreBody,
        response: { 202: Type.Union([Restored, WithOperation]) },
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      const wait = waitSeconds(request)
      const { into } = request.body
      if (into !== 'same') checkName(into.name)
      reply.status(202)
      return answerOnce<Static<typeof Restored> | Static<typeof WithOperation>>(deps, context, reply, async () => {
        keptOf(deps)
        const backup = await foundBackup(deps, request.params.id)
        if (into === 'same')
          return settled(deps, await deps.backups.store.requestRestore(backup.id, context, present), wait, request)
        return restoreInto(deps, backup, await newTenant(deps, backup, into), wait, request)
      })
    },
  )
}

async function restoreInto(
  deps: BackupRoutesDeps,
  backup: Backup,
  tenant: RestoredTenant,
  wait: number,
  request: FastifyRequest,
) {
  const region = deps.regions.find(({ id }) => id === tenant.region)
  if (region === undefined)
    throw new ControlError('UNKNOWN_REGION', `the region "${tenant.region}" of the backup is not known`)
  const context = writeContext(request)
  const { publishable_key, secret_key, jwt_secret, admin_password } = tenant.secrets
  const answer = ({
    tenant,
    operation,
  }: Parameters<Parameters<typeof deps.backups.store.requestRestoreInto>[3]>[0]) => ({
    ...toTenantBody(tenant, region, admin_password),
    keys: { publishable_key, secret_key, jwt_secret },
    operation: toOperationBody(operation),
  })
  const made = await deps.backups.store.requestRestoreInto(backup.id, tenant, context, answer)
  const last = answer(await waitUntilSettled(deps, made, wait, request))
  await deps.answers.keep(context, last)
  return last
}

async function newTenant(
  deps: BackupRoutesDeps,
  backup: Backup,
  { name, plan }: Static<typeof NewTenant>,
): Promise<RestoredTenant> {
  const chosen = plan ?? (await deps.tenants.get(backup.tenantId))?.plan
  if (chosen === undefined)
    throw new ControlError('MISSING_FIELD', 'field "into.plan" is missing: the tenant that the backup is of is gone')
  const known = (await deps.plans.list()).map(({ id }) => id)
  if (!known.includes(chosen))
    throw new ControlError('UNKNOWN_PLAN', `plan "${chosen}" is not known; known: ${known.join(', ')}`)
  return {
    id: `t_${randomBytes(10).toString('hex')}`,
    name,
    plan: chosen,
    region: backup.region,
    isolation: 'database-per-tenant',
    secrets: newSecrets(),
  }
}

/** @throws ControlError BACKUPS_OFF */
function keptOf({ backups }: BackupRoutesDeps) {
  if (backups.kept === undefined)
    throw new ControlError(
      'BACKUPS_OFF',
      'this installation keeps no backups: it has no directory for them (TENANTRY_BACKUPS)',
    )
  return backups.kept
}

async function missingIds(deps: BackupRoutesDeps): Promise<string[]> {
  const complete = await deps.backups.store.completeIds()
  // Listed after the rows were read: a backup that is removed meanwhile may show, one that is there does not.
  const whole = new Set(
    (await keptOf(deps).target.list()).flatMap(({ id, content }) => (content === 'whole' ? [id] : [])),
  )
  return complete.filter((id) => !whole.has(id))
}

/** @throws ControlError BACKUP_NOT_FOUND; BACKUP_NOT_ADOPTED when it is in the quarantine */
async function foundBackup(deps: BackupRoutesDeps, id: string): Promise<Backup> {
  const backup = isUuid(id) ? await deps.backups.store.get(id) : undefined
  if (backup !== undefined) return backup
  if ((await unknownBackup(deps, id)) !== undefined) {
    const first = `Adopt it first: POST /v1/backups/${id}/adopt.`
    throw new ControlError('BACKUP_NOT_ADOPTED', `The control database does not know the backup "${id}". ${first}`)
  }
  throw new ControlError('BACKUP_NOT_FOUND', 'there is no such backup')
}

/** A backup in the quarantine that has no row. */
async function unknownBackup({ backups, clock }: BackupRoutesDeps, id: string): Promise<UnknownBackup | undefined> {
  if (backups.kept === undefined || !isUuid(id) || (await backups.store.get(id)) !== undefined) return undefined
  return (await backups.kept.unknown.get([id], clock.timeout(readMilliseconds)))[0]
}

/** As it is when the operation has ended, or the time is over. */
async function settled(deps: BackupRoutesDeps, write: BackupWrite, wait: number, request: FastifyRequest) {
  const operation = await settledOperation(deps, write.operation, wait, request)
  const backup = (await deps.backups.store.get(write.backup.id)) ?? write.backup
  const answer = present({ backup, operation })
  await deps.answers.keep(writeContext(request), answer)
  return answer
}

async function settledOperation(
  deps: BackupRoutesDeps,
  operation: Operation,
  wait: number,
  request: FastifyRequest,
): Promise<Operation> {
  const tenant = await deps.tenants.get(operation.tenantId)
  // Of a tenant that is gone nobody tells anything.
  return tenant === undefined
    ? operation
    : (await waitUntilSettled(deps, { tenant, operation }, wait, request)).operation
}

const present = ({ backup, operation }: BackupWrite) => ({
  ...toBackupBody(backup),
  operation: toOperationBody(operation),
})

function toBackupBody(backup: Backup): Static<typeof BackupBody> {
  return {
    id: backup.id,
    tenant_id: backup.tenantId,
    region: backup.region,
    state: backup.state,
    trigger: backup.trigger,
    planned_at: backup.plannedAt?.toISOString() ?? null,
    bytes: backup.bytes ?? null,
    manifest_sha256: backup.manifestHash ?? null,
    error: backup.error ?? null,
    created: backup.createdAt.toISOString(),
    finished: backup.finishedAt?.toISOString() ?? null,
    verified: backup.verifiedAt?.toISOString() ?? null,
    verify_error: backup.verifyError ?? null,
  }
}
