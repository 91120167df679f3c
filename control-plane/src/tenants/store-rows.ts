// Converts rows of the control database to the types of the control plane.
import { dedicatedDatabase } from '../homes/index.ts'
import { PublicKey } from '@tenantry/contract'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type {
  Operation as OperationRow,
  Plan as PlanRow,
  SharedDatabase,
  Tenant as TenantRow,
} from '../../../prisma/client/client.ts'
import { toHeldRate } from '../quotas/index.ts'
import {
  conditionTypes,
  type ComponentSizes,
  type Condition,
  type Desired,
  type DriftPolicy,
  type Move,
  type Operation,
  type Status,
  type DriftRepair,
  type Switchover,
  type Tenant,
} from './tenant.ts'
import type { Isolation } from '../stacks/index.ts'

const Conditions = Type.Array(
  Type.Object({
    type: Type.Enum([...conditionTypes]),
    status: Type.Enum(['True', 'False', 'Unknown']),
    reason: Type.String(),
    message: Type.String(),
    observed_at: Type.String(),
  }),
)

const Size = Type.Object({ memory_bytes: Type.Integer(), cpu_millis: Type.Integer() })
const Sizes = Type.Object({ postgres: Size, runtime: Size })

/** Converts a row to a tenant, with the plan's isolation and rate. */
export function toTenant(row: TenantRow & { sharedDatabase: SharedDatabase | null; plan: PlanRow }): Tenant {
  return {
    id: row.id,
    name: row.name,
    plan: row.planId,
    region: row.regionId,
    // Check constraints limit these four columns to their values.
    isolation: row.isolation as Isolation,
    planIsolation: row.plan.isolation as Isolation,
    desired: row.desired as Desired,
    status: row.status as Status,
    database: row.isolation === 'schema-per-tenant' ? row.sharedDatabase?.name : dedicatedDatabase,
    reason: row.reason ?? undefined,
    generation: row.generation,
    observedGeneration: row.observedGeneration,
    conditions: toConditions(row.conditions),
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    deleteRequestedAt: row.deleteRequestedAt ?? undefined,
    purgeAfter: row.purgeAfter ?? undefined,
    driftPolicy: row.driftPolicy as DriftPolicy,
    suspendReason: row.suspendReason ?? undefined,
    paymentRequired: row.paymentRequired,
    resources: toSizes(row.resources),
    // Services that a revert may need do not serve the tenant.
    runtimeImage: row.isolation === 'schema-per-tenant' ? undefined : (row.runtimeImage ?? undefined),
    pauseAfterSeconds: row.pauseAfterSeconds ?? undefined,
    backupSchedule: row.backupSchedule ?? undefined,
    backupsKept: row.backupsKept,
    archiveDays: row.archiveDays ?? undefined,
    rateLimit: toHeldRate(row),
  }
}

/** Converts stored sizes, `{postgres: {memory_bytes, cpu_millis}, runtime: …}`; undefined for another form. */
export function toSizes(value: unknown): ComponentSizes | undefined {
  if (!Value.Check(Sizes, value)) return undefined
  const size = ({ memory_bytes: memoryBytes, cpu_millis: cpuMillis }: (typeof value)['postgres']) => ({
    memoryBytes,
    cpuMillis,
  })
  return { postgres: size(value.postgres), runtime: size(value.runtime) }
}

export function fromSizes({ postgres, runtime }: ComponentSizes) {
  const size = ({ memoryBytes, cpuMillis }: ComponentSizes['postgres']) => ({
    memory_bytes: memoryBytes,
    cpu_millis: cpuMillis,
  })
  return { postgres: size(postgres), runtime: size(runtime) }
}

/** Converts stored conditions; an empty list for another form. */
export function toConditions(value: unknown): Condition[] {
  return Value.Check(Conditions, value) ? value : []
}

const SwitchoverRow = Type.Object({ from: Type.String(), to: Type.Union([Type.String(), Type.Null()]) })

/** Converts the stored switchover of an operation; undefined for an operation without one. */
export function toSwitchover(value: unknown): Switchover | undefined {
  return Value.Check(SwitchoverRow, value) ? value : undefined
}

const RepairRow = Type.Object({
  targets: Type.Union([
    Type.Array(Type.Object({ component: Type.String(), field: Type.Union([Type.String(), Type.Null()]) })),
    Type.Null(),
  ]),
})

/** Converts the stored repair of an operation; undefined for an operation without one. */
export function toDriftRepair(value: unknown): DriftRepair | undefined {
  return Value.Check(RepairRow, value) ? value : undefined
}

/** Converts a row to an operation. */
export function toOperation(row: OperationRow): Operation {
  return {
    id: row.id,
    tenantId: row.tenantId,
    kind: row.kind as Operation['kind'],
    state: row.state as Operation['state'],
    step: row.step ?? undefined,
    attempts: row.attempts,
    error: row.error ?? undefined,
    generation: row.generation,
    createdAt: row.createdAt,
    startedAt: row.startedAt ?? undefined,
    finishedAt: row.finishedAt ?? undefined,
    move: toMove(row.move),
  }
}

const MoveRow = Type.Object({
  from: Type.String(),
  to: Type.String(),
  rows: Type.Optional(Type.Integer()),
  bytes: Type.Optional(Type.Integer()),
  pending_bytes: Type.Optional(Type.Integer()),
  waits_for: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  reverts: Type.Optional(Type.String()),
  region: Type.Optional(Type.String()),
  toRegion: Type.Optional(Type.String()),
  fromIsolation: Type.Optional(Type.String()),
  toIsolation: Type.Optional(Type.String()),
  reverse: Type.Optional(Type.Object({ until: Type.String(), ends: Type.Optional(Type.String()) })),
  notRevertible: Type.Optional(Type.Union([Type.String(), Type.Null()])),
})

/** Converts the stored progress of a move; undefined for an operation without one. */
function toMove(value: unknown): Move | undefined {
  if (!Value.Check(MoveRow, value)) return undefined
  const { from, to, rows = 0, bytes = 0, pending_bytes: pendingBytes, waits_for: waitsFor } = value
  const { reverts, reverse, notRevertible, region, toRegion, fromIsolation, toIsolation } = value
  return {
    from,
    to,
    fromRegion: toRegion === undefined ? undefined : region,
    toRegion,
    fromIsolation,
    toIsolation,
    rows,
    bytes,
    pendingBytes,
    waitsFor: waitsFor ?? undefined,
    reverts,
    revertibleUntil: reverse?.ends === undefined ? reverse?.until : undefined,
    notRevertibleReason: reverse === undefined ? (notRevertible ?? undefined) : reverse.ends,
  }
}

/** Converts the stored public keys, which the API has checked. */
export function toPublicKeys(value: unknown): PublicKey[] {
  return Array.isArray(value) ? value.filter((key) => Value.Check(PublicKey, key)) : []
}
