// The specified stacks of a region and of its tenants. They are needed in every sweep, and with them the hashes of their services, so
// that each is computed once, until something in it changes.
import { acceptedTokens, sentToken, type InternalToken } from '@tenantry/contract'
import type { ServiceNeed } from '../placement/index.ts'
import type { RegionConfig } from '../regions/index.ts'
import {
  etcdContainersOf,
  gatewayContainersOf,
  hostsOf,
  type Isolation,
  parseRange,
  placed,
  regionStack,
  type RegionStackInput,
  serviceNames,
  type Stack,
  type StackEnvironment,
  stackFor,
  tenantSubnet,
  type Range,
  withServices,
} from '../stacks/index.ts'
import type { Snapshot } from './reconcile-store.ts'
import { ResultCache } from './result-cache.ts'

export type RegionStacks = ReturnType<typeof createRegionStacks>

/** Number of combinations of what the volumes of a region hold, each of which gives another stack. */
const maxOwnStacks = 4
/** Tenants with containers and others have different environments. */
const maxEnvironments = 2
/** Maximum number of stacks of tenants, each of which takes about 20 kB. */
const maxTenantStacks = 1_000
const pids = 256

/** A tenant for which everything is allocated. The memory of services does not depend on it. */
const specimen = {
  id: 't_00000000000000000000',
  running: true,
  hasHome: false,
  restarts: 0,
  isArchived: false,
  images: { postgres: '', runtime: '' },
  subnet: '10.0.0.0/28',
} as const

/** Returns the range of a region's networks; undefined without networks. @throws RangeError for an invalid range */
export function rangeOf({ docker, processes }: RegionConfig): Range | undefined {
  const networks = docker?.network_range ?? processes?.address_range
  return networks === undefined ? undefined : parseRange(networks, docker !== undefined && hostsOf(docker).length > 0)
}

/**
 * Creates the stacks of a region. `input` is that of the region's own stack; undefined for tenants without containers.
 * @throws RangeError for an invalid range of networks
 */
export function createRegionStacks(config: RegionConfig, internalToken: InternalToken) {
  const { docker, processes } = config
  const range = rangeOf(config)
  const spansHosts = docker !== undefined && hostsOf(docker).length > 0
  const ownStacks = new ResultCache<Stack>(maxOwnStacks)
  const environments = new ResultCache<{ environment: StackEnvironment; stacks: ResultCache<Stack> }>(maxEnvironments)

  /** Returns what may change in an input while the process runs. */
  const keyOf = (input: RegionStackInput | undefined): string => {
    const tokens = [sentToken(internalToken), ...acceptedTokens(internalToken)]
    return JSON.stringify([input?.images, input?.hasHomes, input?.hasClusters, tokens])
  }

  const own = (input: RegionStackInput): Stack => ownStacks.get(keyOf(input), () => regionStack(input))

  /** Returns the parts of the region that the stacks of its tenants use. */
  const environmentOf = (input: RegionStackInput | undefined): StackEnvironment => {
    if (input === undefined) return { gateways: [], internalToken, docker, areProcesses: processes !== undefined }
    const stack = own(input)
    const cluster = input.etcd === undefined ? undefined : { etcd: input.etcd, etcdContainers: etcdContainersOf(stack) }
    return { gateways: gatewayContainersOf(input.docker, stack), internalToken, docker, cluster }
  }

  const dependingOn = (input: RegionStackInput | undefined) =>
    environments.get(keyOf(input), () => ({
      environment: environmentOf(input),
      stacks: new ResultCache<Stack>(maxTenantStacks),
    }))

  return {
    /** Returns the stack of the region's own services. */
    own,

    /** Returns the stack of a tenant, with hosts in a region with several. */
    of(tenant: Snapshot, input: RegionStackInput | undefined): Stack {
      const { id, isolation, sizes, restarts, images, subnet, placement, moving } = tenant
      const specified = {
        id,
        isolation,
        running: tenant.desired === 'active' || tenant.desired === 'warm',
        hasHome: tenant.homeVersion !== undefined,
        resources: withPids(sizes),
        restarts,
        isArchived: tenant.isArchived,
        images,
        subnet: subnet === undefined || range === undefined ? undefined : tenantSubnet(range, subnet),
        placement,
      }
      const { environment, stacks } = dependingOn(input)
      return stacks.get(JSON.stringify([specified, moving]), () => {
        const first = stackFor(specified, environment)
        // A move records that there are more services before these have hosts.
        const arePlaced = (isolation: Isolation) =>
          !spansHosts || serviceNames(isolation).every((service) => placement[service] !== undefined)
        const stack =
          moving === undefined || !arePlaced(moving.isolation)
            ? first
            : withServices(first, stackFor({ ...specified, ...moving, hasHome: false, isArchived: false }, environment))
        return spansHosts ? placed(stack, placement) : stack
      })
    },

    /** Returns the memory that the services of a tenant need. */
    needs(
      { isolation, sizes }: Pick<Snapshot, 'isolation' | 'sizes'>,
      input: RegionStackInput | undefined,
    ): ServiceNeed[] {
      const specified = { ...specimen, isolation, resources: withPids(sizes) }
      const { environment, stacks } = dependingOn(input)
      const { services } = stacks.get(JSON.stringify([specified]), () => stackFor(specified, environment))
      return services.map(({ name, resources }) => ({ service: name, memoryBytes: resources.memoryBytes }))
    },
  }
}

function withPids(sizes: Snapshot['sizes']) {
  return { postgres: { ...sizes.postgres, pids }, runtime: { ...sizes.runtime, pids } }
}
