// The conditions of a region.

/**
 * A condition of a region: whether its own stack runs as it should, or whether the traffic between its hosts is encrypted. If not, `reason`
 * is a code for programs.
 */
export interface RegionCondition {
  type: 'Ready' | 'Encrypted'
  status: 'True' | 'False'
  reason: string
  /** A public message for people. */
  message: string
  /** The time of the observation, ISO 8601, UTC. */
  observed_at: string
}
