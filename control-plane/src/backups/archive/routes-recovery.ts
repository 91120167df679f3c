// Routes of recovery to a point in time: what can be recovered, and a restore.
import { isTenantId } from '@tenantry/contract'
import { Type, type Static } from 'typebox'
import type { Api } from '../../http/api.ts'
import { respondOnce } from '../../http/idempotency.ts'
import { NoQuery, waitSeconds, writeContext } from '../../http/parameters.ts'
import { ControlError, tenantNotFound } from '../../platform/errors.ts'
import { checkName, requireDedicated, waitUntilSettled } from '../../tenants/index.ts'
import { BackupWithOperation, toBodyWithOperation } from '../backup-body.ts'
import { backupStorage, type BackupRoutesDeps } from '../routes-deps.ts'
import { Into, newTenant, presentRestored, Restored, settled } from '../routes-operations.ts'
import { rangesOf } from './archive.ts'
import type { Recovery } from './store-recovery.ts'

const Id = Type.Object({ id: Type.String() })
const Maybe = Type.Union([Type.String(), Type.Null()])
const momentPattern = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,3})?(Z|[+-]\\d{2}:\\d{2})$'

const RecoverBody = Type.Object(
  {
    to: Type.String({ pattern: momentPattern, description: 'ISO 8601 with a time zone, to the millisecond' }),
    into: Into,
  },
  { additionalProperties: false },
)

const RecoveryBody = Type.Object({
  archive_days: Type.Union([Type.Integer(), Type.Null()], { description: 'null: no archive' }),
  earliest: Maybe,
  latest: Maybe,
  ranges: Type.Array(Type.Object({ from: Type.String(), to: Type.String() }), {
    description: 'The periods in which each moment can be recovered. There are several after a gap',
  }),
  lag_seconds: Type.Union([Type.Number({ description: 'Time since the latest moment' }), Type.Null()]),
  bytes: Type.Integer({ description: 'Stored size of base backups and WAL: compressed and encrypted' }),
  last_base: Type.Union([Type.String({ description: 'End of the last base backup' }), Type.Null()]),
  error: Type.Union([Type.String({ description: 'Why archiving fails at present' }), Type.Null()]),
  last_proven: Type.Union([Type.Object({ to: Type.String(), at: Type.String() }), Type.Null()], {
    description: 'The last restore to a point in time whose result was compared',
  }),
})

/** Adds the routes of recovery to a point in time. */
export function addRecovery(app: Api, deps: BackupRoutesDeps): void {
  app.get(
    '/v1/tenants/:id/recovery',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'Read which moments a tenant can be restored to',
        tags: ['backups'],
        params: Id,
        querystring: NoQuery,
        response: { 200: RecoveryBody },
      },
    },
    async (request) => {
      const tenant = await presentTenant(deps, request.params.id)
      const recovery = await backupStorage(deps).archives.recovery.get(tenant.id)
      return toRecoveryBody(tenant.archiveDays, recovery, deps.now())
    },
  )

  app.post(
    '/v1/tenants/:id/restore',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Restore a tenant to a point in time',
        description:
          'Makes a backup of the tenant as it was at that moment from its archive, and restores it: into the tenant itself, ' +
          'whose data is replaced when the restored copy is complete and compared; or into a new tenant, whose keys and ' +
          'database password are returned only here.',
        tags: ['backups'],
        params: Id,
        querystring: NoQuery,
        body: RecoverBody,
        response: { 202: Type.Union([Restored, BackupWithOperation]) },
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      const wait = waitSeconds(request)
      const { into } = request.body
      const to = readMoment(request.body.to)
      if (into !== 'same') checkName(into.name)
      reply.status(202)
      return respondOnce<Static<typeof Restored> | Static<typeof BackupWithOperation>>(
        deps,
        context,
        reply,
        async (record) => {
          const { recovery } = backupStorage(deps).archives
          const tenant = await presentTenant(deps, request.params.id)
          requireDedicated(tenant, 'A restore to a point in time')
          if (into === 'same') {
            const restored = await record((write) => recovery.request(tenant.id, to, write), toBodyWithOperation)
            return settled(deps, restored, wait, request)
          }
          const { region, isolation } = tenant
          const fresh = await newTenant(deps, { tenantId: tenant.id, region, isolation }, into)
          const present = presentRestored(deps, fresh)
          const made = await record((write) => recovery.requestInto(tenant.id, to, fresh, write), present)
          return present(await waitUntilSettled(deps, made, wait, request))
        },
      )
    },
  )
}

async function presentTenant(deps: BackupRoutesDeps, id: string) {
  const tenant = isTenantId(id) ? await deps.tenants.get(id) : undefined
  if (tenant === undefined) throw tenantNotFound()
  return tenant
}

/** Reads a moment. @throws ControlError INVALID_FIELD for a date that does not exist */
function readMoment(text: string): Date {
  const moment = new Date(text)
  if (Number.isNaN(moment.getTime()))
    throw new ControlError('INVALID_FIELD', 'Field "to" must be an existing time in ISO 8601 with a time zone.')
  return moment
}

function toRecoveryBody(
  archiveDays: number | undefined,
  { archives, lastProven }: Recovery,
  now: Date,
): Static<typeof RecoveryBody> {
  const ranges = rangesOf(archives)
  const latest = ranges.at(-1)?.to
  const ends = archives.flatMap(({ bases }) => bases.flatMap(({ completeAt }) => completeAt?.getTime() ?? []))
  return {
    archive_days: archiveDays ?? null,
    earliest: ranges[0]?.from.toISOString() ?? null,
    latest: latest?.toISOString() ?? null,
    ranges: ranges.map(({ from, to }) => ({ from: from.toISOString(), to: to.toISOString() })),
    lag_seconds: latest === undefined ? null : (now.getTime() - latest.getTime()) / 1000,
    bytes: archives.reduce((sum, { bytes }) => sum + bytes, 0),
    last_base: ends.length === 0 ? null : new Date(Math.max(...ends)).toISOString(),
    error: archives.at(-1)?.error ?? null,
    last_proven: lastProven === undefined ? null : { to: lastProven.to.toISOString(), at: lastProven.at.toISOString() },
  }
}
