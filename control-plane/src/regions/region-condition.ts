// How a region is.

/** Whether a region's own stack runs as it should, and if not, why; `reason` is a code for programs. */
export interface RegionCondition {
  type: 'Ready'
  status: 'True' | 'False'
  reason: string
  /** Public. */
  message: string
  /** ISO 8601, UTC. */
  observed_at: string
}
