// Routes of the operations that make, verify and restore backups.
import { randomBytes } from 'node:crypto'
import { isTenantId } from '@tenantry/contract'
import type { FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import { BackupWithOperation, toBodyWithOperation } from './backup-body.ts'
import type { Backup } from './backup.ts'
import type { BackupWrite, RestoredTenant } from './store.ts'
import { foundBackup, backupStorage, type BackupRoutesDeps } from './routes-deps.ts'
import { limitOf, type KeyLimit } from '../keys/index.ts'
import type { Api } from '../http/api.ts'
import { respondOnce } from '../http/idempotency.ts'
import { NoQuery, waitSeconds, writeContext } from '../http/parameters.ts'
import { ControlError, tenantNotFound } from '../platform/errors.ts'
import {
  checkName,
  chooseIsolation,
  newSecrets,
  requireBackups,
  requireRoom,
  type Operation,
  type TenantWrite,
  KeysBody,
  OperationBody,
  TenantBody,
  toOperationBody,
  toTenantBody,
  waitUntilSettled,
} from '../tenants/index.ts'

const Id = Type.Object({ id: Type.String() })
export const Restored = Type.Object({ ...TenantBody.properties, keys: KeysBody, operation: OperationBody })

const NewTenant = Type.Object(
  {
    name: Type.String({ description: 'DNS label of 3 to 63 characters' }),
    plan: Type.Optional(Type.String({ description: "By default the plan of the backup's tenant" })),
    isolation: Type.Optional(
      Type.Enum(['schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant'], {
        description: "The isolation model of the new tenant. By default that of the backup's tenant",
      }),
    ),
  },
  { additionalProperties: false },
)
/** The destination of a restore. */
export const Into = Type.Union([Type.Literal('same'), NewTenant], {
  description: "`same`: the restored data replaces the tenant's. Or a new tenant to restore into",
})
const RestoreBody = Type.Object({ into: Into }, { additionalProperties: false })

export function addTakeBackup(app: Api, deps: BackupRoutesDeps): void {
  app.post(
    '/v1/tenants/:id/backups',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Take a backup of a tenant that runs',
        description: 'Responds at once; with `Prefer: wait=N` when the backup is complete, or after N seconds.',
        tags: ['backups'],
        params: Id,
        querystring: NoQuery,
        response: { 202: BackupWithOperation },
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      const wait = waitSeconds(request)
      reply.status(202)
      return respondOnce(deps, context, reply, async (record) => {
        backupStorage(deps)
        const tenant = isTenantId(request.params.id) ? await deps.tenants.get(request.params.id) : undefined
        if (tenant === undefined) throw tenantNotFound()
        requireBackups(tenant, regionOfBackup(deps, tenant.region), 'A backup')
        const taken = await record((write) => deps.backups.store.request(request.params.id, write), toBodyWithOperation)
        return settled(deps, taken, wait, request)
      })
    },
  )
}

