// The sources that count usage, and how far each is complete.
import type { Page, PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'

export const sourceKinds = ['gateway', 'home'] as const
type SourceKind = (typeof sourceKinds)[number]

export interface UsageSource {
  source: string
  /** The tenant of a home; undefined for a gateway. */
  tenantId: string | undefined
  /** The time before which all counts of the source have arrived. */
  completeUntil: Date
  firstSeenAt: Date
  lastSeenAt: Date
  /** The time since which hours close without the source. */
  retiredAt: Date | undefined
}

/** A source that reported within this time is active. */
export const liveMilliseconds = 60_000

export interface UsageSources {
  /** Lists sources by their names. */
  list(kind: SourceKind | undefined, page: PageRequest): Promise<Page<UsageSource>>
  /**
   * Retires a source: hours close without it, until its next push. A retired source stays as it is.
   * @throws ControlError SOURCE_NOT_FOUND, SOURCE_LIVES
   */
  retire(source: string, write: RecordedWrite): Promise<UsageSource>
}
