// Warnings of quotas that are nearly used up: when there is one, and what identifies it. Pure.

export const percents = [80, 100] as const
/** The lowest percentage that is reported. */
export const [warnedFrom] = percents

/** The use of one quota of a tenant, in bytes, requests or connections. */
export interface QuotaState {
  tenantId: string
  resource: 'api_requests' | 'documents' | 'files' | 'realtime_connections'
  used: bigint
  limit: bigint
}

/** Returns the key that identifies a warning in the outbox. */
export function onceKey(tenantId: string, resource: QuotaState['resource'], percent: number, month: string): string {
  return `quota:${tenantId}:${resource}:${percent}:${month}`
}
