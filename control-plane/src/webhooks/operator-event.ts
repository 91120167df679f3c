// The events that operators' webhooks receive. The field names of `data` are those of the message.

/** An event for operators. Amounts that may exceed 2^53 (bytes, micro-units of money) are decimal texts. */
export type OperatorEvent =
  | { type: 'tenant.ready' | 'tenant.failed' | 'tenant.suspended'; tenantId: string; data: TenantEventData }
  | { type: 'tenant.repaired'; tenantId: string; data: RepairEventData }
  | { type: 'quota.warning' | 'quota.reached'; tenantId: string; data: QuotaEventData }
  | { type: 'invoice.final'; tenantId: string; data: InvoiceEventData }

type OperatorEventType = OperatorEvent['type']

/**
 * The types of events. The statement that records a tenant's status writes `tenant.*`. `quota.warning` is at 80 %,
 * `quota.reached` at 100 %.
 */
export const operatorEventTypes = [
  'tenant.ready',
  'tenant.failed',
  'tenant.suspended',
  'tenant.repaired',
  'quota.warning',
  'quota.reached',
  'invoice.final',
] as const satisfies readonly OperatorEventType[]

interface TenantEventData {
  tenant_id: string
  name: string
  plan: string
  region: string
  status: 'ready' | 'failed' | 'suspended'
  previous_status: string
  /** The reason; null where there is no error. */
  reason: string | null
}

interface RepairEventData {
  tenant_id: string
  name: string
  plan: string
  region: string
  /** Names what was lost. */
  message: string
}

interface QuotaEventData {
  tenant_id: string
  /** The name of the resource in usage and quotas, e.g. `api_requests`. */
  resource: string
  /** The percentage, 80 or 100. */
  percent: number
  /** The used amount, a decimal text like `limit`. */
  used: string
  limit: string
  /** The month, `YYYY-MM`; null for resources that are not counted by month. */
  month: string | null
  /** The time at which the count begins again, ISO 8601; null for resources that are not counted by month. */
  resets_at: string | null
}

interface InvoiceEventData {
  tenant_id: string
  invoice_id: string
  number: string
  /** The month, `YYYY-MM`. */
  month: string
  /** The code of ISO 4217. */
  currency: string
  /** The total to be paid in micro-units of the currency, tax included; a decimal text. */
  total_micro: string
}
