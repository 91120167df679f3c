// The public interface of `stacks/`.
export { archiveSpool, compressCommand } from './archive-settings.ts'
export {
  clusterMembers,
  clusterRouters,
  clusterServices,
  isClusterMember,
  memberIdentity,
  routerHealthPort,
} from './cluster-services.ts'
export { type ClusterRegion, etcdClusterPassword } from './cluster-stack.ts'
export {
  type ContainerSettings,
  DockerSettings,
  hasEncryptedNetworks,
  hostsOf,
  type HostSettings,
  S3Bucket,
  SwarmSettings,
} from './container-settings.ts'
export { type EtcdCredentials, etcdHosts, etcdName, etcdServices, memberNumbers } from './etcd-services.ts'
export { MovingServices } from './moving-services.ts'
export { withServices } from './with-services.ts'
export { compareIsolation, type Isolation, isolationInRegion, isolationModels, type OwnIsolation } from './isolation.ts'
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
  clusterSettings,
  memberPasswords,
  patroniPassword,
  patroniPort,
  patroniUser,
  sharedClusterSettings,
} from './patroni-settings.ts'
export { processAddress, ProcessSettings } from './process-settings.ts'
export {
  etcdContainersOf,
  gatewayContainersOf,
  type PartUrl,
  proxiedGateway,
  regionEndpoints,
  regionStack,
  regionStackId,
  type RegionStackInput,
} from './region-stack.ts'
export { hostOnRegionNetwork } from './region-layout.ts'
export { onHost } from './on-host.ts'
export { placed, type Placement } from './placed.ts'
export { ofModel } from './of-model.ts'
export { isScratchId, scratchId } from './scratch-ids.ts'
export { SecretText } from './secret-text.ts'
export { sharedServerSettings } from './shared-server-settings.ts'
export {
  databaseVolumes,
  postgresAlias,
  componentServices,
  runtimeAliases,
  serviceNames,
  serviceVolumes,
  type StackEnvironment,
  stackFor,
  volumesOfModel,
} from './stack-for.ts'
export type {
  AttachedContainer,
  HealthCheck,
  Network,
  OtherContainer,
  Published,
  Resources,
  Service,
  Stack,
  Volume,
} from './stack.ts'
export { overlaps, parseRange, type Range, subnetCount, subnetNumber, tenantSubnet } from './subnets.ts'
export { ports, postgresService } from './tenant-services.ts'
