// Conditions of the regions as the leading control plane last observed them, in memory, for the metrics, and to be recorded.
import type { Clock } from '../platform/clock.ts'
import { EngineError } from '../engines/index.ts'
import { reasonOf } from './not-ready.ts'
import type { RegionCondition } from '../regions/index.ts'

/** The conditions of each region as the leading control plane last observed them, in memory. */
export type RegionConditions = ReturnType<typeof createRegionConditions>

/** Creates an empty record of regions' conditions. */
export function createRegionConditions(clock: Pick<Clock, 'now'>) {
  const known = new Map<string, RegionCondition>()
  const encryption = new Map<string, RegionCondition>()
  type Reported = Omit<RegionCondition, 'type' | 'observed_at'>
  const observed = (type: RegionCondition['type'], reported: Reported): RegionCondition => ({
    type,
    ...reported,
    observed_at: clock.now().toISOString(),
  })
  const report = (region: string, reported: Reported) => void known.set(region, observed('Ready', reported))
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
    /** Records whether the traffic between the region's hosts is encrypted. */
    encrypted: (region: string, reported: Reported): void =>
      void encryption.set(region, observed('Encrypted', reported)),
    /**
     * Returns all conditions of each region whose own services were observed, by region, `Ready` first. There are none if another control
     * plane leads.
     */
    listed: (): ReadonlyMap<string, RegionCondition[]> =>
      new Map(
        [...known].map(([region, ready]) => {
          const encrypted = encryption.get(region)
          return [region, encrypted === undefined ? [ready] : [ready, encrypted]]
        }),
      ),
    /** Returns whether each observed region is ready, by region. */
    all: (): ReadonlyMap<string, RegionCondition> => known,
    /** Evicts all conditions, because another control plane leads. */
    evict: (): void => {
      known.clear()
      encryption.clear()
    },
  }
}
