// Defects that the simulation plants around the reconciler and must find.
import type { ContainerHost } from '#control-plane/engines/container-host.ts'
import type { RegionProbe } from '#control-plane/reconcile/region-probe.ts'
import type { Stack } from '#control-plane/stacks/stack.ts'

export interface Defects {
  /** Lost volumes that held data are created again. */
  losesData?: boolean
  /** Names alone decide which objects are ours. */
  ignoresLabels?: boolean
  /** The store accepts writes of any epoch. */
  ignoresEpoch?: boolean
  /** A new database container starts before the old one stops. */
  startsDatabasesFirst?: boolean
  /** Runtimes are reported healthy without a request. */
  believesRuntimes?: boolean
  /** Networks are never removed. */
  leavesNetworks?: boolean
  /** Postgres creates a cluster in any empty volume. */
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

/** @param isDeleted tenants for which the runtimes are still queried, so that deletions do not fail because of the defect */
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
