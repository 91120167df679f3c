// Tenants and operations as the API returns them.
import { Type, type Static } from 'typebox'
import { readOnlyDatabase } from '../homes/index.ts'
import { planIsolationsOf } from '../engines/index.ts'
import { compareIsolation, isolationInRegion } from '../stacks/index.ts'
import type { RegionConfig } from '../regions/index.ts'
import {
  driftPolicies,
  operationKinds,
  type ComponentSize,
  type Move,
  type Operation,
  type Status,
  type Tenant,
} from './tenant.ts'

/**
 * Statuses that the API returns. A tenant that was created in advance is not visible, and is pending once it is
 * claimed.
 */
export const shownStatuses = [
  'pending',
  'ready',
  'suspended',
  'paused',
  'deleting',
  'failed',
] as const satisfies Status[]

const Timestamp = Type.String({ description: 'ISO 8601, UTC' })
const Nullable = <T extends ReturnType<typeof Type.String> | ReturnType<typeof Type.Integer>>(schema: T) =>
  Type.Union([schema, Type.Null()])

/** An operation as the API returns it. */
export const OperationBody = Type.Object({
  id: Type.String(),
  tenant_id: Type.String(),
  kind: Type.Enum([...operationKinds]),
  state: Type.Enum(['pending', 'running', 'succeeded', 'failed', 'superseded']),
  step: Nullable(Type.String()),
  attempts: Type.Integer(),
  error: Nullable(Type.String()),
  created: Timestamp,
  started: Nullable(Timestamp),
  finished: Nullable(Timestamp),
  move: Type.Optional(
    Type.Object(
      {
        from: Type.String({ description: 'The database that the home leaves' }),
        to: Type.String(),
        from_region: Nullable(
          Type.String({ description: 'The region that the tenant leaves; null: it stays in its own' }),
        ),
        to_region: Nullable(Type.String()),
        from_isolation: Nullable(
          Type.String({ description: 'The isolation that the tenant has before; null: the one that it keeps' }),
        ),
        to_isolation: Nullable(Type.String({ description: 'The isolation that the tenant gets; null: its own' })),
        rows: Type.Integer({ description: 'Rows that are copied, with those of changes' }),
        bytes: Type.Integer({ description: 'Bytes of the rows as COPY writes them' }),
        pending_bytes: Type.Union([Type.Integer(), Type.Null()], {
          description: 'Bytes of the write-ahead log that are still to be read',
        }),
        waits_for: Nullable(Type.String()),
        reverts: Nullable(Type.String({ description: 'The operation of the move that this one reverts' })),
        revertible_until: Nullable(Timestamp),
        not_revertible_reason: Nullable(Type.String()),
      },
      { description: 'The progress of an operation of the kind `move`' },
    ),
  ),
})
export type OperationBody = Static<typeof OperationBody>

const Size = Type.Object({
  memory_bytes: Type.Integer(),
  cpu_millis: Type.Integer({ description: 'Thousandths of a core' }),
})

