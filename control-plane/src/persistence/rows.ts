// Rows of the control database as the values the rest of the control plane knows.
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { Operation as OperationRow, SharedDatabase, Tenant as TenantRow } from '../../../prisma/client/client.ts'
import type { Condition, Desired, Isolation, Operation, Status, Tenant } from '../tenants/tenant.ts'

const Conditions = Type.Array(
  Type.Object({
    type: Type.Enum(['Home', 'Database', 'Runtime', 'Route']),
    status: Type.Enum(['True', 'False', 'Unknown']),
    reason: Type.String(),
    message: Type.String(),
    observed_at: Type.String(),
  }),
)

export function toTenant(row: TenantRow & { sharedDatabase: SharedDatabase | null }): Tenant {
  return {
    id: row.id,
    name: row.name,
    plan: row.planId,
    region: row.regionId,
    // Check constraints hold these three to their values.
    isolation: row.isolation as Isolation,
    desired: row.desired as Desired,
    status: row.status as Status,
    database: row.sharedDatabase?.name,
    reason: row.reason ?? undefined,
    generation: row.generation,
    observedGeneration: row.observedGeneration,
    conditions: toConditions(row.conditions),
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    deleteRequestedAt: row.deleteRequestedAt ?? undefined,
    purgeAfter: row.purgeAfter ?? undefined,
  }
}

export function toConditions(value: unknown): Condition[] {
  return Value.Check(Conditions, value) ? value : []
}

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
  }
}
