// The bodies of the API that the console reads, as types of the client that is generated from the OpenAPI document.
import type { CreatedTenant, ResponseBody, Tenant } from '@tenantry/client'

export type {
  AuditEntry,
  CreatedTenant,
  Drift,
  Host,
  Operation,
  Plan,
  PlatformKey,
  Region,
  Tenant,
} from '@tenantry/client'

export type Session = ResponseBody<'/v1/console-sessions', 'get'>['console_sessions'][number]
export type OwnSession = ResponseBody<'/v1/console-sessions/current', 'get'>
export type Scope = OwnSession['scope']

export type Condition = Tenant['conditions'][number]
export type TenantKeys = CreatedTenant['keys']

export type Fleet = ResponseBody<'/v1/fleet', 'get'>
export type TenantInNeed = ResponseBody<'/v1/fleet/attention', 'get'>['tenants'][number]
export type PriceLists = ResponseBody<'/v1/prices', 'get'>

type UsageResponse = ResponseBody<'/v1/tenants/{id}/usage', 'get'>
type ReadUsage = Extract<UsageResponse, { resources: unknown }>
/** The console never limits the resources that it reads, so all of them are there. */
export type Usage = ReadUsage & { resources: Required<ReadUsage['resources']> }
export type UsageSeries = Extract<UsageResponse, { parts: unknown }>
export type UsagePage = ResponseBody<'/v1/usage', 'get'>
export type Amounts = UsagePage['tenants'][number]['amounts']
export type UpcomingInvoice = ResponseBody<'/v1/tenants/{id}/invoices/upcoming', 'get'>
export type InvoiceLine = UpcomingInvoice['lines'][number]
export type InvoiceSummary = ResponseBody<'/v1/tenants/{id}/invoices', 'get'>['invoices'][number]

export type Backup = ResponseBody<'/v1/tenants/{id}/backups', 'get'>['backups'][number]
export type Rollout = ResponseBody<'/v1/rollouts', 'get'>['rollouts'][number]
export type SharedDatabase = ResponseBody<'/v1/regions/{id}/databases', 'get'>['databases'][number]
export type Rebalance = ResponseBody<'/v1/regions/{id}/rebalances', 'get'>['rebalances'][number]
export type RebalancePlan = Extract<ResponseBody<'/v1/regions/{id}/rebalance', 'post'>, { databases_after: unknown }>
export type PlannedServiceMove = RebalancePlan['service_moves'][number]
export type PlannedSwitchover = RebalancePlan['switchovers'][number]
export type PlannedMove = RebalancePlan['moves'][number]
export type Webhook = ResponseBody<'/v1/webhooks', 'get'>['webhooks'][number]
export type Delivery = ResponseBody<'/v1/webhooks/{id}/deliveries', 'get'>['deliveries'][number]
export type LogLine = ResponseBody<'/v1/tenants/{id}/logs', 'get'>['lines'][number]

export interface Paged {
  next_cursor: string | null
}
