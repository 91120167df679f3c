// Reads a tenant's row of the control database as the reconciler's snapshot.
import { Value } from 'typebox/value'
import type { RoutePhase } from '@tenantry/contract'
import type { Prisma } from '../platform/database.ts'
import { placementOf } from '../placement/index.ts'
import type { Seal } from '../platform/seal.ts'
import { MovingServices, type Isolation } from '../stacks/index.ts'
import { liveSecrets, toConditions, toSizes, type Desired, type DriftPolicy, type Status } from '../tenants/index.ts'
import type { Snapshot } from './reconcile-store.ts'

const newest = { orderBy: { createdAt: 'desc' } } as const
/** The relations of a tenant that a snapshot needs. */
export const withAll = { plan: true, sharedDatabase: true, placements: true, secrets: newest } as const
type Row = Prisma.TenantGetPayload<{ include: typeof withAll }>

const noSizes = { postgres: { memoryBytes: 0, cpuMillis: 0 }, runtime: { memoryBytes: 0, cpuMillis: 0 } }

/** Returns the function that reads a row; `seal` opens the tenant's secrets. */
export function snapshotReader(seal: Seal, now: () => Date) {
  return (row: Row, operation: Snapshot['operation'], subnet: number | undefined, isSqlClosed: boolean): Snapshot => {
    const { texts, nextExpiry } = liveSecrets(row.id, row.secrets, seal, now())
    const { postgresImage: postgres, runtimeImage: runtime } = row
    return {
      id: row.id,
      name: row.name,
      regionId: row.regionId,
      // Check constraints limit these columns to their values.
      isolation: row.isolation as Isolation,
      desired: row.desired as Desired,
      status: row.status as Status,
      routePhase: row.routePhase as RoutePhase,
      driftPolicy: row.driftPolicy as DriftPolicy,
      isSqlClosed,
      isHeld: false,
      generation: row.generation,
      observedGeneration: row.observedGeneration,
      reason: row.reason,
      conditions: toConditions(row.conditions),
      homeVersion: row.homeVersion ?? undefined,
      purgeAfter: row.purgeAfter ?? undefined,
      database: row.sharedDatabase?.name,
      sizes: toSizes(row.resources) ?? toSizes(row.plan.resources) ?? noSizes,
      restarts: row.restarts,
      isArchived: row.archiveDays !== null,
      images: postgres === null || runtime === null ? undefined : { postgres, runtime },
      ...(Value.Check(MovingServices, row.movingServices) ? { moving: row.movingServices } : {}),
      subnet,
      ...placementOf(row.placements),
      ...(row.placements.some(({ formerHostId }) => formerHostId !== null) ? { isReplaced: true } : {}),
      databasePasswordDue: row.databasePasswordDue,
      servicePasswordsDue: row.servicePasswordsDue,
      secrets: texts,
      nextExpiry,
      hasExpired: row.secrets.some(({ expiresAt }) => expiresAt !== null && expiresAt <= now()),
      operation,
    }
  }
}
