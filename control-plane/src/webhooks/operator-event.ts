// What an operator's webhooks are told. Field names of `data` are those of the message.

/** Amounts that may pass 2^53 (bytes, micro-units of money) are decimal texts. */
export type OperatorEvent =
  | { type: 'tenant.ready' | 'tenant.failed' | 'tenant.suspended'; tenantId: string; data: TenantEventData }
  | { type: 'tenant.repaired'; tenantId: string; data: RepairEventData }
  | { type: 'quota.warning' | 'quota.reached'; tenantId: string; data: QuotaEventData }
  | { type: 'invoice.final'; tenantId: string; data: InvoiceEventData }

type OperatorEventType = OperatorEvent['type']

/** `tenant.*` is written by the statement that records a tenant's status; `quota.warning` is at 80 %, `quota.reached` at 100 %. */
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
  /** Why; null where all is well. */
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
  /** As usage and quotas name it, e.g. `api_requests`. */
  resource: string
  /** 80 or 100. */
  percent: number
  /** Decimal texts. */
  used: string
  limit: string
  /** `YYYY-MM`; null for what is not counted by month. */
  month: string | null
  /** When the counting begins anew, ISO 8601; null for what is not counted by month. */
  resets_at: string | null
}

interface InvoiceEventData {
  tenant_id: string
  invoice_id: string
  number: string
  /** `YYYY-MM`. */
  month: string
  /** ISO 4217. */
  currency: string
  /** Total to be paid in micro-units of the currency, tax included; a decimal text. */
  total_micro: string
}
