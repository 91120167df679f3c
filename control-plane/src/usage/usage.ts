// Usage as the API returns it, by resource (specification, sections 2.6 and 4.4).
import type { Tenant } from '../tenants/index.ts'
import type { Correction } from './closed-usage.ts'
import type { Amounts } from './hour-bucket.ts'
import type { TenantMonth } from './month-usage.ts'

/** The present usage of one of the tenant's own services; null where it does not run or respond. */
export interface ComponentUsage {
  /** The processor time since the container was started. */
  cpu_seconds: number | null
  memory_bytes: number | null
  disk_bytes: number | null
}

export interface MonthState {
  tenant_id: string
  /** `YYYY-MM`. */
  month: string
  /** Whether counts of the month may still arrive. */
  incomplete: boolean
  /** The sources that may still have counts of hours that should be closed by now. */
  missing_sources: string[]
  /** The start and the end (exclusive) of the month, ISO 8601, UTC. */
  period: { start: string; end: string }
}

export interface Usage extends MonthState {
  resources: {
    api_requests: {
      count: number
      limit: number | null
      /** Requests that were rejected by a quota or a rate limit; not in `count`. */
      refused: number
      /** Requests that were rejected before they reached the tenant; not in `count`. */
      rejected: number
      rejected_by_status: Record<string, number>
      by_group: Record<string, number>
      by_method: Record<string, number>
      by_status: Record<string, number>
      endpoints: { group: string; method: string; status: string; count: number }[]
      /**
       * The requests of a group that took at most so many milliseconds, and more than the bound before. `inf` has no
       * bound.
       */
      latency_ms: Record<string, Record<string, number>>
    }
    /** The stored bytes. Present bytes are null for a past month, and when the runtime does not respond. */
    storage: {
      documents_bytes: number | null
      documents_limit: number | null
      documents_byte_hours: number
      files_bytes: number | null
      files_count: number | null
      files_limit: number | null
      files_byte_hours: number
    }
    egress: { bytes: number; by_group: Record<string, number> }
    /** The maximum of simultaneous connections in the month, and the mean over its elapsed time. */
    realtime_connections: { peak: number; average: number; limit: number | null }
    /** Messages that clients have sent and received. */
    realtime_messages: { count: number }
    functions: { invocations: number | null; duration_ms: number; cpu_ms: number; memory_mib_seconds: number }
  }
  /** The corrections of the month's hours. */
  corrections: Correction[]
  /** The present usage of the tenant's own services by their names, if it has any. */
  components?: Record<string, ComponentUsage>
}

export type Granularity = 'hour' | 'day'

export interface UsagePart {
  start: Date
  /** Whether the part can't change any more. */
  closed: boolean
  amounts: Amounts
  /** The hashes of the chain before and after a closed hour. */
  link?: { previous: string; hash: string }
}

export interface UsageSeries extends MonthState {
  granularity: Granularity
  /**
   * The parts of the series. Hours are as they were closed, without corrections; days include the corrections that are
   * billed with this month.
   */
  parts: UsagePart[]
  corrections: Correction[]
}

export interface UsagePage extends Omit<MonthState, 'tenant_id' | 'incomplete'> {
  tenants: TenantMonth[]
}

/** A tenant. `tenant` is undefined for a deleted one. */
export type UsageSubject = { id: string; tenant: Tenant | undefined }
