// The region that a path names.
import { ControlError } from '../platform/errors.ts'
import type { RegionConfig } from './region-config.ts'

/** Returns the region of an ID in a path. @throws ControlError NOT_FOUND */
export function regionInPath(regions: readonly RegionConfig[], id: string): RegionConfig {
  const region = regions.find((one) => one.id === id)
  if (region === undefined) throw new ControlError('NOT_FOUND', `There is no region "${id.slice(0, 100)}".`)
  return region
}
