// The exports of `regions/` that other modules may import.
export type { RegionCondition } from './region-condition.ts'
export { readRegions, superuserOf, type RegionConfig } from './region-config.ts'
export { regionInPath } from './region-in-path.ts'
export { sharedRuntimeUrls } from './runtime-urls.ts'
