// The reasons for which a tenant needs an operator's attention.

/**
 * The reasons, the most urgent first:
 * - `Failed`: the tenant is not served, or not as requested
 * - `Cluster`: a member of its cluster is lost, or does not replicate
 * - `Loss`: tables of the service were lost in the last week, and were created again, empty
 * - `Disk`, `Sql`: it is over a limit of its disk, or its SQL login is closed
 * - `Drift`: its services differ from their specification, and its policy is not to repair them
 * - `ProofFailed`: the verification of its last backup failed
 * - `NotProven`: its backups were not verified for longer than the schedule of proofs allows
 * - `Quota`: it has used 80 % of a quota, or more
 */
export const attentionCodes = [
  'Failed',
  'Cluster',
  'Loss',
  'Disk',
  'Sql',
  'Drift',
  'ProofFailed',
  'NotProven',
  'Quota',
] as const
export type AttentionCode = (typeof attentionCodes)[number]

/** One reason. `since` is undefined if no time is known. */
export interface Reason {
  code: AttentionCode
  message: string
  since: Date | undefined
}

/** A tenant with its reasons, the most urgent first. */
export interface TenantInNeed {
  id: string
  name: string
  plan: string
  region: string
  status: string
  createdAt: Date
  reasons: Reason[]
}

/** The number of tenants by observed status, and by reason for attention. */
export interface FleetSummary {
  total: number
  byStatus: Record<string, number>
  attention: Record<AttentionCode, number>
}
