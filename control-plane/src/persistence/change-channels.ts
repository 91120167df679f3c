// Channels of Postgres' NOTIFY in the control database; the payload is a tenant's id.

/** An operator changed what should be. Reconciler and watches listen. */
export const wantedChannel = 'tenantry_wanted'

/** The reconciler changed what is. Watches and waiting API calls listen. */
export const observedChannel = 'tenantry_observed'
