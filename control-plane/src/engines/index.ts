// The public interface of `engines/`.
export { callEngine } from './call-engine.ts'
export { createContainerEngine } from './container-engine.ts'
export {
  type ContainerHost,
  type ContainerSpec,
  type ContainerState,
  type ContainerStats,
  type ExecOptions,
  type ExecResult,
  type HostEvent,
  type HostImage,
  type HostInfo,
  type Labels,
  type LimitChanges,
  type LogLine,
  type LogOptions,
  type NetworkSpec,
  type ObservedContainer,
  type ObservedHost,
  type ObservedNetwork,
  type ObservedVolume,
  type Ownership,
  restartPolicy,
  type VolumeSpec,
} from './container-host.ts'
export { planSteps, serviceSteps, type Step } from './convergence-plan.ts'
export { changeable, containerBody, endpoint } from './docker-container-body.ts'
export {
  componentLabel,
  fromDocker,
  isOwned,
  isUnlabelled,
  ownedFilter,
  rejectForeign,
  toDocker,
} from './docker-labels.ts'
export { type Difference, differences } from './drift.ts'
export { isTargeted, type Repair, repairOf, type RepairTarget } from './repair-plan.ts'
export { type Hosts, onlyHost } from './hosts.ts'
export { memberName } from './member-name.ts'
export { hasFormer, returnedContainers, withoutReturned } from './moved-services.ts'
export { networksToLeave } from './shared-address.ts'
export { reachablePart } from './reachable-part.ts'
export { EngineError, type EngineErrorCode, isSilentHost, isUnreachable } from './engine-error.ts'
export { canBackUpServices, type Engine, isolationsOf, planIsolationsOf } from './engine.ts'
