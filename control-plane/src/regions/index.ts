// What others may import of `regions/`.
export type { RegionCondition } from './region-condition.ts'
export { readRegions, type RegionConfig } from './region-config.ts'
