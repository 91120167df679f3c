// Identifiers in all parts. A tenant's ID is opaque and also names its schema and roles.
import { Type, type Static } from 'typebox'

/**
 * ID of a tenant: `t_` and 20 hex digits (80 random bits). It is also the name of the schema and the prefix of the
 * roles.
 */
export const TenantId = Type.String({ pattern: '^t_[0-9a-f]{20}$' })
export type TenantId = Static<typeof TenantId>

const tenantIdPattern = /^t_[0-9a-f]{20}$/

/** Whether a text has the form of a tenant's ID. The tenant need not exist. */
export function isTenantId(value: string): value is TenantId {
  return tenantIdPattern.test(value)
}

/** Name of a tenant, which is a DNS label, because it is the first label of the tenant's host name. */
export const TenantName = Type.String({ minLength: 3, maxLength: 63, pattern: '^[a-z](?:[a-z0-9-]*[a-z0-9])$' })
export type TenantName = Static<typeof TenantName>
