// What is done with backups in an operation: one is taken, verified or restored.
import { randomBytes } from 'node:crypto'
import { isTenantId } from '@tenantry/contract'
import type { FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import { BackupWithOperation, toBodyWithOperation } from './backup-body.ts'
import type { Backup } from './backup.ts'
import type { BackupWrite, RestoredTenant } from './backup-store.ts'
import { foundBackup, storedOf, type BackupRoutesDeps } from './routes-deps.ts'
import type { Api } from '../http/api.ts'
import { respondOnce } from '../http/idempotency.ts'
import { NoQuery, waitSeconds, writeContext } from '../http/parameters.ts'
import { ControlError } from '../platform/errors.ts'
import {
  checkName,
  newSecrets,
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

export function addTakeBackup(app: Api, deps: BackupRoutesDeps): void {
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
        response: { 202: BackupWithOperation },
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      const wait = waitSeconds(request)
      reply.status(202)
      return respondOnce(deps, context, reply, async (record) => {
        storedOf(deps)
        if (!isTenantId(request.params.id)) throw new ControlError('TENANT_NOT_FOUND', 'there is no such tenant')
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
          'Answers at once; with `Prefer: wait=N` when it is done, or after N seconds. ' +
          'What was found wrong stands in the operation and in the backup.',
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
        storedOf(deps)
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
          'Into the tenant it is of, whose data is replaced when the restored copy is complete and compared; ' +
          'or into a new tenant, whose keys and database password are shown here only.',
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
          storedOf(deps)
          const backup = await foundBackup(deps, request.params.id)
          if (into === 'same') {
            const { store } = deps.backups
            const restored = await record((write) => store.requestRestore(backup.id, write), toBodyWithOperation)
            return settled(deps, restored, wait, request)
          }
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

/** @throws ControlError UNKNOWN_REGION */
function presentRestored({ regions }: BackupRoutesDeps, { region: regionId, secrets }: RestoredTenant) {
  const region = regions.find(({ id }) => id === regionId)
  if (region === undefined)
    throw new ControlError('UNKNOWN_REGION', `the region "${regionId}" of the backup is not known`)
  const { publishable_key, secret_key, jwt_secret, admin_password } = secrets
  return ({ tenant, operation }: TenantWrite) => ({
    ...toTenantBody(tenant, region, admin_password),
    keys: { publishable_key, secret_key, jwt_secret },
    operation: toOperationBody(operation),
  })
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

/** As it is when the operation has ended, or the time is over. */
async function settled(deps: BackupRoutesDeps, write: BackupWrite, wait: number, request: FastifyRequest) {
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
  // Of a tenant that is gone nobody tells anything.
  return tenant === undefined
    ? operation
    : (await waitUntilSettled(deps, { tenant, operation }, wait, request)).operation
}
