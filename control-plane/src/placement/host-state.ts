// The states of a host of several. Pure.

/**
 * - `active`: services run there, and new ones are put there.
 * - `draining`: services move away.
 * - `lost`: services are created on other hosts, because this one has not responded.
 */
export type HostState = 'active' | 'draining' | 'lost'
