// The holder of the lease of a tenant's triggers while its home moves.

/**
 * The holder, in the home's table `function_dispatcher`, under which the control plane lets no function begin by itself: neither
 * for a change of a record, nor at a planned time.
 */
export const moveLeaseHolder = 'move'
