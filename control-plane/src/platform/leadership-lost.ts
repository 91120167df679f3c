// What a leader meets that is none any more.

/** Thrown by writes when this control plane no longer leads. */
export class LeadershipLost extends Error {}
