// The body of PATCH /v1/tenants/{id}: its schema, and the rules that a schema cannot express.
import { Cron } from 'croner'
import { Type, type Static } from 'typebox'
import { ControlError } from '../platform/errors.ts'
import { maxRate } from '../quotas/index.ts'
import { isolationModels } from '../stacks/index.ts'
import { checkName } from './names.ts'
import { driftPolicies, type Tenant } from './tenant.ts'
import type { SizeChanges, TenantChange } from './tenant-write.ts'
import { requireDedicated } from './dedicated.ts'

const maxPauseSeconds = 30 * 86_400
const maxArchiveDays = 35
/** Minimum idle time. With a shorter one, a tenant would be stopped between two requests of one visitor. */
const minPauseSeconds = 10

/** Pattern of one line without control characters, which logs and terminals show unchanged. */
const publicLine = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\ud800-\\udfff]*$'

const Size = Type.Object(
  {
    memory_bytes: Type.Optional(Type.Integer({ minimum: 128 * 2 ** 20, maximum: 2 ** 40 })),
    cpu_millis: Type.Optional(Type.Integer({ minimum: 50, maximum: 512_000, description: 'Thousandths of a core' })),
  },
  { additionalProperties: false, minProperties: 1 },
)
const Sizes = Type.Object(
  { postgres: Type.Optional(Size), runtime: Type.Optional(Size) },
  { additionalProperties: false, minProperties: 1 },
)

const Rate = Type.Integer({ minimum: 1, maximum: maxRate })

/** A tenant's own rate, or no limit. */
export const OwnRateBody = [
  Type.Object({ per_second: Rate, burst: Rate }, { additionalProperties: false }),
  Type.Literal('unlimited'),
] as const

export const TenantChangeBody = Type.Object(
  {
    name: Type.Optional(Type.String()),
    plan: Type.Optional(Type.String()),
    isolation: Type.Optional(
      Type.Enum([...isolationModels], {
        description: 'Moves the tenant, while it is served. No other field than `region` may be in the request',
      }),
    ),
    region: Type.Optional(
      Type.String({
        description:
          'Moves the tenant there, while it is served. No other field than `isolation` may be in the request',
      }),
    ),
    suspended: Type.Optional(Type.Boolean()),
    suspend_reason: Type.Optional(
      Type.Union([Type.String({ minLength: 1, maxLength: 200, pattern: publicLine }), Type.Null()], {
        description: "Public; shown to the tenant's callers",
      }),
    ),
    payment_required: Type.Optional(Type.Boolean({ description: 'Whether paying ends the suspension' })),
    drift_policy: Type.Optional(Type.Enum([...driftPolicies])),
    resources: Type.Optional(
      Type.Union([Sizes, Type.Null()], { description: "null: the plan's. Absent fields stay unchanged" }),
    ),
    pause_after_seconds: Type.Optional(
      Type.Union([Type.Integer({ minimum: 0, maximum: maxPauseSeconds }), Type.Null()], {
        description: `null: the region's default, for a cluster never; 0: never; otherwise at least ${minPauseSeconds}`,
      }),
    ),
    backup_schedule: Type.Optional(
      Type.Union([Type.String({ minLength: 1, maxLength: 100 }), Type.Null()], {
        description: 'Cron expression of five fields, UTC, at most once an hour; null: none',
      }),
    ),
    backups_kept: Type.Optional(Type.Integer({ minimum: 1, maximum: 365 })),
    archive_days: Type.Optional(
      Type.Union([Type.Integer({ minimum: 1, maximum: maxArchiveDays }), Type.Null()], {
        description:
          'Days that point-in-time recovery covers; null: no archive. A change to or from null restarts Postgres, ' +
          'in a cluster one member after the other',
      }),
    ),
    rate_limit: Type.Optional(
      Type.Union([...OwnRateBody, Type.Null()], { description: "Rate of requests at each gateway; null: the plan's" }),
    ),
  },
  { additionalProperties: false, minProperties: 1 },
)
export type TenantChangeBody = Static<typeof TenantChangeBody>

