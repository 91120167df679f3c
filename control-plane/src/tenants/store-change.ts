// Converts an operator's change to columns of the tenant's row and to the kind of its operation. Pure.
import { Prisma } from '../../../prisma/client/client.ts'
import { ControlError } from '../platform/errors.ts'
import type { ComponentSize, ComponentSizes, Desired, OperationKind } from './tenant.ts'
import type { SizeChange, SizeChanges, TenantChange } from './tenant-write.ts'
import { fromOwnRate } from '../quotas/index.ts'
import { fromSizes, toSizes } from './store-rows.ts'

/** State of a tenant before a change. */
export interface TenantBefore {
  desired: Desired
  /** Stored sizes of the tenant's services. */
  resources: unknown
  planResources: unknown
}

/** Returns the columns that a change sets. @throws ControlError NOT_SUSPENDED */
export function changedColumns(change: TenantChange, from: TenantBefore): Prisma.TenantUncheckedUpdateInput {
  return {
    ...(change.name === undefined ? {} : { name: change.name }),
    ...(change.plan === undefined ? {} : { planId: change.plan }),
    ...(change.driftPolicy === undefined ? {} : { driftPolicy: change.driftPolicy }),
    ...(change.resources === undefined
      ? {}
      : { resources: change.resources === null ? Prisma.DbNull : fromSizes(resized(change.resources, from)) }),
    ...(change.pauseAfterSeconds === undefined ? {} : { pauseAfterSeconds: change.pauseAfterSeconds }),
    ...(change.backupSchedule === undefined ? {} : { backupSchedule: change.backupSchedule }),
    ...(change.rateLimit === undefined ? {} : fromOwnRate(change.rateLimit)),
    ...(change.backupsKept === undefined ? {} : { backupsKept: change.backupsKept }),
    ...(change.archiveDays === undefined ? {} : { archiveDays: change.archiveDays }),
    ...suspension(change, from.desired),
  }
}

function suspension(
  { suspended, suspendReason, paymentRequired }: TenantChange,
  desired: Desired,
): Prisma.TenantUncheckedUpdateInput {
  const isSuspended = suspended ?? desired === 'suspended'
  if (!isSuspended && (suspendReason != null || paymentRequired === true)) {
    throw new ControlError(
      'NOT_SUSPENDED',
      'Fields "suspend_reason" and "payment_required" require a suspended tenant.',
    )
  }
  const suspensionColumns = {
    ...(suspendReason === undefined ? {} : { suspendReason }),
    ...(paymentRequired === undefined ? {} : { paymentRequired }),
  }
  if (desired === 'suspended' && !isSuspended) return { desired: 'active', suspendReason: null, paymentRequired: false }
  return isSuspended ? { desired: 'suspended', ...suspensionColumns } : {}
}

/** The sizes of a tenant before a change, as the control database stores them. */
interface SizesBefore {
  resources: unknown
  planResources: unknown
  /** Sizes of the plan that the tenant gets, or has. */
  newPlanResources: unknown
}

/** Returns the sizes in effect after a change of plan or sizes; undefined without any. */
export function sizesAfter(
  { resources: change }: SizeChange,
  { resources, planResources, newPlanResources }: SizesBefore,
): ComponentSizes | undefined {
  if (change != null) return resized(change, { resources, planResources })
  return (change === null ? undefined : toSizes(resources)) ?? toSizes(newPlanResources)
}

function resized(changes: SizeChanges, { resources, planResources }: Omit<TenantBefore, 'desired'>): ComponentSizes {
  const present = toSizes(resources) ?? toSizes(planResources)
  const size = (component: keyof ComponentSizes): ComponentSize => {
    const { memoryBytes, cpuMillis } = { ...present?.[component], ...changes[component] }
    if (memoryBytes === undefined || cpuMillis === undefined)
      throw new Error(`The plan has no resources for ${component}.`)
    return { memoryBytes, cpuMillis }
  }
  return { postgres: size('postgres'), runtime: size('runtime') }
}

export function operationOf({ suspended, resources }: TenantChange, { desired }: TenantBefore): OperationKind {
  if (suspended === true && desired !== 'suspended') return 'suspend'
  if (suspended === false && desired === 'suspended') return 'resume'
  return resources === undefined ? 'update' : 'resize'
}

/** Converts a change to JSON with the API's names of fields. */
export function changeDetail(value: object): Prisma.InputJsonObject {
  const named = Object.entries(value).map(([name, inner]: [string, unknown]) => [
    name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    typeof inner === 'object' && inner !== null ? changeDetail(inner) : inner,
  ])
  return Object.fromEntries(named) as Prisma.InputJsonObject
}
