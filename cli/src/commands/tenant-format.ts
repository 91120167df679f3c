// How people read a tenant: one line for each fact that matters, and its conditions with what is wrong.
import type { CreatedTenant, Operation, Tenant } from '@tenantry/client'
import { formatMembers } from '../terminal/table.ts'

/** A tenant with what only some responses have. */
type ShownTenant = Tenant & Partial<Pick<CreatedTenant, 'keys'>> & { operation?: Operation | null }

/** Returns the lines of a tenant. Settings that are not in use are left out. */
export function formatTenant(tenant: ShownTenant): string {
  const { rate_limit: rate } = tenant
  const optional = {
    reason: tenant.reason,
    suspend_reason: tenant.suspend_reason,
    isolation_mismatch: tenant.isolation_mismatch?.message,
    read_only_database_url: tenant.read_only_database_url,
    resources: tenant.resources,
    runtime_image: tenant.runtime_image,
    pause_after_seconds: tenant.pause_after_seconds,
    backup_schedule: tenant.backup_schedule,
    archive_days: tenant.archive_days,
    purge_after: tenant.purge_after,
  }
  return formatMembers({
    name: tenant.name,
    tenant_id: tenant.tenant_id,
    status: tenant.status,
    plan: tenant.plan,
    region: tenant.region,
    isolation: tenant.isolation,
    url: tenant.url,
    path_url: tenant.path_url,
    database_url: tenant.database_url,
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== null && value !== undefined)),
    rate_limit:
      rate.per_second === null || rate.burst === null
        ? `unlimited (${rate.source})`
        : `${rate.per_second}/s, burst ${rate.burst} (${rate.source})`,
    conditions: tenant.conditions.map(formatCondition),
    created_at: tenant.created_at,
    ...tenant.keys,
    ...(tenant.operation == null ? {} : { operation: `${tenant.operation.kind} ${tenant.operation.state}` }),
  })
}

function formatCondition({ type, status, reason, message }: Tenant['conditions'][number]): string {
  return status === 'True' ? type : `${type} ${status} (${[reason, message].filter((text) => text !== '').join(': ')})`
}
