// Conditions of the regions as the leading control plane last observed them, in memory, for the API and the metrics.
import type { Clock } from '../platform/clock.ts'
import { EngineError } from '../engines/index.ts'
import { reasonOf } from './not-ready.ts'
import type { RegionCondition } from '../regions/index.ts'

/** The condition of each region as the leading control plane last observed it, in memory. */
export type RegionConditions = ReturnType<typeof createRegionConditions>

/** Creates an empty record of regions' conditions. */
export function createRegionConditions(clock: Pick<Clock, 'now'>) {
  const known = new Map<string, RegionCondition>()
  const report = (region: string, reported: Omit<RegionCondition, 'type' | 'observed_at'>) =>
    void known.set(region, { type: 'Ready', ...reported, observed_at: clock.now().toISOString() })
  return {
    /** Records that the region's own stack is as specified. */
    ready: (region: string): void => report(region, { status: 'True', reason: 'Observed', message: '' }),
    /** Records why the region is not as specified. @param otherwise message for an error without a public one */
    failed: (region: string, error: unknown, otherwise: string): void =>
      report(region, {
        status: 'False',
        reason: reasonOf(error),
        message: error instanceof EngineError ? error.message : otherwise,
      }),
    /** Returns a region's condition; undefined before the first observation, or if another control plane leads. */
    of: (region: string): RegionCondition | undefined => known.get(region),
    /** Returns the conditions of all observed regions, by region. */
    all: (): ReadonlyMap<string, RegionCondition> => known,
    /** Evicts all conditions, because another control plane leads. */
    evict: (): void => known.clear(),
  }
}
