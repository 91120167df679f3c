// Usage as the API shows it, by resource (specification, sections 2.6 and 4.4).
import type { Tenant } from '../tenants/index.ts'
import type { Correction } from './closed-usage.ts'
import type { Amounts } from './hour-bucket.ts'
import type { TenantMonth } from './usage-postings.ts'

/** What a service of the tenant's own takes now; null where it does not run or can't be asked. */
export interface ComponentUsage {
  /** Since its container was started. */
  cpu_seconds: number | null
  memory_bytes: number | null
  disk_bytes: number | null
}

export interface MonthState {
  tenant_id: string
  /** `YYYY-MM`. */
  month: string
  /** True while counts of the month may still come in. */
  incomplete: boolean
  /** Sources that may still have counts of hours that should be closed by now. */
  missing_sources: string[]
  /** ISO 8601; start and end (exclusive) of the month, UTC. */
  period: { start: string; end: string }
}

export interface Usage extends MonthState {
  resources: {
    api_requests: {
      count: number
      limit: number | null
      /** Over a quota or a rate limit; not in `count`. */
      refused: number
      /** Rejected before anything of the tenant was touched; not in `count`. */
      rejected: number
      rejected_by_status: Record<string, number>
      by_group: Record<string, number>
      by_method: Record<string, number>
      by_status: Record<string, number>
      endpoints: { group: string; method: string; status: string; count: number }[]
      /** How many requests of a group were answered within so many milliseconds, and not within the bound before; `inf`: later than all. */
      latency_ms: Record<string, Record<string, number>>
    }
    /** Current bytes are null for a past month, and when the runtime can't be asked. */
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
    /** Greatest number at once in the month, and the mean over its time so far. */
    realtime_connections: { peak: number; average: number; limit: number | null }
    functions: { invocations: number | null; duration_ms: number; cpu_ms: number; memory_mib_seconds: number }
  }
  /** What came for the month's hours after they were closed. */
  corrections: Correction[]
  /** Of a tenant with services of its own. */
  components?: { postgres: ComponentUsage; runtime: ComponentUsage }
}

export type Granularity = 'hour' | 'day'

export interface UsagePart {
  start: Date
  /** Whether it can't change any more. */
  closed: boolean
  amounts: Amounts
  /** Of a closed hour: the chain before it and after it. */
  link?: { previous: string; hash: string }
}

export interface UsageSeries extends MonthState {
  granularity: Granularity
  /**
   * Parts of the series. Hours are as they were closed, and what came later is in the corrections alone; days have the
   * corrections billed with this very month in them.
   */
  parts: UsagePart[]
  corrections: Correction[]
}

export interface UsagePage extends Omit<MonthState, 'tenant_id' | 'incomplete'> {
  tenants: TenantMonth[]
}

/** A tenant, or what is known of one that is gone. */
export type UsageSubject = { id: string; tenant: Tenant | undefined }

/** `month` is the first instant of the month, UTC. */
export interface UsageReader {
  /** Undefined when there never was such a tenant. */
  subject(tenantId: string): Promise<UsageSubject | undefined>
  read(subject: UsageSubject, month: Date): Promise<Usage>
  series(subject: UsageSubject, month: Date, granularity: Granularity): Promise<UsageSeries>
  page(month: Date, page: { after: string; limit: number }): Promise<UsagePage>
}