export function addUseBackup(app: Api, deps: BackupRoutesDeps): void {
  app.post(
    '/v1/backups/:id/verify',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Restore a backup into a scratch home and compare',
        description:
          'Responds at once; with `Prefer: wait=N` when it is done, or after N seconds. ' +
          'The operation and the backup have the differences that were found.',
        tags: ['backups'],
        params: Id,
        querystring: NoQuery,
        response: { 202: BackupWithOperation },
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      const wait = waitSeconds(request)
      reply.status(202)
      return respondOnce(deps, context, reply, async (record) => {
        backupStorage(deps)
        const { id } = await foundBackup(deps, request.params.id)
        const verified = await record((write) => deps.backups.store.requestVerify(id, write), toBodyWithOperation)
        return settled(deps, verified, wait, request)
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
          "Into the backup's own tenant, whose data is replaced when the restored copy is complete and compared; " +
          'or into a new tenant, whose keys and database password are returned only here.',
        tags: ['backups'],
        params: Id,
        querystring: NoQuery,
        body: RestoreBody,
        response: { 202: Type.Union([Restored, BackupWithOperation]) },
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      const wait = waitSeconds(request)
      const { into } = request.body
      if (into !== 'same') checkName(into.name)
      reply.status(202)
      return respondOnce<Static<typeof Restored> | Static<typeof BackupWithOperation>>(
        deps,
        context,
        reply,
        async (record) => {
          backupStorage(deps)
          const backup = await foundBackup(deps, request.params.id)
          if (into === 'same') {
            const { store } = deps.backups
            const restored = await record((write) => store.requestRestore(backup.id, write), toBodyWithOperation)
            return settled(deps, restored, wait, request)
          }
          rejectOtherRegion(limitOf(request), backup)
          const tenant = await newTenant(deps, backup, into)
          const presentTenant = presentRestored(deps, tenant)
          const made = await record(
            (write) => deps.backups.store.requestRestoreInto(backup.id, tenant, write),
            presentTenant,
          )
          return presentTenant(await waitUntilSettled(deps, made, wait, request))
        },
      )
    },
  )
}

/** Rejects a new tenant outside the region of a key: its tenant has moved since the backup. @throws ControlError KEY_LIMITED */
function rejectOtherRegion({ region }: KeyLimit, backup: { region: string }): void {
  if (region === undefined || region === backup.region) return
  throw new ControlError(
    'KEY_LIMITED',
    `The backup is of the region "${backup.region}". The platform key is limited to "${region}".`,
  )
}

/**
 * Returns a function that creates the response body of a restored tenant.
 * @throws ControlError UNKNOWN_REGION
 */
export function presentRestored({ regions }: BackupRoutesDeps, { region: regionId, secrets }: RestoredTenant) {
  const region = regionOfBackup({ regions }, regionId)
  const { publishable_key, secret_key, jwt_secret, admin_password } = secrets
  return ({ tenant, operation }: TenantWrite) => ({
    ...toTenantBody(tenant, region, admin_password),
    keys: { publishable_key, secret_key, jwt_secret },
    operation: toOperationBody(operation),
  })
}

function regionOfBackup({ regions }: Pick<BackupRoutesDeps, 'regions'>, regionId: string) {
  const region = regions.find(({ id }) => id === regionId)
  if (region === undefined)
    throw new ControlError('UNKNOWN_REGION', `The region "${regionId}" of the backup is unknown.`)
  return region
}

/**
 * Returns the new tenant of a restore, with new secrets.
 * @throws ControlError MISSING_FIELD, UNKNOWN_PLAN, UNKNOWN_REGION, UNSUPPORTED_ISOLATION, REGION_FULL
 */
export async function newTenant(
  deps: BackupRoutesDeps,
  backup: Pick<Backup, 'tenantId' | 'region' | 'isolation'>,
  { name, plan, isolation }: Static<typeof NewTenant>,
): Promise<RestoredTenant> {
  const chosen = plan ?? (await deps.tenants.get(backup.tenantId))?.plan
  if (chosen === undefined)
    throw new ControlError(
      'MISSING_FIELD',
      'The field "into.plan" is required, because the tenant of the backup is deleted.',
    )
  const known = (await deps.plans.list()).map(({ id }) => id)
  if (!known.includes(chosen))
    throw new ControlError('UNKNOWN_PLAN', `Unknown plan "${chosen}". Allowed: ${known.join(', ')}.`)
  const region = regionOfBackup(deps, backup.region)
  const chosenIsolation =
    isolation === undefined ? backup.isolation : chooseIsolation(isolation, backup.isolation, region)
  requireBackups({ isolation: chosenIsolation }, region, 'A restore')
  await requireRoom(deps, region.id, { plan: chosen, isolation: chosenIsolation, takesWarm: false })
  return {
    id: `t_${randomBytes(10).toString('hex')}`,
    name,
    plan: chosen,
    region: backup.region,
    isolation: chosenIsolation,
    secrets: newSecrets(),
  }
}

/** Waits for the end of the operation or of the time, and returns the body. */
export async function settled(deps: BackupRoutesDeps, write: BackupWrite, wait: number, request: FastifyRequest) {
  const operation = await settledOperation(deps, write.operation, wait, request)
  const backup = (await deps.backups.store.get(write.backup.id)) ?? write.backup
  return toBodyWithOperation({ backup, operation })
}

async function settledOperation(
  deps: BackupRoutesDeps,
  operation: Operation,
  wait: number,
  request: FastifyRequest,
): Promise<Operation> {
  const tenant = await deps.tenants.get(operation.tenantId)
  // No changes are recorded for a deleted tenant, so there is nothing to wait for.
  return tenant === undefined
    ? operation
    : (await waitUntilSettled(deps, { tenant, operation }, wait, request)).operation
}
