// Reads the clusters of a region with the hosts of their services.
import { placementOf, type Reserved } from '../placement/index.ts'
import type { Database } from '../platform/database.ts'
import type { Placement } from '../stacks/index.ts'
import { alongsideGenerations } from '../tenants/index.ts'

/** A tenant's cluster, and where its services are. */
export interface StoredCluster {
  tenantId: string
  placement: Placement
  /** Memory that the services reserve on their hosts. */
  reserved: Reserved
  /** Whether the tenant is ready and settled, and no operation on it is in progress. */
  isMovable: boolean
}

/** Reads the clusters of a region that have hosts, in the order of their tenants' IDs. */
export async function readClusters(database: Database, regionId: string): Promise<StoredCluster[]> {
  const rows = await database.tenant.findMany({
    where: { regionId, isolation: 'cluster-per-tenant', placements: { some: {} } },
    include: { placements: true },
    orderBy: { id: 'asc' },
  })
  const busy = await database.operation.findMany({
    where: {
      tenantId: { in: rows.map(({ id }) => id) },
      state: { in: ['pending', 'running'] },
      kind: { notIn: [...alongsideGenerations] },
    },
    select: { tenantId: true },
  })
  const isBusy = new Set(busy.map(({ tenantId }) => tenantId))
  return rows.map((row) => ({
    tenantId: row.id,
    ...placementOf(row.placements),
    isMovable:
      row.desired === 'active' &&
      row.status === 'ready' &&
      row.generation === row.observedGeneration &&
      !isBusy.has(row.id),
  }))
}
