// Compares declared tenants with those that exist. It has no side effects.
import type { Tenant, TenantChange } from '@tenantry/client'
import type { DeclaredTenant } from './manifest.ts'

/** A field whose declared value differs from the present one. */
export interface FieldChange {
  readonly field: string
  readonly from: unknown
  readonly to: unknown
}

/** The work that must be done for one declared tenant. */
export type Step =
  | { readonly action: 'create'; readonly declared: DeclaredTenant; readonly changes: readonly FieldChange[] }
  | {
      readonly action: 'update'
      readonly tenant: Tenant
      readonly change: TenantChange
      readonly changes: readonly FieldChange[]
    }
  | { readonly action: 'none'; readonly tenant: Tenant; readonly changes: readonly [] }
  | { readonly action: 'impossible'; readonly tenant: Tenant; readonly reason: string; readonly changes: readonly [] }

/** A change that `apply` makes. It moves no tenant: a move takes long, and an operator chooses when it begins. */
type Change = Omit<TenantChange, 'isolation' | 'region'>

/** Returns what must be done for a declared tenant. */
export function stepFor(declared: DeclaredTenant, tenant: Tenant | undefined): Step {
  const { name, plan, region, isolation, settings } = declared
  if (tenant === undefined) {
    const all = { plan, region, ...(isolation === undefined ? {} : { isolation }), ...settings }
    const changes = Object.entries(all).map(([field, to]) => ({ field, from: null, to }))
    return { action: 'create', declared, changes }
  }
  if (tenant.status === 'deleting')
    return impossible(tenant, `It is being deleted. Restore it with: tenantry tenants restore ${name}`)
  if (tenant.region !== region)
    return impossible(
      tenant,
      `Its region is ${tenant.region}. Move it with: tenantry tenants update ${name} --region ${region}`,
    )
  if (isolation !== undefined && tenant.isolation !== isolation)
    return impossible(
      tenant,
      `Its isolation is ${tenant.isolation}. Move it with: tenantry tenants update ${name} --isolation ${isolation}`,
    )
  const present = presentSettings(tenant)
  const wanted: Change = { plan, ...settings }
  const changes = Object.entries(wanted).flatMap(([field, to]) => {
    const from = present[field as keyof Change]
    return covers(from, to) ? [] : [{ field, from: from ?? null, to }]
  })
  if (changes.length === 0) return { action: 'none', tenant, changes: [] }
  const change = Object.fromEntries(changes.map(({ field, to }) => [field, to]))
  return { action: 'update', tenant, change, changes }
}

/** The settings of a tenant. Whether it is suspended is undefined while that is not known. */
type PresentSettings = Omit<Required<Change>, 'suspended'> & { readonly suspended: boolean | undefined }

/** Returns the settings of a tenant in the form in which a change writes them. */
function presentSettings(tenant: Tenant): PresentSettings {
  const { rate_limit: rate } = tenant
  return {
    name: tenant.name,
    plan: tenant.plan,
    // The status shows it only after the last change was carried out.
    suspended:
      tenant.observed_generation < tenant.generation || tenant.status === 'failed'
        ? undefined
        : tenant.status === 'suspended',
    suspend_reason: tenant.suspend_reason,
    payment_required: tenant.payment_required,
    drift_policy: tenant.drift_policy,
    resources: tenant.resources,
    pause_after_seconds: tenant.pause_after_seconds,
    backup_schedule: tenant.backup_schedule,
    backups_kept: tenant.backups_kept,
    archive_days: tenant.archive_days,
    rate_limit:
      rate.source === 'plan'
        ? null
        : rate.per_second === null || rate.burst === null
          ? 'unlimited'
          : { per_second: rate.per_second, burst: rate.burst },
  }
}

/** Whether the present value has everything that is wanted. Members that are not wanted may have any value. */
function covers(present: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return present === wanted
  if (typeof present !== 'object' || present === null) return false
  return Object.entries(wanted).every(([member, value]) => covers((present as Record<string, unknown>)[member], value))
}

function impossible(tenant: Tenant, reason: string): Step {
  return { action: 'impossible', tenant, reason, changes: [] }
}
