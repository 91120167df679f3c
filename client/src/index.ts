// The typed client of the operators' API. Its types are generated from the control plane's OpenAPI document.
export { ApiError, ConnectionError, readApiError, type ErrorBody } from './api-error.ts'
export type {
  AuditEntry,
  Backup,
  CreatedTenant,
  Drift,
  Host,
  Invoice,
  Operation,
  Plan,
  PlatformKey,
  Region,
  RequestBody,
  ResponseBody,
  Rollout,
  Tenant,
  TenantChange,
  TenantHealth,
  Webhook,
} from './bodies.ts'
export { bodyOf, createControlClient, type ControlClient, type ControlClientOptions } from './control-client.ts'
export type { paths } from './generated/openapi.ts'
export { pages, type Page } from './pages.ts'