/** Checks the rules of a change. @throws ControlError INVALID_NAME, RESERVED_NAME, INVALID_FIELD, NOT_DEDICATED, UNSUPPORTED_ISOLATION */
export function checkChange(body: TenantChangeBody, tenant: Pick<Tenant, 'isolation'>): void {
  if (body.name !== undefined) checkName(body.name)
  const moving = (['isolation', 'region'] as const).filter((field) => body[field] !== undefined)
  if (moving.length > 0 && Object.keys(body).length > moving.length)
    throw new ControlError(
      'INVALID_FIELD',
      `Field "${moving[0]}" must be the only one of its request, apart from "isolation" and "region".`,
    )
  const { pause_after_seconds: pauseAfter, backup_schedule: schedule } = body
  if (pauseAfter != null && pauseAfter > 0 && pauseAfter < minPauseSeconds) {
    throw new ControlError(
      'INVALID_FIELD',
      `Field "pause_after_seconds" must be 0, or from ${minPauseSeconds} to ${maxPauseSeconds}.`,
    )
  }
  if (schedule != null) checkSchedule(schedule)
  for (const field of ['resources', 'pause_after_seconds', 'archive_days'] as const) {
    if (body[field] !== undefined) requireDedicated(tenant, `Field "${field}"`)
  }
}

function checkSchedule(schedule: string): void {
  const fields = schedule.trim().split(/\s+/)
  const [minute = ''] = fields
  const rule =
    fields.length !== 5
      ? 'must be a cron expression of five fields'
      : !/^\d{1,2}$/.test(minute)
        ? 'must have one fixed minute, because at most one backup an hour is allowed'
        : !isEverDue(fields.join(' '))
          ? 'must be a cron expression with a future time'
          : undefined
  if (rule !== undefined) throw new ControlError('INVALID_FIELD', `Field "backup_schedule" ${rule}.`)
}

function isEverDue(schedule: string): boolean {
  try {
    return new Cron(schedule, { paused: true, timezone: 'UTC' }).nextRun() !== null
  } catch {
    return false
  }
}

export function toChange(body: TenantChangeBody): TenantChange {
  const {
    name,
    plan,
    suspended,
    suspend_reason,
    payment_required,
    drift_policy,
    resources,
    pause_after_seconds,
    backup_schedule,
    backups_kept,
    archive_days,
    rate_limit,
  } = body
  return {
    ...(name === undefined ? {} : { name }),
    ...(plan === undefined ? {} : { plan }),
    ...(suspended === undefined ? {} : { suspended }),
    ...(suspend_reason === undefined ? {} : { suspendReason: suspend_reason }),
    ...(payment_required === undefined ? {} : { paymentRequired: payment_required }),
    ...(drift_policy === undefined ? {} : { driftPolicy: drift_policy }),
    ...(resources === undefined ? {} : { resources: resources === null ? null : toSizeChanges(resources) }),
    ...(pause_after_seconds === undefined ? {} : { pauseAfterSeconds: pause_after_seconds }),
    ...(backup_schedule === undefined ? {} : { backupSchedule: backup_schedule }),
    ...(backups_kept === undefined ? {} : { backupsKept: backups_kept }),
    ...(archive_days === undefined ? {} : { archiveDays: archive_days }),
    ...(rate_limit === undefined ? {} : { rateLimit: rate_limit }),
  }
}

function toSizeChanges({ postgres, runtime }: Static<typeof Sizes>): SizeChanges {
  const change = ({ memory_bytes: memoryBytes, cpu_millis: cpuMillis }: Static<typeof Size>) => ({
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
    ...(cpuMillis === undefined ? {} : { cpuMillis }),
  })
  return {
    ...(postgres === undefined ? {} : { postgres: change(postgres) }),
    ...(runtime === undefined ? {} : { runtime: change(runtime) }),
  }
}
