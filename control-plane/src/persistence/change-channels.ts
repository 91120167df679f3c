// Channels of Postgres' NOTIFY in the control database; the payload is a tenant's id.

/** What is told of a tenant. */
export const changeChannels = {
  /** An operator changed what should be. Reconciler and watches listen. */
  wanted: 'tenantry_wanted',
  /** The reconciler changed what runtimes and gateways are told. Watches listen. */
  published: 'tenantry_published',
  /** The reconciler has seen how things are, or an attempt ended. Waiting API calls listen. */
  observed: 'tenantry_observed',
} as const
export type ChangeKind = keyof typeof changeChannels
