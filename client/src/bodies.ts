// Names of the types that programs use often. Each is the body of a response of the API.
import type { paths } from './generated/openapi.ts'

type Method = 'get' | 'put' | 'post' | 'delete' | 'patch'

type JsonOf<Response> = Response extends { content: { 'application/json': infer Body } } ? Body : never

/** The JSON body of the successful response of a path and method. */
export type ResponseBody<Path extends keyof paths, Name extends Method> = paths[Path][Name] extends {
  responses: infer Responses
}
  ? JsonOf<Responses[keyof Responses & (200 | 201 | 202)]>
  : never

/** The JSON body of the request of a path and method. */
export type RequestBody<Path extends keyof paths, Name extends Method> = paths[Path][Name] extends {
  requestBody?: infer Request
}
  ? JsonOf<NonNullable<Request>>
  : never

/** A tenant. */
export type Tenant = ResponseBody<'/v1/tenants/{id}', 'get'>
/** A tenant that was just created, with its keys. */
export type CreatedTenant = ResponseBody<'/v1/tenants', 'post'>
/** The settings of a tenant that a PATCH may contain. */
export type TenantChange = RequestBody<'/v1/tenants/{id}', 'patch'>
/** A recorded change of a tenant and its progress. */
export type Operation = ResponseBody<'/v1/operations/{id}', 'get'>
/** A tenant's health. */
export type TenantHealth = ResponseBody<'/v1/tenants/{id}/health', 'get'>
/** The differences between what exists of a tenant and what should exist. */
export type Drift = ResponseBody<'/v1/tenants/{id}/drift', 'get'>
/** A backup with its copies, or one that the control database does not know. */
export type Backup = ResponseBody<'/v1/backups/{id}', 'get'>
/** A rollout with its tenants. */
export type Rollout = ResponseBody<'/v1/rollouts/{id}', 'get'>
/** A webhook. */
export type Webhook = ResponseBody<'/v1/webhooks/{id}', 'get'>
/** An invoice with its lines. */
export type Invoice = ResponseBody<'/v1/tenants/{id}/invoices/{invoice}', 'get'>
/** A plan with its quotas. */
export type Plan = ResponseBody<'/v1/plans', 'get'>['plans'][number]
/** A region with what was last observed of it. */
export type Region = ResponseBody<'/v1/regions', 'get'>['regions'][number]
/** The host of a region, with its free resources. */
export type Host = ResponseBody<'/v1/hosts/{id}', 'get'>
/** A platform key without its secret. */
export type PlatformKey = ResponseBody<'/v1/keys', 'get'>['keys'][number]
/** An entry of the audit log. */
export type AuditEntry = ResponseBody<'/v1/audit', 'get'>['entries'][number]
