// The public interface of `reconcile/`.
export { control, type ControllerMeasures } from './controller.ts'
export { type Failpoint, parseFailpoints } from './failpoints.ts'
export { firstResponse } from './first-response.ts'
export { describeHealth } from './describe-health.ts'
export { unobservedHome, type ReadyTenant, type ReconcileStore, type Snapshot } from './reconcile-store.ts'
export { createHostChoice, type HostChoice } from './host-choice.ts'
export { openRegionConditions } from './open-region-conditions.ts'
export type { RegionConditions } from './region-conditions.ts'
export {
  type CountersProbe,
  createRegionProbe,
  knownStructure,
  type RegionProbe,
  type StorageProbe,
} from './region-probe.ts'
export { createRoomCheck } from './region-room.ts'
export { createRoomStore } from './store-room.ts'
export { createRegion, hasBegun, hasCluster, isDedicated, type Region, type RegionOptions } from './region.ts'
export { silentHosts } from './spread.ts'
export { startServices } from './start-services.ts'
export { createReconcileStore } from './store.ts'