/** A tenant as the API returns it (specification, section 2.6). */
export const TenantBody = Type.Object({
  tenant_id: Type.String(),
  name: Type.String(),
  plan: Type.String(),
  region: Type.String(),
  isolation: Type.String(),
  isolation_mismatch: Type.Union(
    [
      Type.Object({
        code: Type.Enum(['WEAKER_THAN_PLAN', 'STRONGER_THAN_PLAN']),
        plan_isolation: Type.String(),
        message: Type.String(),
      }),
      Type.Null(),
    ],
    {
      description:
        "Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data",
    },
  ),
  status: Type.Enum([...shownStatuses]),
  reason: Nullable(Type.String()),
  url: Type.String({ description: "The tenant's own URL, by host name" }),
  path_url: Type.String({ description: "The tenant's URL by path, for clients that cannot resolve the host name" }),
  database_url: Type.String({ description: 'Without its password, except in the response that creates or rotates it' }),
  read_only_database_url: Nullable(
    Type.String({
      description: 'Leads to the replicas of a cluster; null without a cluster. The password is as above',
    }),
  ),
  generation: Type.Integer(),
  observed_generation: Type.Integer(),
  conditions: Type.Array(
    Type.Object({
      type: Type.String(),
      status: Type.String(),
      reason: Type.String(),
      message: Type.String(),
      observed_at: Timestamp,
    }),
  ),
  suspend_reason: Nullable(Type.String({ description: 'Public text' })),
  payment_required: Type.Boolean({ description: 'Whether paying ends the suspension' }),
  drift_policy: Type.Enum([...driftPolicies]),
  resources: Type.Union([Type.Object({ postgres: Size, runtime: Size }), Type.Null()], {
    description: "Sizes of its own services: those set for it, or the plan's",
  }),
  runtime_image: Nullable(Type.String({ description: "Digest of its own runtime's image" })),
  pause_after_seconds: Nullable(Type.Integer({ description: "null: the region's default; 0: never" })),
  backup_schedule: Nullable(Type.String({ description: 'Cron expression, UTC' })),
  backups_kept: Type.Integer(),
  archive_days: Nullable(Type.Integer({ description: 'Days that point-in-time recovery covers; null: no archive' })),
  rate_limit: Type.Object(
    { per_second: Nullable(Type.Integer()), burst: Nullable(Type.Integer()), source: Type.Enum(['plan', 'tenant']) },
    { description: "Rate of requests at each gateway: its plan's, or one of its own; null is unlimited" },
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
  purge_after: Nullable(Timestamp),
})
export type TenantBody = Static<typeof TenantBody>

/** A tenant's keys as plain text, only in the response that creates them. */
export const KeysBody = Type.Object({
  publishable_key: Type.String(),
  secret_key: Type.String(),
  jwt_secret: Type.String(),
})

/** Converts an operation for the API. */
export function toOperationBody(operation: Operation): OperationBody {
  return {
    id: operation.id,
    tenant_id: operation.tenantId,
    kind: operation.kind,
    state: operation.state,
    step: operation.step ?? null,
    attempts: operation.attempts,
    error: operation.error ?? null,
    created: operation.createdAt.toISOString(),
    started: operation.startedAt?.toISOString() ?? null,
    finished: operation.finishedAt?.toISOString() ?? null,
    ...(operation.move === undefined ? {} : { move: toMoveBody(operation.move) }),
  }
}

/**
 * Converts a tenant for the API. @param password the tenant's own database password, only for the response that creates
 * it
 */
export function toTenantBody(tenant: Tenant, region: RegionConfig, password?: string): TenantBody {
  const gateway = new URL(region.gateway_url)
  const port = gateway.port === '' ? '' : `:${gateway.port}`
  return {
    tenant_id: tenant.id,
    name: tenant.name,
    plan: tenant.plan,
    region: tenant.region,
    isolation: tenant.isolation,
    isolation_mismatch: isolationMismatch(tenant, region),
    status: tenant.status === 'warm' ? 'pending' : tenant.status,
    reason: tenant.reason ?? null,
    url: `${gateway.protocol}//${tenant.name}.${region.domain}${port}`,
    path_url: `${gateway.origin}/t/${tenant.name}`,
    database_url: databaseUrl(tenant, region, password),
    read_only_database_url: readOnlyDatabaseUrl(tenant, region, password),
    generation: tenant.generation,
    observed_generation: tenant.observedGeneration,
    conditions: tenant.conditions,
    suspend_reason: tenant.suspendReason ?? null,
    payment_required: tenant.paymentRequired,
    drift_policy: tenant.driftPolicy,
    resources:
      tenant.resources === undefined
        ? null
        : { postgres: sizeBody(tenant.resources.postgres), runtime: sizeBody(tenant.resources.runtime) },
    runtime_image: tenant.runtimeImage ?? null,
    pause_after_seconds: tenant.pauseAfterSeconds ?? null,
    backup_schedule: tenant.backupSchedule ?? null,
    backups_kept: tenant.backupsKept,
    archive_days: tenant.archiveDays ?? null,
    rate_limit: {
      per_second: tenant.rateLimit.limit?.per_second ?? null,
      burst: tenant.rateLimit.limit?.burst ?? null,
      source: tenant.rateLimit.source,
    },
    created_at: tenant.createdAt.toISOString(),
    updated_at: tenant.updatedAt.toISOString(),
    purge_after: tenant.purgeAfter?.toISOString() ?? null,
  }
}

function isolationMismatch(
  { plan, planIsolation, isolation }: Tenant,
  region: RegionConfig,
): TenantBody['isolation_mismatch'] {
  const expected = isolationInRegion(planIsolation, planIsolationsOf(region))
  if (expected === undefined || expected === isolation) return null
  const isWeaker = compareIsolation(isolation, expected) < 0
  const effect = isWeaker
    ? "The plan's quotas apply. Requests that need services of its own (restarts, sizes) are rejected, " +
      `and the price list's fee for ${isolation} is charged instead of the plan's.`
    : "The plan's quotas and prices apply."
  return {
    code: isWeaker ? 'WEAKER_THAN_PLAN' : 'STRONGER_THAN_PLAN',
    plan_isolation: expected,
    message:
      `The plan ${plan} has ${expected} in region "${region.id}", but the tenant is ${isolation}, ` +
      `because a change of plan moves no data. ${effect}`,
  }
}

function sizeBody({ memoryBytes, cpuMillis }: ComponentSize): Static<typeof Size> {
  return { memory_bytes: memoryBytes, cpu_millis: cpuMillis }
}

/** Returns the URL of the tenant's own login. @param password undefined for a URL without it */
export function databaseUrl(tenant: Tenant, region: RegionConfig, password: string | undefined): string {
  const login = password === undefined ? `${tenant.id}_admin` : `${tenant.id}_admin:${encodeURIComponent(password)}`
  return `postgresql://${login}@${region.database_host}/${tenant.database ?? ''}`
}

/** Returns the URL that leads to the replicas; null for a tenant without a cluster. @param password undefined for a URL without it */
export function readOnlyDatabaseUrl(tenant: Tenant, region: RegionConfig, password: string | undefined): string | null {
  if (tenant.isolation !== 'cluster-per-tenant') return null
  return databaseUrl({ ...tenant, database: readOnlyDatabase }, region, password)
}

/** Returns a strong ETag: the generation changes with every change that an operator can make. */
export function etagOf(tenant: Tenant): string {
  return `"${tenant.generation}"`
}

function toMoveBody(move: Move): NonNullable<OperationBody['move']> {
  const { from, to, rows, bytes } = move
  return {
    from,
    to,
    from_region: move.fromRegion ?? null,
    to_region: move.toRegion ?? null,
    from_isolation: move.fromIsolation ?? null,
    to_isolation: move.toIsolation ?? null,
    rows,
    bytes,
    pending_bytes: move.pendingBytes ?? null,
    waits_for: move.waitsFor ?? null,
    reverts: move.reverts ?? null,
    revertible_until: move.revertibleUntil ?? null,
    not_revertible_reason: move.notRevertibleReason ?? null,
  }
}
