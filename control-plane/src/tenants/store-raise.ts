// Changes a tenant's desired state: increments its generation, supersedes operations in progress, and opens a new operation.
import { randomUUID } from 'node:crypto'
import { type DriftRepair, type OperationKind, type Switchover, type Tenant, alongsideGenerations } from './tenant.ts'
import type { TenantWrite } from './tenant-write.ts'
import type { Prisma, Transaction } from '../platform/database.ts'
import type { Isolation } from '../stacks/index.ts'
import { toOperation, toSizes, toTenant } from './store-rows.ts'

/** Relations of a row that `shownTenant` needs. */
export const withPlan = { sharedDatabase: true, plan: true } as const
type Row = Prisma.TenantGetPayload<{ include: typeof withPlan }>

/** Converts a row to a tenant with the resources in effect. */
export function shownTenant(row: Row): Tenant {
  return {
    ...toTenant(row),
    resources:
      row.isolation === 'schema-per-tenant' ? undefined : (toSizes(row.resources) ?? toSizes(row.plan.resources)),
  }
}

export async function incrementGeneration(
  transaction: Transaction,
  id: string,
  kind: OperationKind,
  columns: Prisma.TenantUncheckedUpdateInput,
  at: Date,
  switchover?: Switchover,
): Promise<TenantWrite> {
  const row = await transaction.tenant.update({
    where: { id },
    data: { ...columns, generation: { increment: 1 }, updatedAt: at },
    include: withPlan,
  })
  await supersede(transaction, id, at)
  return {
    tenant: shownTenant(row),
    operation: await openOperation(transaction, id, kind, row.generation, at, switchover && { switchover }),
  }
}

/** Opens a repair of a tenant's drift, at the tenant's present generation. It supersedes the operations of a failed tenant. */
export async function openRepair(
  transaction: Transaction,
  tenant: Row,
  repair: DriftRepair,
  at: Date,
): Promise<TenantWrite> {
  await supersede(transaction, tenant.id, at)
  const operation = await openOperation(transaction, tenant.id, 'repair', tenant.generation, at, { repair })
  return { tenant: shownTenant(tenant), operation }
}

/** Ends the operations in progress, which another one replaces. Backups continue. */
async function supersede(transaction: Transaction, id: string, at: Date): Promise<void> {
  await transaction.operation.updateMany({
    where: { tenantId: id, state: { in: ['pending', 'running'] }, kind: { notIn: [...alongsideGenerations] } },
    data: { state: 'superseded', finishedAt: at },
  })
}

/** A move that an operation carries out, and between which databases. */
export interface MoveRequest {
  region: string
  /** The region to which it leads; absent: the same. */
  toRegion?: string
  from: string
  to: string
  /** The operation of the move that this one reverts. */
  reverts?: string
  isReversible?: boolean
  /** The way of the files of a move that is reverted. */
  files?: 'stay' | 'copied'
  /** The isolation model that the tenant has before a move to another one. */
  fromIsolation?: Isolation
  /** The isolation model that the tenant gets; absent: its own. */
  toIsolation?: Isolation
}

export async function openOperation(
  transaction: Transaction,
  tenantId: string,
  kind: OperationKind,
  generation: number,
  at: Date,
  parts: { switchover?: Switchover; move?: MoveRequest; repair?: DriftRepair } = {},
) {
  const { switchover, move, repair } = parts
  return toOperation(
    await transaction.operation.create({
      data: {
        id: randomUUID(),
        tenantId,
        kind,
        generation,
        createdAt: at,
        ...(switchover === undefined ? {} : { switchover: { ...switchover } }),
        ...(move === undefined ? {} : { move: { ...move } }),
        ...(repair === undefined
          ? {}
          : { repair: { targets: repair.targets?.map((target) => ({ ...target })) ?? null } }),
      },
    }),
  )
}
