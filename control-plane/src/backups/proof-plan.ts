// Decides which backups are proven next: each tenant's newest one, once in each period. Pure.
import { createHash } from 'node:crypto'

/** A tenant with a complete backup. */
export interface ProvableTenant {
  id: string
  /** The time until which the tenant's planned times were followed. */
  seenAt: Date
  /** The tenant's newest complete backup. */
  newest: { id: string; region: string; verifiedAt: Date | undefined; verifyError: string | undefined }
}

export interface ProofPlan {
  /** Tenants whose newest backup was verified within the period, so that this planned time has no work. */
  skip: ProvableTenant[]
  /** Tenants whose newest backup is to be verified now: at most one for each region, the longest due first. */
  prove: ProvableTenant[]
}

/**
 * Plans the proofs. Each tenant has a fixed time within the period, which its ID determines, so that the proofs of all
 * tenants are spread over it. Of several missed times only the last one counts.
 * @param busyRegions regions with a verification in progress
 */
export function planProofs(
  tenants: readonly ProvableTenant[],
  periodMs: number,
  busyRegions: ReadonlySet<string>,
  now: Date,
): ProofPlan {
  const due = tenants
    .map((tenant) => ({ tenant, plannedAt: lastPlanned(tenant.id, periodMs, now) }))
    .filter(({ tenant, plannedAt }) => plannedAt > tenant.seenAt.getTime())
    .sort((one, other) => one.plannedAt - other.plannedAt)
    .map(({ tenant }) => tenant)
  const isProven = ({ newest: { verifiedAt, verifyError } }: ProvableTenant) =>
    verifiedAt !== undefined && verifyError === undefined && now.getTime() - verifiedAt.getTime() < periodMs
  const regions = new Set(busyRegions)
  const prove: ProvableTenant[] = []
  for (const tenant of due.filter((one) => !isProven(one))) {
    if (regions.has(tenant.newest.region)) continue
    regions.add(tenant.newest.region)
    prove.push(tenant)
  }
  return { skip: due.filter(isProven), prove }
}

/** Returns the last planned time of a tenant, in milliseconds since 1970. */
function lastPlanned(tenantId: string, periodMs: number, now: Date): number {
  const offset = createHash('sha256').update(tenantId).digest().readUIntBE(0, 6) % periodMs
  return Math.floor((now.getTime() - offset) / periodMs) * periodMs + offset
}
