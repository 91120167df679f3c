// Conditions of the regions as the leading control plane last observed them, in memory, for the API and the metrics.
import type { Clock } from '../platform/clock.ts'
import { EngineError } from '../engines/index.ts'
import { reasonOf } from './not-ready.ts'
import type { RegionCondition } from '../regions/index.ts'

/** The condition of each region as the leading control plane last observed it, in memory. */
export interface RegionConditions {
  /** Records that the region's own stack is as specified. */
  ready(region: string): void
  /** Records why the region is not as specified. @param otherwise message for an error without a public one */
  failed(region: string, error: unknown, otherwise: string): void
  /** Returns a region's condition; undefined before the first observation, or if another control plane leads. */
  of(region: string): RegionCondition | undefined
  /** Returns the conditions of all observed regions, by region. */
  all(): ReadonlyMap<string, RegionCondition>
  /** Evicts all conditions, because another control plane leads. */
  evict(): void
}

/** Creates an empty record of regions' conditions. */
export function createRegionConditions(clock: Pick<Clock, 'now'>): RegionConditions {
  const known = new Map<string, RegionCondition>()
  const report = (region: string, reported: Omit<RegionCondition, 'type' | 'observed_at'>) =>
    void known.set(region, { type: 'Ready', ...reported, observed_at: clock.now().toISOString() })
  return {
    ready: (region) => report(region, { status: 'True', reason: 'Observed', message: '' }),
    failed: (region, error, otherwise) =>
      report(region, {
        status: 'False',
        reason: reasonOf(error),
        message: error instanceof EngineError ? error.message : otherwise,
      }),
    of: (region) => known.get(region),
    all: () => known,
    evict: () => known.clear(),
  }
}
