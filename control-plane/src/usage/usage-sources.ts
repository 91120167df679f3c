// Who counts usage, and how far each is complete.
import type { Page, PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'

export const sourceKinds = ['gateway', 'home'] as const
type SourceKind = (typeof sourceKinds)[number]

export interface UsageSource {
  source: string
  /** Of a home. */
  tenantId: string | undefined
  /** All that it counted in the hours before has come. */
  completeUntil: Date
  firstSeenAt: Date
  lastSeenAt: Date
  /** Hours close without it. */
  retiredAt: Date | undefined
}

/** One that was heard of so lately is still at work. */
export const liveMilliseconds = 60_000

export interface UsageSources {
  /** By their names. */
  list(kind: SourceKind | undefined, page: PageRequest): Promise<Page<UsageSource>>
  /**
   * Lets hours close without it; until its next push. One that is retired already stays as it is.
   * @throws ControlError SOURCE_NOT_FOUND, SOURCE_LIVES
   */
  retire(source: string, write: RecordedWrite): Promise<UsageSource>
}
