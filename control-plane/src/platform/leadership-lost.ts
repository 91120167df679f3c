// The error of a former leader's write.

/** An error of a write after this control plane has lost the lead. */
export class LeadershipLost extends Error {}
