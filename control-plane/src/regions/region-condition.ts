// The condition of a region.

/** Whether a region's own stack runs as it should. If not, `reason` is a code for programs. */
export interface RegionCondition {
  type: 'Ready'
  status: 'True' | 'False'
  reason: string
  /** A public message for people. */
  message: string
  /** The time of the observation, ISO 8601, UTC. */
  observed_at: string
}
