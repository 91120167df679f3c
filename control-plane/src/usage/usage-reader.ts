// A tenant's usage of one month, by resource (specification, sections 2.6 and 4.4).
import type { Tenant } from '../tenants/tenant.ts'

/** What a service of the tenant's own takes now; null where it does not run or can't be asked. */
export interface ComponentUsage {
  /** Since its container was started. */
  cpu_seconds: number | null
  memory_bytes: number | null
  disk_bytes: number | null
}

export interface Usage {
  tenant_id: string
  /** `YYYY-MM`. */
  month: string
  /** True while counters of the month may still come in. */
  incomplete: boolean
  /** ISO 8601; start and end (exclusive) of the month, UTC. */
  period: { start: string; end: string }
  resources: {
    api_requests: {
      count: number
      limit: number | null
      by_group: Record<string, number>
      by_method: Record<string, number>
      by_status: Record<string, number>
    }
    /** Current bytes; null for a past month, and when the runtime can't be asked. */
    storage: { documents_bytes: number | null; documents_limit: number | null; files_bytes: number | null; files_count: number | null; files_limit: number | null }
    egress: { bytes: number }
    /** Greatest number at once in the month, and the mean of the hours' greatest numbers. */
    realtime_connections: { peak: number; average: number; limit: number | null }
    functions: { invocations: number | null }
  }
  /** Of a tenant with services of its own. */
  components?: { postgres: ComponentUsage; runtime: ComponentUsage }
}

export interface UsageReader {
  /** `month` is the first instant of the month, UTC. */
  read(tenant: Tenant, month: Date): Promise<Usage>
}
