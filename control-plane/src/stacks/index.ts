// The public interface of `stacks/`.
export { DockerSettings } from './docker-settings.ts'
export { compareIsolation, type Isolation, isolationInRegion, isolationModels } from './isolation.ts'
export {
  containerName,
  isContainerName,
  networkName,
  secretsVolumeName,
  stackOfVolume,
  volumeName,
  volumePrefix,
} from './object-names.ts'
export {
  gatewayContainerOf,
  hostOnRegionNetwork,
  regionEndpoints,
  regionStack,
  regionStackId,
  type RegionStackInput,
} from './region-stack.ts'
export { isScratchId, scratchId } from './scratch-ids.ts'
export { componentAlias, stackFor } from './stack-for.ts'
export type { AttachedContainer, HealthCheck, Network, Published, Resources, Service, Stack, Volume } from './stack.ts'
export { overlaps, parseRange, type Range, subnetCount, subnetNumber, tenantSubnet } from './subnets.ts'
export { ports, postgresService } from './tenant-services.ts'
