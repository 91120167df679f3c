// The events that operators' webhooks receive. The field names of `data` are those of the message.

/** An event for operators. Amounts that may exceed 2^53 (bytes, micro-units of money) are decimal texts. */
export type OperatorEvent =
  | { type: 'tenant.ready' | 'tenant.failed' | 'tenant.suspended'; tenantId: string; data: TenantEventData }
  | { type: 'tenant.undeleted'; tenantId: string; data: UndeleteEventData }
  | { type: 'tenant.repaired'; tenantId: string; data: RepairEventData }
  | { type: 'backup.failed' | 'backup.proof_failed' | 'backup.restore_failed'; tenantId: string; data: BackupEventData }
  | { type: 'archive.failed'; tenantId: string; data: ArchiveEventData }
  | { type: 'tenant.sql_limited'; tenantId: string; data: SqlEventData }
  | { type: 'quota.warning' | 'quota.reached'; tenantId: string; data: QuotaEventData }
  | { type: 'spending.warning' | 'spending.reached'; tenantId: string; data: SpendingEventData }
  | { type: 'rollout.failed'; tenantId?: undefined; data: RolloutEventData }
  | { type: 'region.not_ready' | 'region.ready'; tenantId?: undefined; data: RegionEventData }
  | { type: 'invoice.final'; tenantId: string; data: InvoiceEventData }

type OperatorEventType = OperatorEvent['type']

/**
 * The types of events. The statement that records a tenant's status writes `tenant.*`. `quota.warning` and
 * `spending.warning` are at 80 %, `quota.reached` and `spending.reached` at 100 %.
 */
export const operatorEventTypes = [
  'tenant.ready',
  'tenant.failed',
  'tenant.suspended',
  'tenant.undeleted',
  'tenant.repaired',
  'tenant.sql_limited',
  'backup.failed',
  'backup.proof_failed',
  'backup.restore_failed',
  'archive.failed',
  'rollout.failed',
  'region.not_ready',
  'region.ready',
  'quota.warning',
  'quota.reached',
  'spending.warning',
  'spending.reached',
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

interface UndeleteEventData {
  tenant_id: string
  name: string
  plan: string
  region: string
  /** The time of the request to delete it, ISO 8601; null if it is not known. */
  deleted_at: string | null
}

interface RepairEventData {
  tenant_id: string
  name: string
  plan: string
  region: string
  /** Names what was lost. */
  message: string
}

interface BackupEventData {
  tenant_id: string
  name: string
  plan: string
  region: string
  backup_id: string
  operation_id: string
  /** The reason of the failure. */
  message: string
}

interface ArchiveEventData {
  tenant_id: string
  name: string
  plan: string
  region: string
  archive_id: string
  /** The reason of the failure. */
  message: string
}

interface SqlEventData {
  tenant_id: string
  name: string
  plan: string
  region: string
  /** The strongest action. */
  action: 'cancelled' | 'terminated' | 'closed'
  /** The reason code of the condition `Sql`. */
  reason: string
  message: string
  /** The end of the period in which the SQL login is closed, ISO 8601; null if it is open, or closed without an end. */
  closed_until: string | null
}

interface RolloutEventData {
  rollout_id: string
  region: string
  component: string
  image: string
  state: 'rolled_back' | 'failed'
  /** The reason of the failure. */
  message: string
}

interface RegionEventData {
  region: string
  /** The reason code and the message of the region's condition. */
  reason: string
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

interface SpendingEventData {
  tenant_id: string
  /** The month, `YYYY-MM`. */
  month: string
  /** The percentage, 80 or 100. */
  percent: number
  /** The total of the upcoming invoice, tax included, with the currency's decimal places. */
  upcoming: string
  /** The limit, with the currency's decimal places. */
  limit: string
  /** The code of ISO 4217. */
  currency: string
  /** The action at 100 %: whether gateways then reject the tenant's requests. */
  action: 'reject' | 'notify'
  /** The month's end, ISO 8601. */
  resets_at: string
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
