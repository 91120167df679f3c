// Defects that are planted around the reconciler, each of which a simulation must see.
import type { ContainerHost } from '#control-plane/engines/container-host.ts'
import type { RegionProbe } from '#control-plane/reconcile/region-probe.ts'
import type { Stack } from '#control-plane/stacks/stack.ts'

export interface Defects {
  /** Volumes that held data are made anew. */
  losesData?: boolean
  /** Names alone say what is ours. */
  ignoresLabels?: boolean
  /** Writes of any epoch are taken. */
  ignoresEpoch?: boolean
  /** Databases are replaced like anything else. */
  startsDatabasesFirst?: boolean
  /** Runtimes are called healthy unseen. */
  believesRuntimes?: boolean
  /** Networks are left where they are. */
  leavesNetworks?: boolean
  /** Postgres makes a cluster in any empty volume. */
  beginsAnywhere?: boolean
}

export function spoilStack({ losesData, startsDatabasesFirst }: Defects, stack: Stack): Stack {
  return {
    ...stack,
    volumes: losesData === true ? stack.volumes.map((volume) => ({ ...volume, mustExist: false })) : stack.volumes,
    services:
      startsDatabasesFirst === true
        ? stack.services.map((service) => ({ ...service, replace: 'start-first' }))
        : stack.services,
  }
}

export function spoilHost({ leavesNetworks }: Defects, host: ContainerHost): ContainerHost {
  return leavesNetworks === true ? { ...host, removeNetwork: () => Promise.resolve() } : host
}

/** @param isDeleted of those the runtimes are asked all the same: the defect is to show, and not that nobody can be removed */
export function spoilProbe(
  { believesRuntimes }: Defects,
  probe: RegionProbe,
  now: () => Date,
  isDeleted: (tenantId: string) => boolean,
): RegionProbe {
  if (believesRuntimes !== true) return probe
  const component = () => ({ status: 'healthy', observed_at: now().toISOString() }) as const
  return {
    ...probe,
    async tenantHealth(url, id, signal) {
      if (isDeleted(id)) return probe.tenantHealth(url, id, signal)
      return {
        tenant_id: id,
        generation: 2 ** 30,
        status: 'healthy',
        components: { database: component(), storage: component(), functions: component() },
      }
    },
  }
}
