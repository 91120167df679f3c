// How a region is.

export interface RegionCondition {
  type: 'Ready'
  status: 'True' | 'False'
  reason: string
  /** Public. */
  message: string
  /** ISO 8601, UTC. */
  observed_at: string
}
